"""Vectors in a file and not in memory: written part by part, read by rows."""

import os
import weakref
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from redraft.data.arrays import appended, mapped
from redraft.errors import ModelError
from redraft.retrieval.index import Vectors
from redraft.retrieval.neighbours import Neighbours, nearest

PART = 16_384
"""Vectors that are in memory at once where all are gone through."""

VECTORS = "vectors.npy"


class VectorFile:
    """The vectors of a NumPy file, mapped; taken rows are read without what stands around them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.vectors: Vectors = mapped(path)  # (N, D)
        self._start = int(self.vectors.offset)  # type: ignore[attr-defined]
        self._row = self.vectors.itemsize * self.vectors.shape[1]
        self._descriptor = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._descriptor)

    @classmethod
    def write(cls, folder: Path, parts: Iterable[Vectors], *, count: int) -> "VectorFile":
        """The vectors of all parts, so many together, in a file of this folder."""
        coming = iter(parts)
        first = next(coming)
        with appended(folder / VECTORS, (count, first.shape[1]), np.float32) as append:
            for part in chain([first], coming):
                append(part)
        return cls(folder / VECTORS)

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def width(self) -> int:
        """How long each row is."""
        return int(self.vectors.shape[1])

    def take(self, rows: NDArray[np.int64]) -> Vectors:
        """The vectors of these rows."""
        taken = np.empty((len(rows), self.width), np.float32)
        for at, row in enumerate(rows.tolist()):
            taken[at] = self._read(row, 1)
        return taken

    def parts(self) -> Iterator[Vectors]:
        """All vectors in their order, some at a time."""
        for first in range(0, len(self), PART):
            yield self._read(first, min(PART, len(self) - first)).reshape(-1, self.width)

    def _read(self, row: int, count: int) -> Vectors:
        """The numbers of consecutive rows."""
        size = count * self._row
        held = os.pread(self._descriptor, size, self._start + row * self._row)
        if len(held) < size:
            raise ModelError(f"{self.path}: ends before row {row}; copy or fit the model again")
        return np.frombuffer(held, np.float32)

    def nearest(self, queries: Vectors, k: int) -> Neighbours:
        """The k nearest rows of each query by comparison with all."""
        best = Neighbours.none(len(queries))
        first = 0
        for part in self.parts():
            distances = (2 - 2 * (queries @ part.T)).clip(min=0)
            found = nearest(distances, k)
            both = Neighbours(
                np.concatenate([best.rows, found.rows + first], axis=1),
                np.concatenate([best.distances, found.distances], axis=1),
            )
            best = both.nearest(k)
            first += len(part)
        return best

    def save(self, path: Path) -> None:
        """Give the file a second name; it is copied only where that cannot be."""
        try:
            os.link(self.path, path)
        except OSError:  # on another disk, or its name is gone since it was opened
            with appended(path, self.vectors.shape, np.float32) as append:
                for part in self.parts():
                    append(part)
