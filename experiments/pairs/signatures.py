"""What a function does, what it is called and where it stands, to the arguments that it takes.

Mined from the standard library, as a team would mine its own code: functions are held out at
random, others of the same files are known.
"""

import random
from collections.abc import Iterable, Sequence

from redraft.data.rows import BadRow
from redraft.mining.python_functions import Source, mine
from redraft.types import Example

SEED = 0
TRAIN, HELD_OUT = 3_000, 150
"""How many functions are learned from, and how many each of dev and test asks."""

TRIVIAL = frozenset({"()", "(self)", "(cls)"})
"""Argument lists that say nothing."""


def mine_signatures(sources: Iterable[Source]) -> list[Example]:
    """The documented functions of these files with arguments besides self, each once.

    A function that several files have, with the same docstring and arguments, is one function.
    """
    found: dict[tuple[str, str, str], Example] = {}
    for source in sources:
        mined = mine(source)
        for function in [] if isinstance(mined, BadRow) else mined:
            example = _signature(function)
            if example.y not in TRIVIAL:
                key = (example.x["docstring"], example.x["name"], example.y)
                found.setdefault(key, example)
    return list(found.values())


def _signature(function: Example) -> Example:
    """The first paragraph of the docstring, the name and the file, and the arguments."""
    paragraph = " ".join(function.x["docstring"].partition("\n\n")[0].split())
    x = {"docstring": paragraph, "name": function.x["name"], "file": function.meta["file"]}
    # all of them are of one project, so no meta says of which package they are
    return Example(x, f"({function.x['arguments']})", {"line": function.meta["line"]})


def split_signatures(
    examples: Sequence[Example], *, train: int = TRAIN, held_out: int = HELD_OUT, seed: int = SEED
) -> dict[str, list[Example]]:
    """The examples by split, drawn at random: as many as are asked for, or as there are."""
    drawn = random.Random(seed).sample(examples, len(examples))
    test, dev, rest = drawn[:held_out], drawn[held_out : 2 * held_out], drawn[2 * held_out :]
    return {"train": rest[:train], "dev": dev, "test": test}
