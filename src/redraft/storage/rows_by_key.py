"""The rows of each key, such as an identity, kept up to date when rows are removed and appended."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Key = TypeVar("Key", bound=Hashable)


class RowsByKey(Generic[Key]):
    """Maps keys to ids, and ids to rows: of a removed row no other key has to change.

    Immutable. Ids count the rows that were ever appended; a removed one has the row -1.
    """

    def __init__(self, ids: dict[Key, list[int]], rows: NDArray[np.int64]) -> None:
        self._ids = ids
        self._rows = rows

    @classmethod
    def of(cls, keys: Iterable[Key]) -> "RowsByKey[Key]":
        """Return the rows of the keys of all rows, in order."""
        ids: dict[Key, list[int]] = {}
        count = 0
        for key in keys:
            ids.setdefault(key, []).append(count)
            count += 1
        return cls(ids, np.arange(count))

    def __getitem__(self, key: Key) -> list[int]:
        """Return the rows of a key, ascending; none for an unknown key."""
        rows = (int(self._rows[own]) for own in self._ids.get(key, ()))
        return [row for row in rows if row >= 0]

    def replaced(self, removed: Sequence[int], added: Sequence[Key]) -> "RowsByKey[Key]":
        """Return the rows without the `removed` ones and with rows of the `added` keys appended."""
        is_left = self._rows >= 0
        is_left[np.flatnonzero(is_left)[np.asarray(removed, np.int64)]] = False
        if 2 * np.count_nonzero(is_left) < len(is_left):
            return self._of_left(is_left).replaced([], added)
        ids = dict(self._ids) if added else self._ids
        for own, key in enumerate(added, start=len(is_left)):
            ids[key] = [*ids.get(key, ()), own]
        is_left = np.append(is_left, np.ones(len(added), np.bool_))
        return RowsByKey(ids, np.where(is_left, np.cumsum(is_left) - 1, -1))

    def _of_left(self, is_left: NDArray[np.bool_]) -> "RowsByKey[Key]":
        """Return the rows with an id each, and without keys that have no row."""
        rows = np.cumsum(is_left) - 1
        ids = {
            key: left
            for key, owned in self._ids.items()
            if (left := [int(rows[own]) for own in owned if is_left[own]])
        }
        return RowsByKey(ids, np.arange(np.count_nonzero(is_left)))
