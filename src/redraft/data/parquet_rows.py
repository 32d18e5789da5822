"""Read the rows of a Parquet file as JSON-like values, in bounded memory for any file.

A value without a JSON equivalent becomes text, or the reason why its row cannot be read.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from redraft.data.parquet_pages import (
    OversizedError,
    RowGroup,
    batch_rows,
    read_footer,
    read_pages,
)
from redraft.data.rows import BAD_GZIP, MAX_ROW_BYTES, Row, Unreadable, open_bytes
from redraft.data.tables import Columns, Layout
from redraft.errors import MissingExtraError, PairsError

MAX_NESTED_BYTES = 1 << 27
"""Maximum size of list columns per row group: page headers do not delimit their rows."""

_SLICE = 1 << 24
"""Bytes of a batch that are converted to Python values at a time."""

_BUFFER = 1 << 20


@contextmanager
def _one_line(name: str) -> Iterator[None]:
    """Turn errors of Arrow into a `PairsError` about the file `name`."""
    try:
        from pyarrow import ArrowException
    except ImportError as error:
        purpose = f"reading {name}"
        raise MissingExtraError("pyarrow", extra="parquet", purpose=purpose) from error
    try:
        yield
    except OversizedError as error:
        advice = "write it again with smaller pages and values"
        raise PairsError(f"{name}: too large ({error}); {advice}") from error
    # Arrow's bindings raise the others for invalid schemas and sizes
    except (
        *(ArrowException, OSError, *BAD_GZIP),
        *(ValueError, TypeError, KeyError, IndexError, OverflowError, NotImplementedError),
        MemoryError,
    ) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise PairsError(f"{name}: not a Parquet file ({reason[:300]}); make it again") from error


def read_parquet(path: Path, columns: Columns) -> Iterator[Row]:
    """Yield the rows of a Parquet file as JSON-like pairs; the line is the row's number, from 1."""
    with _one_line(path.name):
        import pyarrow.parquet  # noqa: F401 (before the file is opened: the error names the extra)
    with open_bytes(path) as stream:
        table = ParquetTable(stream, str(path), is_packed=path.suffix == ".gz")
        layout = Layout.of(table.names, columns, f"{path}:1")
        used = sorted({*layout.inputs.values(), layout.output, *layout.meta.values()})
        texts = {*layout.inputs.values(), layout.output}
        for number, cells in table.rows(used, texts=texts):
            if isinstance(cells, Unreadable):
                yield number, cells
            else:
                yield number, layout.pair(cells)


class ParquetTable:
    """An open Parquet file, called `name` in errors; `stream` must be seekable."""

    def __init__(self, stream: Any, name: str, *, is_packed: bool = False) -> None:
        self._stream: IO[bytes] = stream
        self._name = name
        with _one_line(name):
            from pyarrow import parquet

            file = parquet.ParquetFile(stream)
            # gzip restarts to seek back, so columns are read without a buffer, as a whole
            options = {} if is_packed else {"buffer_size": _BUFFER}
            lists = _list_texts(file.schema)
            self._file = parquet.ParquetFile(stream, read_dictionary=lists, **options)
            self.names: list[str] = list(self._file.schema_arrow.names)
            self.row_count = int(self._file.metadata.num_rows)

    def rows(
        self,
        used: Sequence[str],
        *,
        texts: set[str],
        first: int = 0,
        last: int | None = None,
        longest: int = MAX_ROW_BYTES,
    ) -> Iterator[tuple[int, dict[str, Any] | Unreadable]]:
        """Yield the rows from `first` up to `last`, numbered from 1, as cells by column name.

        Only the columns `used` are read. Values of the columns `texts` are returned unchanged; all
        others are converted to JSON values. Rows over `longest` bytes are never converted to Python
        values.
        """
        with _one_line(self._name):
            columns = self._numbers(used)
            start = 0
            wanted = []
            for number, group in enumerate(read_footer(self._stream)):
                end = start + group.rows
                if end > first and (last is None or start < last):
                    wanted.append((number, start, self._batch_rows(group, columns)))
                start = end
        for number, start, size in wanted:
            row = start
            for batch in self._batches(number, size, used):
                for cells in _cells(batch, texts, longest):
                    row += 1
                    if last is not None and row > last:
                        return
                    if row > first:
                        yield row, cells

    def _batches(self, group: int, size: int, used: Sequence[str]) -> Iterator[Any]:
        with _one_line(self._name):
            yield from self._file.iter_batches(
                batch_size=size, row_groups=[group], columns=list(used), use_threads=False
            )

    def _numbers(self, used: Sequence[str]) -> list[int]:
        """Return the numbers in the schema of the columns `used`, with those of their fields."""
        names, numbers = set(used), []
        for number in range(len(self._file.schema)):
            # a dot can be part of a name, or separate a struct and its field
            parts = self._file.schema.column(number).path.split(".")
            if any(".".join(parts[: end + 1]) in names for end in range(len(parts))):
                numbers.append(number)
        return numbers

    def _batch_rows(self, group: RowGroup, columns: Sequence[int]) -> int:
        """Return the number of rows of a row group to read at once."""
        flat, nested = [], 0
        for number in columns:
            pages = list(read_pages(self._stream, group.chunks[number]))
            column = self._file.schema.column(number)
            if column.max_repetition_level == 0:
                flat.append(pages)
                continue
            nested += sum(page.unpacked + 16 * page.values for page in pages)
            if nested > MAX_NESTED_BYTES:
                name = column.path[:80]
                raise OversizedError(f"the lists of column {name!r} fill a row group")
        return batch_rows(flat)


