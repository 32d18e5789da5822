"""Examples on disk: a sequence that reads its rows from a JSON Lines file.

A row is found by its byte offset; nothing is cached. Files are immutable: adding examples writes a
new one. Knows no model.
"""

import json
import os
import shutil
import tempfile
import weakref
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import overload

import numpy as np
from numpy.typing import NDArray

from redraft.storage.checks import check_ascending, check_starts, damaged, read_array
from redraft.storage.examples import LINES, Examples, Rows, Values, examples_of, matches
from redraft.storage.locking import is_abandoned, own_directory
from redraft.types import Example, Input, input_digest, normal_input

IN_MEMORY_LIMIT = 100_000
"""This many examples or more go to disk; below half of it they move back into memory."""

CHUNK = 4_096
"""Examples in memory at once when all are read."""

_COPIED = 1 << 20
"""Bytes that are copied at once."""

OFFSETS, IDENTITIES = "offsets.npy", "identities.npy"
_IDENTITY = 16
_DIGESTS = _IDENTITY + 8
"""Bytes of an example's identity, and of it with the digest of its input."""

_SCRATCH = ".scratch-"
_OWNED: dict[Path, int | None] = {}
"""The temporary folders of this process and their locks; others delete those of dead processes."""


def fits_in_memory(count: int) -> bool:
    """Return True if `count` remaining examples should move back into memory."""
    return 2 * count < IN_MEMORY_LIMIT


class OpenFile:
    """A file that stays open: it is read without paging in the rest, even after its deletion."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._descriptor)
        self.size = os.fstat(self._descriptor).st_size

    def read_bytes(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end`."""
        parts = []
        while start < end:
            part = os.pread(self._descriptor, end - start, start)
            if not part:
                raise damaged(self.path, f"it ends before byte {end:,}")
            parts.append(part)
            start += len(part)
        return b"".join(parts)

    def save(self, path: Path) -> None:
        """Hard-link the file to `path`, or copy it if that fails."""
        try:
            os.link(self.path, path)
        except OSError:  # another file system, or the file was deleted since it was opened
            with path.open("wb") as stream:
                for start in range(0, self.size, _COPIED):
                    stream.write(self.read_bytes(start, min(start + _COPIED, self.size)))


class ExampleFile(OpenFile):
    """A JSON Lines file of examples, with the offset and the identity of each line."""

    def __init__(self, lines: Path, offsets: Path, identities: Path) -> None:
        super().__init__(lines)
        self.offsets: Rows = read_array(offsets, np.int64, (None,))
        self.identities = read_array(identities, np.uint8, (None, _DIGESTS))
        check_ascending(offsets, "the starts of lines", self.offsets)
        check_starts(lines, self.offsets, count=len(self.identities), size=self.size)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def lines(self, first: int, count: int) -> list[bytes]:
        """Return the lines of consecutive rows."""
        offsets = self.offsets[first : first + count + 1].tolist()
        text = self.read_bytes(offsets[0], offsets[-1])
        return [text[start - offsets[0] : end - offsets[0]] for start, end in pairwise(offsets)]

    def example(self, row: int) -> Example:
        """Return the example of a row."""
        return parse_line(self.lines(row, 1)[0], self.path, row)

    def examples(self, rows: Rows) -> Iterator[Example]:
        """Yield the examples of `rows`; consecutive rows are read together."""
        for run in _runs(rows):
            for line, row in zip(self.lines(int(run[0]), len(run)), run.tolist(), strict=True):
                yield parse_line(line, self.path, row)


def parse_line(line: bytes, path: Path, row: int) -> Example:
    """Return the example in a line of a saved file."""
    try:
        return Example.from_json(json.loads(line.decode()))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise damaged(path, f"line {row + 1} is not an example") from error


def _runs(rows: Rows) -> Iterator[Rows]:
    """Split rows into runs of consecutive ones, no longer than a chunk."""
    for start in range(0, len(rows), CHUNK):
        part = rows[start : start + CHUNK]
        yield from np.split(part, np.flatnonzero(np.diff(part) != 1) + 1)


