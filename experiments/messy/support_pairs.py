"""Make a support team's table of questions and SQL, and questions to hold out.

`stored_rows` imitates an export: four colleagues over fourteen months, with their own wordings,
favourite statements, typos and duplicates. `held_out` asks questions about it of four kinds.
"""

import datetime
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from experiments.messy import NO_ANSWER
from experiments.messy.support_statements import HELD, SLOT, Statement, read_statements
from experiments.messy.support_style import polish, style_sql, vary
from experiments.messy.support_values import (
    AUTHORS,
    CHIDI,
    DRAWS,
    SCHEMA,
    START,
    WORDS,
    move_email,
    spell,
)
from redraft.types import TEXT_FIELD, Example

__all__ = ["KINDS", "SCHEMA", "STATEMENTS", "held_out", "stored_rows"]

ROWS = 300
STORED, SUBSTITUTE, MAPPING, UNANSWERABLE = "stored", "substitute", "mapping", "unanswerable"
KINDS = {STORED: 15, SUBSTITUTE: 27, MAPPING: 10, UNANSWERABLE: 8}
"""Held-out questions of each kind.

stored        a stored output is the answer
substitute    a stored output becomes the answer with values that stand in the question
mapping       like substitute, and one value is a code that only rows of other statements show
unanswerable  no statement of the database answers it
"""

STATEMENTS = read_statements()

_DAYS = 430
_PER_STATEMENT = {STORED: 1, SUBSTITUTE: 2, MAPPING: 3}
_EXACT, _NEAR, _FOLLOW_UP, _NEW_WORDING = 0.10, 0.10, 0.15, 0.35
_UNANSWERED = (
    "what's the weather in Berlin?",
    "Could you please recommend a restaurant near the office?",
    "how do i reset my wifi router",
    "who won the match yesterday",
    "Book a meeting room for Thursday 14:00",
    "translate 'good morning' to french",
    "lunch menu today",
    "Could you please remind me of the password for the coffee machine's app?",
    "convert 250 euro to dollars",
    "Fix printer on 2nd floor",
    "how many vacation days do i have left",
    "train times Hamburg Leipzig",
)


@dataclass(frozen=True)
class _Question:
    statement: Statement
    values: Mapping[str, str]
    author: str
    text: str
    keep: tuple[str, ...]
    """The spelled values."""
    is_new_wording: bool = False

    @property
    def sql(self) -> str:
        return self.statement.fill(self.values)

    def codes(self) -> Iterator[tuple[str, str]]:
        return ((slot, value) for slot, value in self.values.items() if slot in WORDS)


def stored_rows(seed: int = 0) -> list[Example]:
    """Return the team's rows in the order of their dates; meta has author, date and statement."""
    chance = random.Random(f"support styles {seed}")
    return [
        _example(
            question,
            style_sql(question.sql, question.author, chance),
            {"author": question.author, "date": day.isoformat()},
        )
        for question, day in _stored(seed)
    ]


def held_out(seed: int = 0) -> list[Example]:
    """Return questions about the rows of `stored_rows(seed)`, all with different answers.

    Meta has the kind, see `KINDS`, and whether a colleague's wording is known from other rows.
    """
    chance = random.Random(f"support held out {seed}")
    stored = [question for question, _ in _stored(seed)]
    day = _stored(seed)[-1][1]
    asked = {_folded(question.text) for question in stored}
    answers: set[str] = set()
    examples: list[Example] = []
    for kind, accepts in _TESTS.items():
        limit = _PER_STATEMENT[kind]
        uses: Counter[Statement] = Counter()
        while sum(example.meta["kind"] == kind for example in examples) < KINDS[kind]:
            question = _ask(stored, kind, day, chance)
            statement = question.statement
            if _folded(question.text) in asked or uses[statement] >= limit:
                continue
            if accepts(question, stored) and question.sql not in answers:
                asked.add(_folded(question.text))
                answers.add(question.sql)
                uses[statement] += 1
                wording = "new" if question.is_new_wording else "known"
                tags = {"kind": kind, "wording": wording, "author": question.author}
                examples.append(_example(question, question.sql, tags))
    for text in chance.sample(_UNANSWERED, KINDS[UNANSWERABLE]):
        examples.append(Example({TEXT_FIELD: text}, NO_ANSWER, {"kind": UNANSWERABLE}))
    return examples


