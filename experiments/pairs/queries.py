"""Questions in English and the SQL that answers them, for a team with many tables.

What a table and its columns are called, how it codes a status and says when, can only be known
from other questions about it. Held out are combinations of a table and a template: every table
is known, every template is known, and the two were never seen together. A held-out question
needs no column and no code that no training question about its table shows.
"""

import random
import re
from collections.abc import Iterable, Sequence

from experiments.pairs.query_tables import Table, make_tables
from experiments.pairs.query_templates import TEMPLATES, Template, Values
from redraft.types import TEXT_FIELD, Example

SEED = 0
TRAIN, HELD_OUT = 12, 5
"""Training questions of a table, one more of every other; templates of it that are held out."""

_COLUMN = re.compile(r"\w+\.\w+")


def make_queries(seed: int = SEED) -> dict[str, list[Example]]:
    """The questions of all tables by split; those of one table stand together."""
    splits: dict[str, list[Example]] = {"train": [], "dev": [], "test": []}
    for at, table in enumerate(make_tables(seed)):
        chance = random.Random(f"questions {seed} {table.name}")
        parts = None
        while parts is None:
            parts = _parts(table, TRAIN + at % 2, HELD_OUT // 2 + at % 2, chance)
        for name, part in zip(splits, parts, strict=True):
            splits[name] += part
    return splits


def _parts(
    table: Table, train: int, dev: int, chance: random.Random
) -> tuple[list[Example], list[Example], list[Example]] | None:
    """Train, dev and test questions of a table; None if train shows too little of it."""
    templates = chance.sample(TEMPLATES, len(TEMPLATES))
    held_out, known = templates[:HELD_OUT], templates[HELD_OUT:]
    asked = [*known, *chance.choices(known, k=train - len(known))]
    values = [Values.draw(list(table.codes), list(table.values), chance) for _ in asked]
    learned = _questions(table, asked, values, chance)
    pairs = list(zip(asked, values, strict=True))
    statuses = sorted({each.status for template, each in pairs if template.has_status})
    groups = sorted({each.group for template, each in pairs if template.has_group})
    if len({each.identity for each in learned}) < len(learned) or not (statuses and groups):
        return None
    drawn = [Values.draw(statuses, groups, chance) for _ in held_out]
    questions = _questions(table, held_out, drawn, chance)
    if not _columns(questions) <= _columns(learned):
        return None
    return learned, questions[:dev], questions[dev:]


def _questions(
    table: Table, templates: Sequence[Template], values: Sequence[Values], chance: random.Random
) -> list[Example]:
    return [
        Example(
            {TEXT_FIELD: template.question(table, each, chance.choice(template.said))},
            template.write(table, each),
            {"table": table.name, "template": template.name},
        )
        for template, each in zip(templates, values, strict=True)
    ]


def _columns(examples: Iterable[Example]) -> set[str]:
    """All columns that the statements name."""
    return {column for example in examples for column in _COLUMN.findall(example.y)}
