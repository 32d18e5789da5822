"""Vectors on disk: written in parts, read by row."""

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from redraft.index.base import VECTORS, Vectors, exact_search
from redraft.index.neighbours import Neighbours
from redraft.storage.arrays import appended
from redraft.storage.checks import read_array
from redraft.storage.disk import OpenFile

PART = 16_384
"""Vectors in memory at once when all are read."""


class VectorFile(OpenFile):
    """Vectors in a NumPy file, memory-mapped; `take` reads single rows without paging in others."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.vectors: Vectors = read_array(path, np.float32, (None, None))
        self._start = int(self.vectors.offset)  # type: ignore[attr-defined]
        self._row_bytes = self.vectors.itemsize * self.vectors.shape[1]

    @classmethod
    def write(cls, folder: Path, parts: Iterable[Vectors], *, count: int) -> "VectorFile":
        """Write all parts, `count` vectors together, to a file in `folder` and open it."""
        remaining = iter(parts)
        first = next(remaining)
        with appended(folder / VECTORS, (count, first.shape[1]), np.float32) as append:
            for part in chain([first], remaining):
                append(part)
        return cls(folder / VECTORS)

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def width(self) -> int:
        """The dimension of the vectors."""
        return int(self.vectors.shape[1])

    def take(self, rows: NDArray[np.int64]) -> Vectors:
        """Return the vectors of `rows`."""
        taken = np.empty((len(rows), self.width), np.float32)
        for i, row in enumerate(rows.tolist()):
            taken[i] = self._read(row, 1)
        return taken

    def parts(self) -> Iterator[Vectors]:
        """Yield all vectors in order, `PART` at a time."""
        for first in range(0, len(self), PART):
            yield self._read(first, min(PART, len(self) - first)).reshape(-1, self.width)

    def _read(self, row: int, count: int) -> Vectors:
        """Read `count` consecutive rows as a flat array."""
        start = self._start + row * self._row_bytes
        return np.frombuffer(self.read_bytes(start, start + count * self._row_bytes), np.float32)

    def nearest(self, queries: Vectors, k: int) -> Neighbours:
        """Return the k nearest rows of each query by brute force, reading the file once."""
        best = Neighbours.none(len(queries))
        first = 0
        for part in self.parts():
            best = best.merge(exact_search(part, queries, k), k, first=first)
            first += len(part)
        return best
