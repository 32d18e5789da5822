"""The tables of a made-up team: each was built by someone else and names its columns its own way.

A table is a function of its seed. Knows no question.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

STATUSES = {
    "sale": ("open", "paid", "cancelled", "overdue"),
    "work": ("new", "assigned", "resolved", "reopened"),
    "move": ("planned", "shipped", "delivered", "lost"),
    "review": ("draft", "approved", "rejected", "expired"),
}
"""What a row can be, by the kind of its table."""

THINGS: Sequence[tuple[str, str, str]] = (
    ("orders", "revenue", "sale"),
    ("invoices", "amount", "sale"),
    ("refunds", "amount", "sale"),
    ("payments", "amount", "sale"),
    ("subscriptions", "fee", "sale"),
    ("credit notes", "value", "sale"),
    ("deposits", "amount", "sale"),
    ("vouchers", "value", "sale"),
    ("bookings", "price", "sale"),
    ("purchase orders", "cost", "sale"),
    ("support tickets", "handling time", "work"),
    ("complaints", "response time", "work"),
    ("chats", "duration", "work"),
    ("calls", "duration", "work"),
    ("incidents", "downtime", "work"),
    ("repairs", "labour cost", "work"),
    ("site visits", "travel cost", "work"),
    ("inspections", "duration", "work"),
    ("installations", "hours", "work"),
    ("maintenance jobs", "hours", "work"),
    ("shipments", "weight", "move"),
    ("returns", "weight", "move"),
    ("parcels", "postage", "move"),
    ("pallets", "weight", "move"),
    ("pickups", "distance", "move"),
    ("stock transfers", "quantity", "move"),
    ("containers", "freight cost", "move"),
    ("courier runs", "distance", "move"),
    ("customs declarations", "duty", "move"),
    ("replenishments", "quantity", "move"),
    ("quotes", "value", "review"),
    ("contracts", "annual value", "review"),
    ("leads", "expected value", "review"),
    ("warranty claims", "payout", "review"),
    ("loans", "principal", "review"),
    ("discount requests", "discount", "review"),
    ("expense reports", "total", "review"),
    ("timesheets", "hours", "review"),
    ("campaigns", "budget", "review"),
    ("surveys", "score", "review"),
)
"""What each table holds in the team's words, what is added up there, and its kind."""

GROUPS = {
    "region": ("North", "South", "East", "West"),
    "country": ("Austria", "Belgium", "Poland", "Spain"),
    "team": ("Alpha", "Bravo", "Delta", "Gamma"),
    "channel": ("Web", "Phone", "Store", "Partner"),
    "warehouse": ("Lyon", "Gdansk", "Porto", "Ghent"),
}
"""What rows are grouped by, and its values."""


@dataclass(frozen=True)
class Lookup:
    """A table of names, by the key that other tables have."""

    name: str
    alias: str
    key: str
    label: str


LOOKUPS = {
    "region": Lookup("dim_region", "reg", "region_id", "region_name"),
    "country": Lookup("countries", "cty", "iso", "title"),
    "team": Lookup("hr_teams", "tms", "id", "team_label"),
    "channel": Lookup("ref_channel", "chn", "code", "descr"),
    "warehouse": Lookup("wh_master", "whm", "wh_no", "city"),
}


class Dates(Enum):
    """How a table says when."""

    DAY = "a day as text, 2023-03-01"
    MONTH = "a month as text, 2023-03"
    NUMBER = "a month as a number, 202303"
    PARTS = "the year and the month, each a number"


CUSTOMERS = (
    *("cust_no", "client_id", "customer_id", "acct", "account_id", "buyer", "debtor_no"),
    *("kunde", "party_id", "cid"),
)
IDS = ("id", "no", "doc_no", "ref", "uid", "row_id", "seq")
MEASURES = (
    "{word}",
    "{word}",
    "{short}",
    "{word}_total",
    "tot_{short}",
    "{short}_val",
    "val",
    "qty",
)
"""How what is added up may be called: by its word, a short form of it, or neither."""

MONEY = frozenset(
    {
        *("revenue", "amount", "fee", "value", "price", "cost", "postage", "duty", "payout"),
        *("principal", "total", "budget"),
    }
)
STATUS_COLUMNS = ("status", "state", "st", "stat_cd", "stage", "phase", "flag_status", "lifecycle")
DATE_COLUMNS = {
    Dates.DAY: ("created_at", "day", "posted_on", "dt", "entry_date", "booked"),
    Dates.MONTH: ("period", "month", "ym", "acc_period", "bucket"),
    Dates.NUMBER: ("yyyymm", "period_no", "fiscal_month", "per", "month_key"),
    Dates.PARTS: ("yr mon", "year month", "fy fm", "jahr monat", "y m"),
}
DELETED = (
    "",
    "",
    "{}.deleted = 0",
    "{}.is_deleted = 0",
    "{}.del_flag = 'N'",
    "{}.deleted_at IS NULL",
    "{}.active = 1",
    "{}.valid = 'Y'",
)
"""How a row that counts is told from one that was deleted, if at all."""

NAMES = ("{}", "{}", "fct_{}", "tbl_{}", "{}_log", "{}_hist", "v_{}", "{}_all")
SYSTEMS = {
    "sale": ("erp", "fin"),
    "work": ("crm", "svc"),
    "move": ("wms", "log"),
    "review": ("crm", "ops"),
}
SYSTEM_SHARE = 0.4
"""How many names begin with the system that a table was loaded from."""

LOOKUP_SHARE = 0.35
CENTS_SHARE = 0.35
"""How many groups are keys of a lookup, and how many sums of money are kept in cents."""

RESERVED = frozenset(["order", "to", "as", "in", "is", "or", "on", "by", "if", "no", "of"])
"""What neither a table nor an alias can be called."""