class DiskExamples(Examples):
    """A selection of the rows of an example file, in any order."""

    def __init__(self, file: ExampleFile, rows: Rows | None = None) -> None:
        self.file = file
        self.rows: Rows = np.arange(len(file), dtype=np.int64) if rows is None else rows
        self.folder: Path = file.path.parent
        self._last_filter: tuple[str, NDArray[np.bool_]] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, row: int) -> Example: ...

    @overload
    def __getitem__(self, row: slice) -> "DiskExamples": ...

    def __getitem__(self, row: int | slice) -> "Example | DiskExamples":
        if isinstance(row, slice):
            return DiskExamples(self.file, self.rows[row])
        return self.file.example(int(self.rows[row]))

    def __iter__(self) -> Iterator[Example]:
        return self.file.examples(self.rows)

    @property
    def identities(self) -> Iterator[str]:
        """Yield the identity of each example without reading the examples."""
        for start in range(0, len(self), CHUNK):
            for digest in self.file.identities[self.rows[start : start + CHUNK], :_IDENTITY]:
                yield digest.tobytes().hex()

    def with_identity(self, identity: str) -> list[int]:
        """Return the rows with this identity; duplicates share one."""
        try:
            return self._with_digest(bytes.fromhex(identity), slice(0, _IDENTITY))
        except ValueError:
            return []

    def with_input(self, x: Input) -> list[int]:
        """Return the rows whose input equals `x` up to case, white space and punctuation."""
        rows = self._with_digest(input_digest(x), slice(_IDENTITY, _DIGESTS))
        # equal digests of different inputs are possible
        return [row for row in rows if normal_input(self[row].x) == normal_input(x)]

    def _with_digest(self, digest: bytes, columns: slice) -> list[int]:
        wanted = np.frombuffer(digest, np.uint8)
        digests = self.file.identities[:, columns]
        if wanted.shape != digests.shape[1:]:
            return []
        candidates = np.flatnonzero((digests[:, 0] == wanted[0])[self.rows])
        is_same = (digests[self.rows[candidates]] == wanted).all(axis=1)
        return [int(row) for row in candidates[is_same]]

    def take(self, rows: Sequence[int] | Rows) -> Sequence[Example]:
        """Return the examples of `rows`; in memory if they are few."""
        taken = DiskExamples(self.file, self.rows[np.asarray(rows, np.int64)])
        return list(taken) if fits_in_memory(len(taken)) else taken

    def replaced(self, rows: Sequence[int] | Rows, added: Sequence[Example]) -> Sequence[Example]:
        """Return the examples without `rows` and with `added` appended."""
        remaining = self.take(np.delete(np.arange(len(self)), np.asarray(rows, np.int64)))
        if not added:
            return remaining
        if fits_in_memory(len(remaining) + len(added)):
            return [*remaining, *added]
        return spool_examples([remaining, added], scratch(self.folder))

    def after(self, first: list[Example]) -> Sequence[Example]:
        """Return `first` and these examples after them, in a new file."""
        return spool_examples([first, self], scratch(self.folder)) if first else self

    def allowed(self, where: Values, without: Values) -> NDArray[np.bool_]:
        """Return a mask of the rows whose meta has all of `where`, not all of `without`."""
        key = repr((sorted(where.items()), sorted(without.items())))
        # batches of inputs share a filter: read the file once for all of them
        if self._last_filter is None or self._last_filter[0] != key:
            self._last_filter = key, matches(self, where, without)
        return self._last_filter[1]

    def save(self, folder: Path) -> None:
        """Write the files into `folder`; a file that is selected as a whole is linked, not read."""
        if np.array_equal(self.rows, np.arange(len(self.file))):
            for name, part in ((OFFSETS, self.file.offsets), (IDENTITIES, self.file.identities)):
                np.save(folder / name, part, allow_pickle=False)
            self.file.save(folder / LINES)
        else:
            _write([self], folder)


