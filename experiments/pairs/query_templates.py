"""The questions of a team: ways to ask each in English, and the SQL that answers it of any table.

All that one table does its own way stands in `query_tables`.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from experiments.pairs.query_tables import Dates, Table

YEARS = (2021, 2022, 2023, 2024)
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)


@dataclass(frozen=True)
class Values:
    """What one question asks for; a template takes of it what it needs."""

    year: int
    month: int
    status: str
    group: str
    customer: int
    top: int
    limit: int
    when: str  # the month, as it was said

    @classmethod
    def draw(
        cls, statuses: Sequence[str], groups: Sequence[str], chance: random.Random
    ) -> "Values":
        """Values at random, of these statuses and groups."""
        year, month = chance.choice(YEARS), chance.randrange(12)
        name = MONTHS[month]
        said = (
            *(f"{name} {year}", f"{name} {year}", f"{name[:3]} {year}"),
            *(f"{year}-{month + 1:02}", f"{month + 1:02}/{year}"),
        )
        return cls(
            year=year,
            month=month + 1,
            status=chance.choice(statuses),
            group=chance.choice(groups),
            customer=chance.randrange(1000, 9999),
            top=chance.choice((3, 5, 10, 20, 25)),
            limit=chance.choice((50, 100, 200, 250, 500, 1000)),
            when=chance.choice(said),
        )


def in_month(table: Table, values: Values) -> str:
    """The condition that a row is of the month."""
    column, (year, month) = table.column(table.date[0]), (values.year, values.month)
    if table.dates is Dates.DAY:
        after = f"{year + month // 12}-{month % 12 + 1:02}-01"
        return f"{column} >= '{year}-{month:02}-01' AND {column} < '{after}'"
    if table.dates is Dates.MONTH:
        return f"{column} = '{year}-{month:02}'"
    if table.dates is Dates.NUMBER:
        return f"{column} = {year}{month:02}"
    return f"{column} = {year} AND {table.column(table.date[1])} = {month}"


def in_year(table: Table, values: Values) -> str:
    """The condition that a row is of the year."""
    column, year = table.column(table.date[0]), values.year
    if table.dates is Dates.DAY:
        return f"{column} >= '{year}-01-01' AND {column} < '{year + 1}-01-01'"
    if table.dates is Dates.MONTH:
        return f"{column} BETWEEN '{year}-01' AND '{year}-12'"
    if table.dates is Dates.NUMBER:
        return f"{column} BETWEEN {year}01 AND {year}12"
    return f"{column} = {year}"


def month_of(table: Table) -> str:
    """What the rows of a month have in common."""
    column = table.column(table.date[-1])
    return f"substr({column}, 1, 7)" if table.dates is Dates.DAY else column


def newest_first(table: Table) -> str:
    """The order of rows, the newest first."""
    return ", ".join(f"{table.column(each)} DESC" for each in table.date)


def has_status(table: Table, values: Values) -> str:
    """The condition that a row has the status."""
    return f"{table.column(table.status)} = {table.codes[values.status]}"


def is_of_customer(table: Table, values: Values) -> str:
    """The condition that a row is of the customer."""
    return f"{table.column(table.customer)} = {values.customer}"


def is_in_group(table: Table, values: Values) -> str:
    """The condition that a row is in the group."""
    return f"{table.group_column} = {table.values[values.group]}"


def select(what: str, source: str, *conditions: str, then: str = "") -> str:
    """A statement; conditions that are empty are left out."""
    where = " AND ".join(each for each in conditions if each)
    return f"SELECT {what} FROM {source}" + (f" WHERE {where}" if where else "") + then + ";"


@dataclass(frozen=True)
class Template:
    """A kind of question: ways to ask it, and the SQL that answers it."""

    name: str
    said: Sequence[str]
    write: Callable[[Table, Values], str]
    has_status: bool = False
    has_group: bool = False

    def question(self, table: Table, values: Values, said: str) -> str:
        """The question as it is said in this way."""
        words = {"things": table.things, "measured": table.measured, "grouped": table.grouped}
        return said.format(**words, **asdict(values))


def _count(table: Table, _: Values) -> str:
    return select("COUNT(*)", table.source, table.deleted)


def _count_month(table: Table, values: Values) -> str:
    return select("COUNT(*)", table.source, in_month(table, values), table.deleted)


def _count_group(table: Table, values: Values) -> str:
    return select("COUNT(*)", table.grouped_source, is_in_group(table, values), table.deleted)


def _count_status_month(table: Table, values: Values) -> str:
    conditions = has_status(table, values), in_month(table, values), table.deleted
    return select("COUNT(*)", table.source, *conditions)


def _sum_month(table: Table, values: Values) -> str:
    return select(f"SUM({table.amount})", table.source, in_month(table, values), table.deleted)


def _sum_by_group(table: Table, values: Values) -> str:
    group = table.group_column
    what, then = f"{group}, SUM({table.amount}) AS total", f" GROUP BY {group}"
    return select(what, table.grouped_source, in_year(table, values), table.deleted, then=then)


def _count_by_status(table: Table, _: Values) -> str:
    status = table.column(table.status)
    return select(
        f"{status}, COUNT(*) AS n", table.source, table.deleted, then=f" GROUP BY {status}"
    )


def _top_customers(table: Table, values: Values) -> str:
    customer = table.column(table.customer)
    what = f"{customer}, SUM({table.amount}) AS total"
    then = f" GROUP BY {customer} ORDER BY total DESC LIMIT {values.top}"
    return select(what, table.source, in_year(table, values), table.deleted, then=then)


def _latest(table: Table, values: Values) -> str:
    then = f" ORDER BY {newest_first(table)} LIMIT {values.top}"
    return select("*", table.source, is_of_customer(table, values), table.deleted, then=then)


def _average_in_group(table: Table, values: Values) -> str:
    conditions = is_in_group(table, values), table.deleted
    return select(f"AVG({table.amount})", table.grouped_source, *conditions)


def _large(table: Table, values: Values) -> str:
    what = ", ".join(table.column(each) for each in (table.id, table.customer, table.measure))
    condition = f"{table.amount} > {values.limit}"
    return select(what, table.source, condition, in_month(table, values), table.deleted)


def _customers_with_status(table: Table, values: Values) -> str:
    customer = f"DISTINCT {table.column(table.customer)}"
    return select(customer, table.source, has_status(table, values), table.deleted)


def _by_month(table: Table, values: Values) -> str:
    month = month_of(table)
    what, then = f"{month} AS month, SUM({table.amount}) AS total", " GROUP BY 1 ORDER BY 1"
    return select(what, table.source, in_year(table, values), table.deleted, then=then)


def _busy_groups(table: Table, values: Values) -> str:
    group = table.group_column
    then = f" GROUP BY {group} HAVING COUNT(*) > {values.limit}"
    return select(f"{group}, COUNT(*) AS n", table.grouped_source, table.deleted, then=then)


def _status_of_customer(table: Table, values: Values) -> str:
    what = ", ".join(table.column(each) for each in (table.id, table.measure))
    conditions = is_of_customer(table, values), has_status(table, values), table.deleted
    return select(what, table.source, *conditions)


TEMPLATES: Sequence[Template] = (
    Template(
        "count",
        ("how many {things} do we have?", "total number of {things}", "count all {things}"),
        _count,
    ),
    Template(
        "count of a month",
        (
            "how many {things} did we have in {when}?",
            "number of {things} in {when}",
            "{things} in {when}, just the count",
        ),
        _count_month,
    ),
    Template(
        "count of a group",
        (
            "how many {things} are there in {grouped} {group}?",
            "number of {things} for {grouped} {group}",
            "count the {things} of {grouped} {group}",
        ),
        _count_group,
        has_group=True,
    ),
    Template(
        "count of a status in a month",
        (
            "how many {things} of {when} are {status}?",
            "number of {status} {things} in {when}",
            "{status} {things}, {when}: how many?",
        ),
        _count_status_month,
        has_status=True,
    ),
    Template(
        "sum of a month",
        (
            "total {measured} of {things} in {when}",
            "what was the {measured} of all {things} in {when}?",
            "sum up the {measured} for {things} of {when}",
        ),
        _sum_month,
    ),
    Template(
        "sum by group",
        (
            "{measured} of {things} by {grouped} in {year}",
            "show the {year} {measured} of {things} for each {grouped}",
            "total {measured} per {grouped} for {things}, {year}",
        ),
        _sum_by_group,
    ),
    Template(
        "count by status",
        (
            "how many {things} per status?",
            "number of {things} by status",
            "{things} broken down by status",
        ),
        _count_by_status,
    ),
    Template(
        "top customers",
        (
            "top {top} customers by {measured} of {things} in {year}",
            "which {top} customers had the highest {measured} of {things} in {year}?",
            "the {top} biggest customers for {things} by {measured}, {year}",
        ),
        _top_customers,
    ),
    Template(
        "latest of a customer",
        (
            "last {top} {things} of customer {customer}",
            "show me the {top} most recent {things} for customer {customer}",
            "customer {customer}: latest {top} {things}",
        ),
        _latest,
    ),
    Template(
        "average in a group",
        (
            "average {measured} of {things} in {grouped} {group}",
            "what is the mean {measured} of {things} for {grouped} {group}?",
            "{grouped} {group}: average {measured} of {things}",
        ),
        _average_in_group,
        has_group=True,
    ),
    Template(
        "large ones of a month",
        (
            "list {things} with {measured} above {limit} in {when}",
            "which {things} of {when} have {measured} over {limit}?",
            "{things} with more than {limit} {measured}, {when}",
        ),
        _large,
    ),
    Template(
        "customers with a status",
        (
            "which customers have {status} {things}?",
            "customers with {things} that are {status}",
            "list all customers with {status} {things}",
        ),
        _customers_with_status,
        has_status=True,
    ),
    Template(
        "by month",
        (
            "monthly {measured} of {things} in {year}",
            "{measured} of {things} by month for {year}",
            "show how the {measured} of {things} developed over {year}",
        ),
        _by_month,
    ),
    Template(
        "busy groups",
        (
            "which {grouped} has more than {limit} {things}?",
            "{grouped} with over {limit} {things}",
            "every {grouped} where we have more than {limit} {things}",
        ),
        _busy_groups,
    ),
    Template(
        "status of a customer",
        (
            "{status} {things} of customer {customer}",
            "does customer {customer} have any {status} {things}?",
            "list the {things} of customer {customer} that are {status}",
        ),
        _status_of_customer,
        has_status=True,
    ),
)
"""Every kind of question that the team asks."""
