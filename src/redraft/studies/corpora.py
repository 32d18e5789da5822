"""The data of the studies: cards from a folder, functions from what is installed here."""

import random
import sysconfig
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from redraft.data import hearthstone
from redraft.data.example import Example
from redraft.data.pairs import read_pairs
from redraft.data.python_functions import Source, find_sources, mine
from redraft.data.rows import BadRow
from redraft.data.split import split
from redraft.data.tokenizer import Tokenizer
from redraft.errors import PairsError
from redraft.studies.retrieval import Comparison, Setting, by_hold_out

SHORTEST, LONGEST = 5, 150
MOST_OF_A_PACKAGE = 1_000
QUESTIONS = 400
"""How many functions are asked for in each setting."""

_LEFT_OUT = ("test", "tests", "testing", "_vendor", "idlelib", "lib2to3")

Watch = Callable[[Sequence[Source]], Iterable[Source]]


def read_splits(folder: Path, *names: str) -> list[list[Example]]:
    """The cards of these splits of a folder."""
    found = hearthstone.splits(folder)
    for name in names:
        if name not in found:
            present = ", ".join(found) or "none"
            raise PairsError(f"{folder}: has no {name}_hs.in; splits that are there: {present}")
    return [read_pairs(found[name]) for name in names]


def cards(folder: Path, *, asked: str) -> Comparison:
    """Hearthstone: train answers the cards of another split."""
    train, questions = read_splits(folder, "train", asked)
    return by_hold_out(train, Setting("hearthstone", asked, [(train, questions)], leave_out=False))


def standard_library() -> list[Source]:
    """The files of the standard library of this Python, its tests left out."""
    return find_sources([Path(sysconfig.get_paths()["stdlib"])], without=_LEFT_OUT)


def installed_functions(watch: Watch = iter, *, most_files: int = 1_000_000) -> list[Example]:
    """Documented functions of the installed packages and the standard library, each body once.

    Packages of more than so many files are left out.
    """
    paths = sysconfig.get_paths()
    sources = find_sources([Path(paths["purelib"]), Path(paths["stdlib"])], without=_LEFT_OUT)
    sizes = Counter(source.package for source in sources)
    sources = [source for source in sources if sizes[source.package] <= most_files]
    packages: dict[str, dict[str, Example]] = defaultdict(dict)
    seen: set[str] = set()
    tokenizer = Tokenizer()
    for source in watch(sources):
        found = mine(source)
        for example in [] if isinstance(found, BadRow) else found:
            fits = SHORTEST <= len(tokenizer.tokenize(example.y)) <= LONGEST
            if fits and example.y not in seen:
                seen.add(example.y)
                packages[source.package][example.identity] = example
    examples: list[Example] = []
    for name in sorted(packages):
        kept = list(packages[name].values())
        random.Random(0).shuffle(kept)
        examples += kept[:MOST_OF_A_PACKAGE]
    return examples


def functions(examples: Sequence[Example]) -> Comparison:
    """Whole packages are held out; asked within the package, and across packages."""
    parts = split(examples, {"train": 0.8, "dev": 0.1, "test": 0.1}, seed=0, by="package")
    train = parts["train"]
    measured = [_in_project(parts["test"], "test"), _across(train, parts["test"], "test")]
    chosen_by = [_in_project(parts["dev"], "dev"), _across(train, parts["dev"], "dev")]
    return Comparison(train, list(zip(measured, chosen_by, strict=True)))


def _asked(examples: Sequence[Example]) -> list[Example]:
    return random.Random(1).sample(list(examples), min(QUESTIONS, len(examples)))


def _across(train: Sequence[Example], others: Sequence[Example], name: str) -> Setting:
    return Setting("across packages", name, [(train, _asked(others))], leave_out=False)


def _in_project(others: Sequence[Example], name: str) -> Setting:
    packages: dict[str, list[Example]] = defaultdict(list)
    for example in others:
        packages[example.meta["package"]].append(example)
    asked = _asked([each for each in others if len(packages[each.meta["package"]]) > 1])
    groups = [
        (known, [example for example in asked if example.meta["package"] == package])
        for package, known in packages.items()
    ]
    return Setting("in project", name, [group for group in groups if group[1]], leave_out=True)