def _list_texts(schema: Any) -> list[str]:
    """Return the paths of texts in lists, to be read as dictionaries, which share equal values."""
    columns = (schema.column(number) for number in range(len(schema)))
    return [
        column.path
        for column in columns
        if column.max_repetition_level and column.physical_type == "BYTE_ARRAY"
    ]


def _cells(batch: Any, texts: set[str], longest: int) -> Iterator[dict[str, Any] | Unreadable]:
    """Yield the rows of a batch, converting a few megabytes at a time."""
    sizes = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns:
        sizes += _sizes(column)
    is_long = sizes > longest
    start = 0
    while start < batch.num_rows:
        held = np.cumsum(np.where(is_long[start:], 0, sizes[start:]))
        count = max(1, int(np.searchsorted(held, _SLICE, side="right")))
        part, skipped = batch.slice(start, count), is_long[start : start + count]
        yield from _part_cells(part, skipped, texts, longest)
        start += count


def _part_cells(
    part: Any, is_long: NDArray[np.bool_], texts: set[str], longest: int
) -> Iterator[dict[str, Any] | Unreadable]:
    import pyarrow

    short = part.filter(pyarrow.array(~is_long)) if is_long.any() else part
    names = part.schema.names
    columns = [
        _values(column, is_text=name in texts)
        for name, column in zip(names, short.columns, strict=True)
    ]
    rows = zip(*columns, strict=True)
    for skip in is_long.tolist():
        if skip:
            yield Unreadable(f"longer than {longest:,} bytes; shorten or split it")
            continue
        cells = dict(zip(names, next(rows), strict=True))
        wrong = [name for name, value in cells.items() if isinstance(value, Unreadable)]
        yield Unreadable(f"column {wrong[0][:80]!r}: {cells[wrong[0]].reason}") if wrong else cells


def _sizes(array: Any) -> NDArray[np.int64]:
    """Return the decoded size of each value of an array in bytes, ignoring sharing."""
    import pyarrow.compute
    from pyarrow import types

    kind = array.type
    if isinstance(array, pyarrow.ExtensionArray):
        return _sizes(array.storage)
    if types.is_dictionary(kind):
        sizes = _sizes(array.dictionary)
        indices = array.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        return sizes[indices] if len(sizes) else np.zeros(len(array), np.int64)
    if types.is_struct(kind):
        parts = [_sizes(array.field(number)) for number in range(kind.num_fields)]
        return np.sum(parts, axis=0, dtype=np.int64) + np.zeros(len(array), np.int64)
    if types.is_map(kind) or types.is_list(kind) or types.is_large_list(kind):
        parts = [array.keys, array.items] if types.is_map(kind) else [array.values]
        element_sizes = np.sum([8 + _sizes(part) for part in parts], axis=0, dtype=np.int64)
        before = np.concatenate([[0], np.cumsum(element_sizes)])
        offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
        return np.asarray(before[offsets[1:]] - before[offsets[:-1]], np.int64)
    if types.is_fixed_size_list(kind):
        element_sizes = 8 + _sizes(array.flatten())
        per_row = int(element_sizes.sum()) // max(1, len(array))
        return np.full(len(array), per_row, np.int64)
    try:
        lengths = pyarrow.compute.binary_length(array).fill_null(0)
    except pyarrow.ArrowNotImplementedError:  # neither text nor bytes
        return np.full(len(array), 8, np.int64)
    return np.asarray(lengths.to_numpy(zero_copy_only=False), np.int64)


def _values(array: Any, *, is_text: bool) -> list[Any]:
    """Return the values of a column: Python values if `is_text`, JSON values otherwise."""
    from pyarrow import types

    if not is_text and types.is_temporal(array.type):
        return [_temporal_text(cell) for cell in array]
    try:
        values = array.to_pylist()
    except Exception:  # one bad value fails the whole column, with various exception types
        values = [_value(cell) for cell in array]
    return values if is_text else list(map(_plain, values))


def _value(cell: Any) -> Any:
    try:
        return cell.as_py()
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        return Unreadable(f"not UTF-8 (byte 0x{byte:02x}); write the texts as UTF-8")
    except Exception as error:
        return _no_value(cell, error)


def _no_value(cell: Any, error: Exception) -> Unreadable:
    reason = (str(error) or type(error).__name__).splitlines()[0]
    return Unreadable(f"a value of type {cell.type} cannot be read ({reason[:200]})")


def _temporal_text(cell: Any) -> str | Unreadable | None:
    """Return a date, time or duration as text with full precision."""
    import pyarrow
    from pyarrow import types

    if not cell.is_valid:
        return None
    kind = cell.type
    try:
        if getattr(kind, "unit", "") == "ns":  # Python has microseconds: the cast fails for others
            micros = pyarrow.timestamp("us", kind.tz) if types.is_timestamp(kind) else None
            other = pyarrow.duration if types.is_duration(kind) else pyarrow.time64
            return str(cell.cast(micros or other("us")).as_py())
        return str(cell.as_py())
    except Exception:
        return f"{cell.value} {kind.unit}" if types.is_duration(kind) else _cast_text(cell)


def _cast_text(cell: Any) -> str | Unreadable:
    """Return Arrow's text of a value for which Python has no type."""
    import pyarrow

    try:
        text = str(cell.cast(pyarrow.string()).as_py())
    except Exception as error:
        return _no_value(cell, error)
    if text.startswith("<"):
        return Unreadable(f"{text.strip('<>')} of {cell.type}; write it as text")
    return text


def _plain(value: Any) -> Any:
    """Return a value as JSON; bytes and other types become text."""
    if value is None or isinstance(value, str | bool | int | float | Unreadable):
        return value
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return f"0x{value.hex()}"
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return str(value)
