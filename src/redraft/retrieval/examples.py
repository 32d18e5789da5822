"""The examples of a retriever: a list, many in a file, or kept outside of this process.

Neither is ever changed: exchanging examples gives another sequence. Knows no vectors and no words.
"""

import weakref
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from redraft.data.example import Example
from redraft.data.filed import FiledExamples, file_examples, scratch

if TYPE_CHECKING:
    from redraft.retrieval.index import Index

Values = Mapping[str, Any]
"""What the meta of an example must have, or must not have."""


class KeptExamples(Sequence[Example]):
    """Examples kept elsewhere, where they are filtered and their vectors are searched too."""

    @property
    @abstractmethod
    def vector_index(self) -> "Index":
        """The vectors of these very rows."""

    @abstractmethod
    def exchanged(self, rows: Sequence[int], added: Sequence[Example]) -> "KeptExamples":
        """Without the examples of these rows and with the given ones after the rest."""

    @abstractmethod
    def allowed(self, where: Values, without: Values) -> NDArray[np.bool_]:
        """Which rows have these values in their meta, and have not those."""


def exchanged(
    examples: Sequence[Example], rows: Sequence[int], added: Sequence[Example]
) -> Sequence[Example]:
    """The examples without these rows, and with the given ones after the rest."""
    if isinstance(examples, KeptExamples | FiledExamples):
        return examples.exchanged(rows, added)
    removed = set(rows)
    kept = [each for row, each in enumerate(examples) if row not in removed]
    if isinstance(added, FiledExamples):
        return file_examples([kept, added], scratch(added.folder)) if kept else added
    return [*kept, *added]


def allowed(
    examples: Sequence[Example], where: Values | None, without: Values | None
) -> NDArray[np.bool_] | None:
    """Which examples a filter keeps; None for all of them."""
    if not (where or without):
        return None
    if isinstance(examples, KeptExamples):
        return examples.allowed(where or {}, without or {})
    if isinstance(examples, FiledExamples):
        return _allowed_in_file(examples, where or {}, without or {})
    return matches(examples, where or {}, without or {})


_LAST: "weakref.WeakKeyDictionary[FiledExamples, tuple[str, NDArray[np.bool_]]]"
_LAST = weakref.WeakKeyDictionary()
"""The filter that each file was read for last: batches of inputs ask for the same one."""


def _allowed_in_file(examples: FiledExamples, where: Values, without: Values) -> NDArray[np.bool_]:
    asked = repr((sorted(where.items()), sorted(without.items())))
    known, found = _LAST.get(examples, ("", np.zeros(0, np.bool_)))
    if known != asked:
        found = matches(examples, where, without)
        _LAST[examples] = asked, found
    return found


def matches(examples: Sequence[Example], where: Values, without: Values) -> NDArray[np.bool_]:
    """Which examples have these values in their meta, and have not those."""
    kept = (
        _has(example, where) and not (without and _has(example, without)) for example in examples
    )
    return np.fromiter(kept, np.bool_, count=len(examples))


def _has(example: Example, values: Values) -> bool:
    return all(str(example.meta.get(key)) == str(value) for key, value in values.items())
