"""Read pair sets from a folder: a subfolder per set with train.jsonl, dev.jsonl or test.jsonl."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from redraft.data.pairs import read_pairs
from redraft.errors import PairsError, listed
from redraft.types import Example

TRAIN = "train"

QUESTION_SPLIT = "-question"
"""The ending of sets whose asked query templates stand in train with other values and words."""


@dataclass(frozen=True)
class PairSet:
    """A set: the pairs to fit on, and those of a split to answer."""

    name: str
    split: str
    train: Sequence[Example]
    asked: Sequence[Example]


def is_question_split(name: str) -> bool:
    """Return True if the set called `name` asks known templates with other values and words."""
    return name.endswith(QUESTION_SPLIT)


def set_names(folder: Path, split: str, chosen: Collection[str] = ()) -> list[str]:
    """Return the names of the sets in `folder` with this split: the `chosen` ones, or all.

    Raises a `PairsError` if there is none, or if a chosen one is missing.
    """
    found = sorted(
        path.parent.name
        for path in folder.glob(f"*/{TRAIN}.jsonl")
        if (path.parent / f"{split}.jsonl").exists()
    )
    missing = [name for name in chosen if name not in found]
    if missing or not found:
        what = f"no set {missing[0]!r}" if missing else "no set"
        raise PairsError(
            f"{folder}: {what} with {TRAIN}.jsonl and {split}.jsonl; "
            f"sets that are there: {listed(found) if found else 'none'}"
        )
    return [name for name in found if not chosen or name in chosen]


def read_sets(folder: Path, split: str, names: Collection[str]) -> Iterator[PairSet]:
    """Yield the sets called `names`, each read when it is needed."""
    for name in names:
        parts = (read_pairs(folder / name / f"{part}.jsonl") for part in (TRAIN, split))
        yield PairSet(name, split, *parts)
