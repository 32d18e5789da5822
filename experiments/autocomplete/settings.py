"""The settings of the autocomplete tables: functions that are asked, and those that may answer.

In a project, the index holds the other functions of the package and nothing was trained on them;
across packages, it holds the training functions.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from redraft.data.pairs import read_pairs
from redraft.errors import PairsError
from redraft.retrieval.base import Retriever
from redraft.types import Example, Prototype

IN_PROJECT, OTHER_FILES = "in-project", "in-project-other-files"
STRICT, PAPER = "across-strict", "across-paper"
SETTINGS = (IN_PROJECT, OTHER_FILES, STRICT, PAPER)

RETRIEVED = 1_000
"""Prototypes of a question, all of a project: the nearest few are read, more are looked up."""

Build = Callable[[Sequence[Example]], Retriever]
Found = Sequence[Sequence[Prototype]]


@dataclass(frozen=True)
class Functions:
    """The functions of one rule: those of training packages, and of held-out ones by package."""

    train: Sequence[Example]
    dev: Mapping[str, Sequence[Example]]
    test: Mapping[str, Sequence[Example]]

    @classmethod
    def read(cls, folder: Path) -> "Functions":
        """The functions of a corpus that `python -m experiments.corpus` wrote."""
        for side in ("train", "dev", "test"):
            if not (folder / f"{side}.jsonl").exists():
                raise PairsError(
                    f"{folder}: has no {side}.jsonl; "
                    "build a corpus with `python -m experiments.corpus`"
                )
        train, dev, test = (
            read_pairs(folder / f"{side}.jsonl") for side in ("train", "dev", "test")
        )
        return cls(train, _by_package(dev), _by_package(test))


def _by_package(examples: Sequence[Example]) -> dict[str, list[Example]]:
    packages: dict[str, list[Example]] = defaultdict(list)
    for example in examples:
        packages[str(example.meta["package"])].append(example)
    return dict(packages)


@dataclass(frozen=True)
class Setting:
    """Functions that are asked, and the functions that may answer them."""

    name: str
    split: str
    asked: Sequence[Example]
    known: Mapping[str, Sequence[Example]] = field(repr=False)  # of each package, or of "" for all

    @property
    def packages(self) -> list[str]:
        """The package of each function that is asked."""
        return [str(example.meta["package"]) for example in self.asked]

    def retrieve(self, build: Build, k: int = RETRIEVED) -> Found:
        """What a retriever over what is known finds for each of them."""
        if "" in self.known:
            return build(self.known[""]).retrieve([each.x for each in self.asked], k)
        found: dict[int, Sequence[Prototype]] = {}
        rows: dict[str, list[int]] = defaultdict(list)
        for row, package in enumerate(self.packages):
            rows[package].append(row)
        for package, own in rows.items():
            retriever = build(self.known[package])
            for row in own:
                found[row] = self._leave_one_out(retriever, self.asked[row], k)
        return [found[row] for row in range(len(self.asked))]

    def _leave_one_out(self, retriever: Retriever, asked: Example, k: int) -> list[Prototype]:
        without = {"file": asked.meta["file"]} if self.name == OTHER_FILES else None
        return retriever.retrieve([asked.x], k, exclude=[asked], without=without)[0]


def sample(packages: Mapping[str, Sequence[Example]], each: int) -> list[Example]:
    """So many functions of each package, the same ones every time."""
    return [
        example
        for name in sorted(packages)
        for example in random.Random(name).sample(
            list(packages[name]), min(each, len(packages[name]))
        )
    ]


def settings(strict: Functions, paper: Functions, *, split: str, each: int) -> dict[str, Setting]:
    """All settings, with so many questions of each package."""
    packages = strict.test if split == "test" else strict.dev
    asked = sample(packages, each)
    others = sample(paper.test if split == "test" else paper.dev, each)
    return {
        IN_PROJECT: Setting(IN_PROJECT, split, asked, packages),
        OTHER_FILES: Setting(OTHER_FILES, split, asked, packages),
        STRICT: Setting(STRICT, split, asked, {"": strict.train}),
        PAPER: Setting(PAPER, split, others, {"": paper.train}),
    }
