"""Read the statements of a support team and the wordings of their questions.

`support_statements.txt` has one block per statement. Knows no values; draws only wordings.
"""

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

HELD = "held"
"""The author of wordings that stand in no stored row."""

SLOT = re.compile(r"\{(\w+)\}")
_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_TABLE = Path(__file__).with_name("support_statements.txt")


@dataclass(frozen=True, eq=False)
class Statement:
    """A kind of statement: its SQL with slots, and the wordings of each author.

    `weight` is how often the team needs it.
    """

    name: str
    weight: int
    sql: str
    wordings: Mapping[str, tuple[str, ...]]

    @cached_property
    def slots(self) -> tuple[str, ...]:
        """The names of the values, in the order of the SQL."""
        return tuple(SLOT.findall(self.sql))

    def fill(self, values: Mapping[str, str]) -> str:
        """Return the SQL with the values, quotes in them doubled."""
        return SLOT.sub(lambda slot: values[slot[1]].replace("'", "''"), self.sql)

    def word(self, author: str, chance: random.Random) -> str:
        """Draw one of the author's wordings; its slots stay."""
        wording = chance.choice(self.wordings[author])
        return _CHOICE.sub(lambda choice: chance.choice(choice[1].split("|")), wording)


def read_statements(path: Path = _TABLE) -> tuple[Statement, ...]:
    """Return the statements of the file, in its order."""
    _, *blocks = re.split(r"^== ", path.read_text(), flags=re.MULTILINE)
    return tuple(_parse(block.splitlines()) for block in blocks)


def _parse(lines: list[str]) -> Statement:
    name, weight = lines[0].split()
    wordings: dict[str, tuple[str, ...]] = {}
    for line in filter(None, lines[2:]):
        author, wording = line.split(": ", 1)
        wordings[author] = (*wordings.get(author, ()), wording)
    return Statement(name, int(weight), lines[1], wordings)
