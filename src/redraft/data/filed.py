"""Many examples in a file and not in memory: a sequence like any other, read row by row.

A row is a line of JSON that is found by its offset, and nothing of it is kept once it was read. A
file is never changed: adding examples writes another one. Knows no model.
"""

import json
import os
import shutil
import tempfile
import weakref
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import overload

import numpy as np
from numpy.typing import NDArray

from redraft.data.example import Example
from redraft.errors import ModelError

MANY = 100_000
"""From so many examples on they are kept in a file, and until half of them are left."""

CHUNK = 4_096
"""So many examples are in memory at once where all are gone through."""

LINES, OFFSETS, IDENTITIES = "examples.jsonl", "offsets.npy", "identities.npy"
_SCRATCH = ".staging-"
_ADVICE = "copy or fit the model again"

Rows = NDArray[np.int64]


def are_few(count: int) -> bool:
    """Whether so many, of more that were in a file, are kept in memory."""
    return 2 * count < MANY


class ExampleFile:
    """The lines of a file of examples, where each begins, and the identity of each."""

    def __init__(self, lines: Path, offsets: Path, identities: Path) -> None:
        self.path = lines
        try:
            self.offsets: Rows = np.load(offsets, mmap_mode="r", allow_pickle=False)
            self.identities = np.load(identities, mmap_mode="r", allow_pickle=False)  # (N, 16)
            self._descriptor = os.open(lines, os.O_RDONLY)
        except (OSError, ValueError) as error:
            raise ModelError(f"{lines}: damaged ({error}); {_ADVICE}") from error
        weakref.finalize(self, os.close, self._descriptor)
        size = os.fstat(self._descriptor).st_size
        is_whole = len(self.identities) + 1 == len(self.offsets) and size == self.offsets[-1]
        if not is_whole:
            raise ModelError(f"{lines}: truncated or altered; {_ADVICE}")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def read(self, first: int, count: int = 1) -> bytes:
        """The lines of consecutive rows."""
        start, end = int(self.offsets[first]), int(self.offsets[first + count])
        parts = []
        while start < end:
            part = os.pread(self._descriptor, end - start, start)
            if not part:
                raise ModelError(f"{self.path}: ends before row {first + count}; {_ADVICE}")
            parts.append(part)
            start += len(part)
        return b"".join(parts)

    def save(self, path: Path) -> None:
        """Give the lines a second name; they are copied only where that cannot be."""
        try:
            os.link(self.path, path)
        except OSError:  # on another disk, or its name is gone since it was opened
            with path.open("wb") as stream:
                for first in range(0, len(self), CHUNK):
                    stream.write(self.read(first, min(CHUNK, len(self) - first)))

    def example(self, row: int) -> Example:
        """The example of a row."""
        return self._parse(self.read(row), row)

    def examples(self, rows: Rows) -> Iterator[Example]:
        """The examples of ascending rows, neighbours read together."""
        for run in _runs(rows):
            lines = self.read(int(run[0]), len(run)).splitlines(keepends=True)
            yield from map(self._parse, lines, run.tolist())

    def _parse(self, line: bytes, row: int) -> Example:
        try:
            return Example.from_json(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ModelError(f"{self.path}:{row + 1}: not an example; {_ADVICE}") from error


def _runs(rows: Rows) -> Iterator[Rows]:
    """The rows cut where the next is not the one after, and into chunks."""
    for start in range(0, len(rows), CHUNK):
        part = rows[start : start + CHUNK]
        yield from np.split(part, np.flatnonzero(np.diff(part) != 1) + 1)


class FiledExamples(Sequence[Example]):
    """Some rows of a file of examples, in any order."""

    def __init__(self, file: ExampleFile, rows: Rows | None = None) -> None:
        self.file = file
        self.rows: Rows = np.arange(len(file), dtype=np.int64) if rows is None else rows

    @property
    def folder(self) -> Path:
        """Where the file is, and where others may be made from it."""
        return self.file.path.parent

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, row: int) -> Example: ...

    @overload
    def __getitem__(self, row: slice) -> "FiledExamples": ...

    def __getitem__(self, row: int | slice) -> "Example | FiledExamples":
        if isinstance(row, slice):
            return FiledExamples(self.file, self.rows[row])
        return self.file.example(int(self.rows[row]))

    def __iter__(self) -> Iterator[Example]:
        return self.file.examples(self.rows)

    @property
    def identities(self) -> Iterator[str]:
        """The identity of each example; none of them is read."""
        for start in range(0, len(self), CHUNK):
            for digest in self.file.identities[self.rows[start : start + CHUNK]]:
                yield digest.tobytes().hex()

    def with_identity(self, identity: str) -> list[int]:
        """The rows of an identity, which duplicates share."""
        try:
            digest = np.frombuffer(bytes.fromhex(identity), np.uint8)
        except ValueError:
            return []
        if digest.shape != self.file.identities.shape[1:]:
            return []
        first = self.file.identities[:, 0] == digest[0]
        held = np.flatnonzero(first[self.rows])
        same = (self.file.identities[self.rows[held]] == digest).all(axis=1)
        return [int(row) for row in held[same]]

    def picked(self, rows: Sequence[int] | Rows) -> Sequence[Example]:
        """The examples of these rows; in memory if they are few."""
        chosen = FiledExamples(self.file, self.rows[np.asarray(rows, np.int64)])
        return list(chosen) if are_few(len(chosen)) else chosen

    def exchanged(self, rows: Sequence[int] | Rows, added: Sequence[Example]) -> Sequence[Example]:
        """Without the examples of these rows, and with the given ones after the rest."""
        kept = self.picked(np.delete(np.arange(len(self)), np.asarray(rows, np.int64)))
        if not added:
            return kept
        if are_few(len(kept) + len(added)):
            return [*kept, *added]
        return file_examples([kept, added], scratch(self.folder))

    def save(self, folder: Path) -> None:
        """Write the files into a folder; where all rows are kept, nothing of them is read."""
        if np.array_equal(self.rows, np.arange(len(self.file))):
            for name, part in ((OFFSETS, self.file.offsets), (IDENTITIES, self.file.identities)):
                np.save(folder / name, part, allow_pickle=False)
            self.file.save(folder / LINES)
        else:
            _write([self], folder)


