"""The functions of a project that are most similar to the one at the cursor, with weights.

Candidates are retrieved functions and those of the same file. A softmax over a few similarities of
the headers weights them: how probable it is that the body begins like theirs.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from redraft.completion.languages.base import Language, kind_of
from redraft.completion.languages.python.language import PYTHON
from redraft.completion.ngram_index import NgramIndex
from redraft.completion.renaming import name_parts
from redraft.types import Example, Input, Prototype

MAX_SIMILAR = 16
"""Functions that are kept."""

MAX_SAME_FILE = 20
"""Functions of the same file that compete although they were not retrieved: the nearest ones."""

LINES_NEAR = 30
"""Lines at which the nearness of a function is a half."""

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class SimilarFunction:
    """A function, its share of the softmax, and the score that it comes from."""

    prototype: Prototype
    probability: float
    score: float


@dataclass(frozen=True)
class Place:
    """The indexed file of the cursor and its line in it, as far as they are known."""

    file: str | None
    line: int | None = None

    def nearness(self, example: Example) -> float:
        """Return 1 for an example at the cursor, less if it is farther, 0 in another file."""
        line = example.meta.get("line")
        if self.line is None or not isinstance(line, int) or example.meta.get("file") != self.file:
            return 0.0
        return 1 / (1 + abs(self.line - line) / LINES_NEAR)


def similarities(
    x: Input,
    example: Example,
    *,
    rank: int | None,
    place: Place,
    language: Language = PYTHON,
) -> list[float]:
    """Return the features of a function: `rank` is that of retrieval, None if not retrieved."""
    file = place.file
    names = name_parts(x["name"]), name_parts(example.x["name"])
    arguments = [language.argument_names(one["arguments"]) for one in (x, example.x)]
    documented = _words(x["docstring"]), _words(example.x["docstring"])
    other = str(example.meta.get("file"))
    return [
        0.0 if rank is None else 1 / (1 + rank),
        0.0 if rank is None else 1.0,
        _jaccard(*map(set, names)),
        float(names[0][:1] == names[1][:1]),
        float(names[0][-1:] == names[1][-1:]),
        _jaccard(*map(set, arguments)),
        float(len(arguments[0]) == len(arguments[1])),
        _jaccard(*documented),
        float(bool(documented[0]) == bool(documented[1])),
        float(other == file),
        float(file is not None and other.rpartition("/")[0] == file.rpartition("/")[0]),
        place.nearness(example),
    ]


def similar_functions(
    x: Input,
    retrieved: Sequence[Prototype],
    index: NgramIndex,
    weights: NDArray[np.float64],
    *,
    place: Place,
) -> list[SimilarFunction]:
    """Return the most similar functions, best first; leaves out the function itself."""
    candidates: list[tuple[Prototype, int | None]] = [
        (prototype, rank) for rank, prototype in enumerate(retrieved)
    ]
    seen = {id(prototype.example) for prototype in retrieved}
    for example in near_functions(index, place):
        if id(example) not in seen:
            candidates.append((Prototype(example, 1.0), None))
    candidates = [
        (prototype, rank)
        for prototype, rank in candidates
        if kind_of(prototype.example.x) == kind_of(x)
        and not is_same_function(prototype.example, x, place.file)
    ]
    if not candidates:
        return []
    features = [
        similarities(x, prototype.example, rank=rank, place=place, language=index.language)
        for prototype, rank in candidates
    ]
    scores = np.asarray(features) @ weights
    exponentials = np.exp(scores - scores.max())
    shares = exponentials / exponentials.sum()
    best = np.argsort(-scores, kind="stable")[:MAX_SIMILAR]
    return [SimilarFunction(candidates[i][0], float(shares[i]), float(scores[i])) for i in best]


def near_functions(index: NgramIndex, place: Place) -> list[Example]:
    """Return the functions of the same file that are nearest to the cursor."""
    functions = [index.examples[row] for row in index.rows_of_file.get(place.file or "", [])]
    return sorted(functions, key=place.nearness)[-MAX_SAME_FILE:]


def is_same_function(example: Example, x: Input, file: str | None) -> bool:
    """Return True if the example is the indexed copy of the function at the cursor."""
    if example.x != x:
        return False
    return bool(x["docstring"]) if file is None else example.meta.get("file") == file


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def _jaccard(left: set[str], right: set[str]) -> float:
    return len(left & right) / len(left | right) if left or right else 0.0