def scratch(folder: Path) -> Path:
    """Return a new temporary folder inside `folder`, for files that are derived from its files.

    Temporary folders of processes that died are deleted first.
    """
    # beside another temporary folder, not inside it: that one may be removed earlier
    base = folder.parent if folder.name.startswith(_SCRATCH) else folder
    # a model that may only be read, or whose folder is gone, can still be changed in memory
    if not os.access(base, os.W_OK):
        return Path(tempfile.mkdtemp(prefix=_SCRATCH))
    for left in base.glob(f"{_SCRATCH}*"):
        if is_abandoned(left):
            shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=_SCRATCH, dir=base))
    _OWNED[folder] = own_directory(folder)
    return folder


def _remove_scratch(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    descriptor = _OWNED.pop(folder, None)
    if descriptor is not None:
        os.close(descriptor)


def remove_with(user: object, folder: Path) -> None:
    """Delete a temporary folder when `user` is garbage-collected, at the latest at exit."""
    weakref.finalize(user, _remove_scratch, folder)


@contextmanager
def removed_on_error(folder: Path) -> Iterator[None]:
    """Delete a temporary folder if the block fails or is interrupted."""
    try:
        yield
    except BaseException:
        _remove_scratch(folder)
        raise


def spool_examples(parts: Sequence[Iterable[Example]], folder: Path) -> DiskExamples:
    """Write the examples of all parts to `folder` and return them as a sequence on disk.

    The folder is created, must be empty, and is deleted when the sequence is garbage-collected.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with removed_on_error(folder):
        _write(parts, folder)
        file = ExampleFile(*(folder / name for name in (LINES, OFFSETS, IDENTITIES)))
    remove_with(file, folder)
    return DiskExamples(file)


def _write(parts: Sequence[Iterable[Example]], folder: Path) -> None:
    offsets, identities = array("q", [0]), bytearray()
    # never overwrite: a saved model may have a hard link to the file
    with (folder / LINES).open("xb") as stream:
        for line, identity in chain.from_iterable(map(_lines, parts)):
            stream.write(line)
            offsets.append(offsets[-1] + len(line))
            identities += identity
    np.save(folder / OFFSETS, np.frombuffer(offsets, np.int64), allow_pickle=False)
    digests = np.frombuffer(identities, np.uint8).reshape(-1, _DIGESTS)
    np.save(folder / IDENTITIES, digests, allow_pickle=False)


def _lines(examples: Iterable[Example]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the line and the digests of each example; those on disk are copied unparsed."""
    if not isinstance(examples, DiskExamples):
        for example in examples:
            yield example.to_line(), bytes.fromhex(example.identity) + input_digest(example.x)
        return
    file = examples.file
    for run in _runs(examples.rows):
        lines = file.lines(int(run[0]), len(run))
        yield from zip(lines, (digest.tobytes() for digest in file.identities[run]), strict=True)


def gather(examples: Iterable[Example], folder: Path) -> Sequence[Example]:
    """Return the examples as a list, or, if there are many, in a temporary folder inside `folder`.

    The temporary folder is deleted when the examples are no longer used.
    """
    remaining = iter(examples)
    first = list(islice(remaining, IN_MEMORY_LIMIT))
    if len(first) < IN_MEMORY_LIMIT:
        return first
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return spool_examples([_drain(first), remaining], scratch(folder))
    except BaseException:
        if is_new:
            folder.rmdir()
        raise


def _drain(examples: list[Example]) -> Iterator[Example]:
    """Yield the examples in order and remove each from the list, to free its memory."""
    examples.reverse()
    while examples:
        yield examples.pop()


def take(examples: Sequence[Example], rows: Sequence[int] | Rows) -> Sequence[Example]:
    """Return the examples of `rows`: a list, or a sequence on disk if they are many."""
    return examples_of(examples).take(rows)


def draw_rows(count: int, most: int, *, seed: int) -> list[int]:
    """Draw at most `most` of `count` rows without replacement; return them in ascending order."""
    if count <= most:
        return list(range(count))
    rows: list[int] = np.sort(np.random.default_rng(seed).choice(count, most, False)).tolist()
    return rows


def chunks(examples: Sequence[Example]) -> Iterator[list[Example]]:
    """Yield the examples in order, `CHUNK` at a time."""
    remaining = iter(examples)
    while chunk := list(islice(remaining, CHUNK)):
        yield chunk