def scratch(folder: Path) -> Path:
    """A new folder for files that are derived from those of this one."""
    # beside one that was made so itself: that may be removed before this one
    base = folder.parent if folder.name.startswith(_SCRATCH) else folder
    # a model that may only be read, or whose folder is gone, can still be changed in memory
    place = base if os.access(base, os.W_OK) else None
    return Path(tempfile.mkdtemp(prefix=_SCRATCH, dir=place))


def remove_with(owner: object, folder: Path) -> None:
    """Remove a scratch folder when its owner is not used any more, at the latest at the end."""
    weakref.finalize(owner, shutil.rmtree, folder, ignore_errors=True)


@contextmanager
def removed_on_error(folder: Path) -> Iterator[None]:
    """Remove a scratch folder if what is made in it fails, or is stopped."""
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def file_examples(parts: Sequence[Iterable[Example]], folder: Path) -> FiledExamples:
    """The examples of all parts in a file of this folder, which is removed when they are not used.

    The folder is made, and holds nothing else.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with removed_on_error(folder):
        _write(parts, folder)
        file = ExampleFile(*(folder / name for name in (LINES, OFFSETS, IDENTITIES)))
    remove_with(file, folder)
    return FiledExamples(file)


def _write(parts: Sequence[Iterable[Example]], folder: Path) -> None:
    offsets, identities = array("q", [0]), bytearray()
    # never over lines that are there: a saved model may have them by a second name
    with (folder / LINES).open("xb") as stream:
        for line, identity in chain.from_iterable(map(_lines, parts)):
            stream.write(line)
            offsets.append(offsets[-1] + len(line))
            identities += identity
    np.save(folder / OFFSETS, np.frombuffer(offsets, np.int64), allow_pickle=False)
    held = np.frombuffer(identities, np.uint8).reshape(-1, 16)
    np.save(folder / IDENTITIES, held, allow_pickle=False)


def _lines(examples: Iterable[Example]) -> Iterator[tuple[bytes, bytes]]:
    """The line and the identity of each example; those of a file as they stand there."""
    if not isinstance(examples, FiledExamples):
        yield from ((each.to_line(), bytes.fromhex(each.identity)) for each in examples)
        return
    file = examples.file
    for run in _runs(examples.rows):
        lines = file.read(int(run[0]), len(run)).splitlines(keepends=True)
        yield from zip(lines, (each.tobytes() for each in file.identities[run]), strict=True)


def gather(examples: Iterable[Example], folder: Path) -> Sequence[Example]:
    """The examples as a list; where they are many, as a file in this folder.

    It is made, and removed when they are not used; of one that is there, only what was put there.
    """
    coming = iter(examples)
    few = list(islice(coming, MANY))
    if len(few) < MANY:
        return few
    place = scratch(folder) if folder.exists() else folder
    return file_examples([_emptied(few), coming], place)


def _emptied(examples: list[Example]) -> Iterator[Example]:
    """The examples in their order, each given up once it is passed on."""
    examples.reverse()
    while examples:
        yield examples.pop()


def pick(examples: Sequence[Example], rows: Sequence[int] | Rows) -> Sequence[Example]:
    """The examples of these rows: a list, or many in a file."""
    if isinstance(examples, FiledExamples):
        return examples.picked(rows)
    return [examples[row] for row in rows]


def draw_rows(count: int, most: int, *, seed: int) -> list[int]:
    """So many of all rows, drawn without replacement, ascending; all if they are no more."""
    if count <= most:
        return list(range(count))
    drawn: list[int] = np.sort(np.random.default_rng(seed).choice(count, most, False)).tolist()
    return drawn


def chunks(examples: Sequence[Example]) -> Iterator[list[Example]]:
    """The examples in their order, so many at a time as may be in memory."""
    coming = iter(examples)
    while part := list(islice(coming, CHUNK)):
        yield part


def identities(examples: Iterable[Example]) -> Iterator[str]:
    """The identity of each example; those in a file are not read for it."""
    if isinstance(examples, FiledExamples):
        return examples.identities
    return (example.identity for example in examples)