@dataclass(frozen=True)
class Table:
    """A table as its team speaks of it and as its columns are called."""

    things: str
    measured: str
    grouped: str
    name: str
    alias: str
    id: str
    customer: str
    measure: str
    is_cents: bool
    status: str
    codes: dict[str, str]  # of each status, as SQL
    dates: Dates
    date: tuple[str, ...]
    group: str
    values: dict[str, str]  # of each group, as SQL
    lookup: Lookup | None
    deleted: str  # a condition of rows that count, or nothing

    def column(self, name: str) -> str:
        """A column with the alias before it, as the team writes all of them."""
        return f"{self.alias}.{name}"

    @property
    def amount(self) -> str:
        """The measure in its own unit."""
        return self.column(self.measure) + (" / 100.0" if self.is_cents else "")

    @property
    def group_column(self) -> str:
        """The name that rows are grouped by, in the table or in the lookup."""
        return (
            f"{self.lookup.alias}.{self.lookup.label}" if self.lookup else self.column(self.group)
        )

    @property
    def source(self) -> str:
        """The table with its alias."""
        return f"{self.name} {self.alias}"

    @property
    def grouped_source(self) -> str:
        """The same with the lookup that its group needs, if it needs one."""
        if not self.lookup:
            return self.source
        key = f"{self.lookup.alias}.{self.lookup.key}"
        joined = f"JOIN {self.lookup.name} {self.lookup.alias} ON {key} = {self.column(self.group)}"
        return f"{self.source} {joined}"

    @property
    def columns(self) -> list[str]:
        """What the columns are called."""
        deleted = [self.deleted.split()[0].partition(".")[2]] if self.deleted else []
        named = [self.id, self.customer, self.measure, self.status, *self.date, self.group]
        return named + deleted

    def create(self) -> str:
        """The statement that creates the table."""
        return f"CREATE TABLE {self.name} ({', '.join(self.columns)})"


def create_lookups() -> list[str]:
    """The statements that create the lookups."""
    return [f"CREATE TABLE {each.name} ({each.key}, {each.label})" for each in LOOKUPS.values()]


def make_tables(seed: int) -> list[Table]:
    """The tables of a team: no two have the same name, and no two columns of a table."""
    chance = random.Random(f"tables {seed}")
    tables: dict[str, Table] = {}
    for things, measured, kind in THINGS:
        table = _make(things, measured, kind, chance)
        while table.name in tables or not _can_be_created(table):
            table = _make(things, measured, kind, chance)
        tables[table.name] = table
    return list(tables.values())


def _can_be_created(table: Table) -> bool:
    is_reserved = bool(RESERVED & {table.name, table.alias})
    return not is_reserved and len(set(table.columns)) == len(table.columns)


def _make(things: str, measured: str, kind: str, chance: random.Random) -> Table:
    name = _name(things, kind, chance)
    alias = "".join(word[0] for word in name.split("_"))
    dates = chance.choice(list(Dates))
    grouped = chance.choice(list(GROUPS))
    lookup = LOOKUPS[grouped] if chance.random() < LOOKUP_SHARE else None
    word = measured.replace(" ", "_")
    group = chance.choice((grouped, _short(grouped), f"{grouped}_cd", f"src_{grouped}"))
    return Table(
        things=things,
        measured=measured,
        grouped=grouped,
        name=name,
        alias=alias,
        id=chance.choice(IDS),
        customer=chance.choice(CUSTOMERS),
        measure=chance.choice(MEASURES).format(word=word, short=_short(word.rpartition("_")[2])),
        is_cents=measured.split()[-1] in MONEY and chance.random() < CENTS_SHARE,
        status=chance.choice(STATUS_COLUMNS),
        codes=_codes(STATUSES[kind], chance),
        dates=dates,
        date=tuple(chance.choice(DATE_COLUMNS[dates]).split()),
        group=f"{group}_id" if lookup else group,
        values=_values(GROUPS[grouped], has_lookup=lookup is not None, chance=chance),
        lookup=lookup,
        deleted=chance.choice(DELETED).format(alias),
    )


def _name(things: str, kind: str, chance: random.Random) -> str:
    """What the table is called: in the singular or the plural, with what its builder added."""
    noun = things.replace(" ", "_")
    if chance.random() < 0.5:
        noun = noun.removesuffix("s")
    if chance.random() < SYSTEM_SHARE:
        return f"{chance.choice(SYSTEMS[kind])}_{noun}"
    return chance.choice(NAMES).format(noun)


def _short(word: str) -> str:
    """A word as a column's name has it where names were short: its first consonants."""
    return (word[0] + "".join(each for each in word[1:] if each not in "aeiou"))[:4]


def _codes(statuses: Sequence[str], chance: random.Random) -> dict[str, str]:
    """How a table writes each status: the word, a part of it, or a number."""
    first = chance.choice((0, 1, 10))
    styles = (
        [f"'{each}'" for each in statuses],
        [f"'{each.upper()}'" for each in statuses],
        [f"'{_short(each).upper()}'" for each in statuses],
        [str(first * (at + 1) if first else at) for at in range(len(statuses))],
        [f"'S{at + 1}'" for at in range(len(statuses))],
    )
    return dict(zip(statuses, chance.choice(styles), strict=True))


def _values(groups: Sequence[str], *, has_lookup: bool, chance: random.Random) -> dict[str, str]:
    """How a table writes each group; a lookup has the names as people say them."""
    styles = (
        [f"'{each}'" for each in groups],
        [f"'{each.upper()}'" for each in groups],
        [f"'{each[:2].upper()}'" for each in groups],
    )
    return dict(zip(groups, styles[0] if has_lookup else chance.choice(styles), strict=True))