@lru_cache(maxsize=4)
def _stored(seed: int) -> tuple[tuple[_Question, datetime.date], ...]:
    chance = random.Random(f"support {seed}")
    favourites = {
        (author, statement): statement.weight * chance.choice((0.3, 0.6, 1.0, 1.5, 2.5))
        for author in AUTHORS
        for statement in STATEMENTS
        if author in statement.wordings
    }
    rows: list[tuple[_Question, datetime.date]] = []
    for day in _workdays(chance):
        recent = [question for question, _ in rows[-40:]]
        dice = chance.random()
        if recent and dice < _EXACT:
            question = chance.choice(recent)
        elif recent and dice < _EXACT + _NEAR:
            question = _near_duplicate(chance.choice(recent), chance)
        else:
            (author, statement) = chance.choices([*favourites], [*favourites.values()])[0]
            known = recent[-12:] if chance.random() < _FOLLOW_UP else []
            values = _draw(statement, known, day, chance)
            question = _write(statement, values, (author, author), chance)
        rows.append((question, day))
    return tuple(rows)


def _workdays(chance: random.Random) -> list[datetime.date]:
    days = [START + datetime.timedelta(days=at) for at in range(_DAYS)]
    return sorted(chance.choices([day for day in days if day.weekday() < 5], k=ROWS))


def _near_duplicate(question: _Question, chance: random.Random) -> _Question:
    text = vary(question.text, keep=question.keep, chance=chance)
    return _Question(question.statement, question.values, question.author, text, question.keep)


def _draw(
    statement: Statement, recent: Sequence[_Question], day: datetime.date, chance: random.Random
) -> dict[str, str]:
    """Draw the values of a statement, preferring those of recent questions."""
    known = {slot: value for question in recent for slot, value in question.values.items()}
    drawn = [slot for slot in statement.slots if slot in DRAWS]
    values = {slot: known.get(slot) or DRAWS[slot](chance, day) for slot in drawn}
    if "new_email" in statement.slots:
        values["new_email"] = move_email(values["email"], chance)
    return values


def _write(
    statement: Statement, values: Mapping[str, str], by: tuple[str, str], chance: random.Random
) -> _Question:
    """Write a question in the wording of the first author of `by`, spelled by the second."""
    wording_of, author = by
    wording = statement.word(wording_of, chance)
    spelled = {slot: spell(slot, value, author, chance) for slot, value in values.items()}
    parts = SLOT.split(wording)  # text and slots in turn
    parts[::2] = [part.lower() if author == CHIDI else part for part in parts[::2]]
    parts[1::2] = [spelled[slot] for slot in parts[1::2]]
    keep = tuple(spelled.values())
    text = polish("".join(parts), author, keep=keep, chance=chance)
    return _Question(statement, values, author, text, keep, wording_of == HELD)


def _ask(
    stored: Sequence[_Question], kind: str, day: datetime.date, chance: random.Random
) -> _Question:
    """Ask for the statement of a stored row, with its values or with others."""
    row = chance.choice(stored)
    statement = row.statement
    values = row.values if kind == STORED else _draw(statement, (), day, chance)
    author = chance.choice([author for author in AUTHORS if author in statement.wordings])
    wording_of = HELD if kind == STORED or chance.random() < _NEW_WORDING else author
    return _write(statement, values, (wording_of, author), chance)


def _is_stored(question: _Question, stored: Sequence[_Question]) -> bool:
    return any(row.sql == question.sql for row in stored)


def _is_substitute(question: _Question, stored: Sequence[_Question]) -> bool:
    """Tell whether the codes are those of a stored row and the question has the other values."""
    codes = dict(question.codes())
    return (
        not _is_stored(question, stored)
        and _has_values(question)
        and any(
            row.statement == question.statement and dict(row.codes()) == codes for row in stored
        )
    )


def _is_mapping(question: _Question, stored: Sequence[_Question]) -> bool:
    """Tell whether the question's code stands only in rows of other statements, beside its word."""
    codes = list(question.codes())
    if len(codes) != 1 or not _has_values(question):
        return False
    slot, code = codes[0]
    word = WORDS[slot][code].removeprefix("the ").lower()
    rows = [row for row in stored if row.values.get(slot) == code]
    return (
        word in question.text.lower()
        and all(row.statement != question.statement for row in rows)
        and any(word in row.text.lower() for row in rows)
    )


def _has_values(question: _Question) -> bool:
    text = question.text.lower()
    return all(
        value.lower() in text for slot, value in question.values.items() if slot not in WORDS
    )


_TESTS: Mapping[str, Callable[[_Question, Sequence[_Question]], bool]] = {
    STORED: _is_stored,
    SUBSTITUTE: _is_substitute,
    MAPPING: _is_mapping,
}


def _folded(text: str) -> str:
    return " ".join(text.lower().split())


def _example(question: _Question, y: str, meta: Mapping[str, str]) -> Example:
    tags = {**meta, "statement": question.statement.name}
    return Example({TEXT_FIELD: question.text}, y, tags)
