"""Mine documented functions from the packages installed beside this Python and from its standard
library: pairs that exist on every machine.
"""

import random
import sysconfig
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from redraft.data.rows import BadRow
from redraft.mining.python_functions import (
    TEST_FOLDERS,
    Source,
    find_sources,
    mine,
    standard_library,
)
from redraft.text.tokenizer import Tokenizer
from redraft.types import Example

SHORTEST, LONGEST = 5, 150
"""Tokens of a function body that is kept."""

MOST_OF_A_PACKAGE = 1_000

Watch = Callable[[Sequence[Source]], Iterable[Source]]
"""Passes sources through, for instance to show a progress bar; `iter` shows nothing."""


def installed_functions(watch: Watch = iter, *, most_files: int = 1_000_000) -> list[Example]:
    """Return documented functions of the installed packages and the standard library.

    Each body occurs once, and a package contributes at most `MOST_OF_A_PACKAGE` functions.
    Packages with more than `most_files` files are skipped.
    """
    packages_folder = Path(sysconfig.get_paths()["purelib"])
    sources = find_sources([packages_folder], without=TEST_FOLDERS) + standard_library()
    sizes = Counter(source.package for source in sources)
    sources = [source for source in sources if sizes[source.package] <= most_files]
    packages: dict[str, dict[str, Example]] = defaultdict(dict)
    seen: set[str] = set()
    tokenizer = Tokenizer()
    for source in watch(sources):
        mined = mine(source)
        for example in [] if isinstance(mined, BadRow) else mined:
            fits = SHORTEST <= len(tokenizer.tokenize(example.y)) <= LONGEST
            if fits and example.y not in seen:
                seen.add(example.y)
                packages[source.package][example.identity] = example
    examples: list[Example] = []
    for name in sorted(packages):
        functions = list(packages[name].values())
        random.Random(0).shuffle(functions)
        examples += functions[:MOST_OF_A_PACKAGE]
    return examples
