"""The data of the retrieval experiment: cards from a folder, functions installed here."""

import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from experiments.autocomplete.settings import Functions, sample
from experiments.lib.cards import read_splits
from experiments.public_pairs.sets import PairSet
from experiments.retrieval.comparison import Comparison, Setting, by_hold_out
from redraft.data.split import split
from redraft.types import Example

QUESTIONS = 400
"""How many functions are asked for in each setting."""


ASKED_OF_A_PACKAGE = 12
"""How many functions of each held-out package of a corpus are asked for."""


def function_sets(corpus: Functions) -> list[PairSet]:
    """Return two sets of functions: asked of the training packages, and within held-out packages.

    In the second the index holds the other functions of the held-out packages.
    """
    asked = sample(corpus.test, ASKED_OF_A_PACKAGE)
    identities = {example.identity for example in asked}
    others = [
        example
        for package in corpus.test.values()
        for example in package
        if example.identity not in identities
    ]
    return [
        PairSet("functions of clients", "test", corpus.train, asked),
        PairSet("functions in project", "test", others, asked),
    ]


def cards(folder: Path, *, asked: str) -> Comparison:
    """Hearthstone: train answers the cards of another split."""
    train, questions = read_splits(folder, "train", asked)
    return by_hold_out(train, Setting("hearthstone", asked, [(train, questions)], leave_out=False))


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
