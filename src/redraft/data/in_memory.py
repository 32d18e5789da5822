"""Examples from Python objects: tuples, rows, pandas DataFrames and Hugging Face datasets.

Tables are recognised by their methods, so that neither pandas nor datasets is a dependency.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from redraft.data.pairs import example_or_reason
from redraft.data.tables import Columns, Layout
from redraft.errors import PairsError, listed
from redraft.storage.examples import Examples
from redraft.types import Example

Source = Iterable[Example | tuple[Any, ...] | Mapping[str, Any]] | Any
"""Examples, tuples (x, y) or (x, y, meta), rows with x and y, a DataFrame or a dataset.

With columns, rows may have any keys."""


def examples_from(source: Source, columns: Columns) -> Sequence[Example]:
    """Return the examples of `source`; `columns` name those of a table.

    Raises `PairsError` at the first row that is no example, with its number.
    """
    if isinstance(source, Examples) and source.is_on_disk:
        return source
    examples: list[Example] = []
    for number, row in enumerate(_rows(source, columns), start=1):
        if isinstance(row, Example):
            examples.append(row)
            continue
        first = tuple(examples[0].x) if examples else None
        outcome = example_or_reason(row, first)
        if isinstance(outcome, str):
            raise PairsError(f"example {number}: {outcome}")
        examples.append(outcome)
    return examples


def _rows(source: Source, columns: Columns) -> Iterator[Any]:
    """Yield the examples of a source, or their JSON-like rows."""
    if isinstance(source, Mapping) and source and all(_header(part) for part in source.values()):
        raise PairsError(f"expected one dataset, got several: {listed(source)}; give one of them")
    if isinstance(source, str | bytes | Mapping) or not isinstance(source, Iterable):
        raise PairsError(
            f"expected examples, got {type(source).__name__}; read a file with "
            "redraft.read_pairs, or give a list of (input, output)"
        )
    name, header = f"this {type(source).__name__}", _header(source)
    if header is None and columns != Columns():
        source, header = _with_header(source)
    if header is None:
        yield from map(_pair, source)
        return
    layout = Layout.of(header, columns, name, spell=lambda two: f" columns=redraft.{two}")
    records: Iterable[Any] = source
    if hasattr(source, "itertuples"):
        tuples = source.itertuples(index=False, name=None)
        records = (dict(zip(header, record, strict=True)) for record in tuples)
    for record in records:
        if not isinstance(record, Mapping):
            yield _pair(record)
            continue
        cells = {name: _plain(record.get(name)) for name in header}
        for used in (*layout.inputs.values(), layout.output):
            cells[used] = "" if cells[used] is None else cells[used]
        yield layout.pair(cells)


def _with_header(source: Iterable[Any]) -> tuple[Iterable[Any], list[str] | None]:
    """Return a source again, and the keys of its first row; None if that is no mapping."""
    rows = iter(source)
    first = list(islice(rows, 1))
    header = list(first[0]) if first and isinstance(first[0], Mapping) else None
    return chain(first, rows), header


def _header(source: Any) -> list[str] | None:
    """Return the column names of a DataFrame or dataset; None for anything else."""
    names = getattr(source, "columns" if hasattr(source, "itertuples") else "column_names", None)
    return None if names is None else [str(name) for name in names]


def _pair(row: Any) -> Any:
    """Return a tuple (x, y) or (x, y, meta) as a row; everything else as it is."""
    if isinstance(row, tuple | list) and 2 <= len(row) <= 3:
        return dict(zip(("x", "y", "meta"), row, strict=False))
    return row


def _plain(value: Any) -> Any:
    """Return a value of NumPy as Python's own; missing values become None."""
    value = value.tolist() if hasattr(value, "tolist") else value
    try:
        return None if value != value else value  # NaN and NaT differ from themselves
    except TypeError:  # pandas.NA has no truth value
        return None
