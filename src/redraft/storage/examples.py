"""The interface of example sequences, and examples in memory.

`DiskExamples` (`disk`) and `PostgresExamples` (`redraft.postgres`) implement the same interface, so
other code never asks where examples are stored. Sequences are immutable: replacing examples returns
a new one. Knows no words.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from redraft.storage.rows_by_key import RowsByKey
from redraft.types import Example, Input, normal_input

if TYPE_CHECKING:
    from redraft.index.base import Index

LINES = "examples.jsonl"

MAX_MASKS = 8
"""Masks of filters that examples in memory keep: a code base in several languages has one each."""

Rows = NDArray[np.int64]
Values = Mapping[str, Any]
"""Values of a filter on the meta of examples."""


class Examples(Sequence[Example]):
    """An immutable sequence of examples; the defaults are those of examples in memory."""

    folder: Path | None = None
    """The folder of examples on disk; derived files go to temporary folders inside it."""

    @property
    def is_on_disk(self) -> bool:
        """True if the examples are too many for memory: read them in chunks or draw a sample."""
        return self.folder is not None

    @property
    def vector_index(self) -> "Index | None":
        """The index of the examples' vectors if they are stored together."""
        return None

    @property
    def identities(self) -> Iterator[str]:
        """Yield the identity of each example."""
        return (example.identity for example in self)

    def with_identity(self, identity: str) -> list[int]:
        """Return the rows with this identity; duplicates share one."""
        return self._rows_by_identity[identity]

    @cached_property
    def _rows_by_identity(self) -> RowsByKey[str]:
        return RowsByKey.of(self.identities)

    def with_input(self, x: Input) -> list[int]:
        """Return the rows whose input equals `x` up to case, white space and punctuation."""
        return self._rows_by_input[normal_input(x)]

    @cached_property
    def _rows_by_input(self) -> RowsByKey[tuple[str, ...]]:
        return RowsByKey.of(normal_input(example.x) for example in self)

    def take(self, rows: Sequence[int] | Rows) -> Sequence[Example]:
        """Return the examples of `rows`: a list, or a sequence on disk if they are many."""
        return [self[int(row)] for row in rows]

    @abstractmethod
    def replaced(self, rows: Sequence[int], added: Sequence[Example]) -> Sequence[Example]:
        """Return the examples without `rows` and with `added` appended."""

    def after(self, first: list[Example]) -> Sequence[Example]:
        """Return `first` and these examples after them."""
        return [*first, *self]

    def allowed(self, where: Values, without: Values) -> NDArray[np.bool_]:
        """Return a mask of the rows whose meta has all of `where`, not all of `without`."""
        return matches(self, where, without)

    def save(self, folder: Path) -> None:
        """Write the examples into an existing, empty folder."""
        with (folder / LINES).open("wb") as stream:
            stream.writelines(example.to_line() for example in self)

    # Examples in an external store; elsewhere there is nothing to do.

    @property
    def store_name(self) -> str | None:
        """The name of the model in its external store; None without a store."""
        return None

    @property
    def added(self) -> range:
        """The rows of examples that are not written to the store yet."""
        return range(0)

    def write(self, vectors: NDArray[np.float32] | None) -> None:
        """Write the pending changes to the store; `vectors` are those of the added rows."""

    def refreshed(self) -> Self:
        """Return the current examples of the store, without pending changes; self if unchanged."""
        return self

    def wait(self, seconds: float) -> None:
        """Wait at most `seconds` for another process to change the store."""


class InMemoryExamples(Examples):
    """Examples in a list."""

    def __init__(self, examples: Sequence[Example]) -> None:
        self._examples = examples
        self._masks: dict[tuple[object, ...], NDArray[np.bool_]] = {}

    def __len__(self) -> int:
        return len(self._examples)

    @overload
    def __getitem__(self, row: int) -> Example: ...

    @overload
    def __getitem__(self, row: slice) -> Sequence[Example]: ...

    def __getitem__(self, row: int | slice) -> Example | Sequence[Example]:
        return self._examples[row]

    def allowed(self, where: Values, without: Values) -> NDArray[np.bool_]:
        """Return a mask of the rows whose meta has all of `where`, not all of `without`."""
        key = tuple(
            tuple((name, str(value)) for name, value in v.items()) for v in (where, without)
        )
        mask = self._masks.get(key)
        if mask is None:
            mask = super().allowed(where, without)
            mask.flags.writeable = False
            if len(self._masks) >= MAX_MASKS:
                self._masks = {}
            self._masks[key] = mask
        return mask

    def replaced(self, rows: Sequence[int], added: Sequence[Example]) -> Sequence[Example]:
        """Return the examples without `rows` and with `added` appended."""
        kept = list(self._examples)
        if len(rows):
            is_kept = np.ones(len(kept), np.bool_)
            is_kept[np.asarray(rows, np.int64)] = False
            kept = list(compress(kept, is_kept.tolist()))
        remaining = examples_of(added).after(kept)
        if is_on_disk(remaining):
            return remaining
        changed = InMemoryExamples(remaining)
        # indexes that were needed before will be needed again
        if "_rows_by_identity" in self.__dict__:
            identities = [example.identity for example in added]
            changed._rows_by_identity = self._rows_by_identity.replaced(rows, identities)
        if "_rows_by_input" in self.__dict__:
            inputs = [normal_input(example.x) for example in added]
            changed._rows_by_input = self._rows_by_input.replaced(rows, inputs)
        return changed


def examples_of(examples: Sequence[Example]) -> Examples:
    """Return `examples`, as `InMemoryExamples` if they are a plain sequence."""
    return examples if isinstance(examples, Examples) else InMemoryExamples(examples)


def is_on_disk(examples: Iterable[Example]) -> bool:
    """Return True if `examples` are too many for memory."""
    return isinstance(examples, Examples) and examples.is_on_disk


def collected(examples: Iterable[Example]) -> Sequence[Example]:
    """Return `examples` in a list, unless they are on disk."""
    return examples if isinstance(examples, Examples) and examples.is_on_disk else list(examples)


def replaced(
    examples: Sequence[Example], rows: Sequence[int], added: Sequence[Example]
) -> Sequence[Example]:
    """Return the examples without `rows` and with `added` appended."""
    return examples_of(examples).replaced(rows, added)


def allowed(
    examples: Sequence[Example], where: Values | None, without: Values | None
) -> NDArray[np.bool_] | None:
    """Return a mask of the examples that a filter selects; None without a filter."""
    if not (where or without):
        return None
    return examples_of(examples).allowed(where or {}, without or {})


def matches(examples: Sequence[Example], where: Values, without: Values) -> NDArray[np.bool_]:
    """Return a mask of the examples whose meta has all of `where`, not all of `without`."""
    is_match = (
        _has(example, where) and not (without and _has(example, without)) for example in examples
    )
    return np.fromiter(is_match, np.bool_, count=len(examples))


def _has(example: Example, values: Values) -> bool:
    return all(str(example.meta.get(key)) == str(value) for key, value in values.items())
