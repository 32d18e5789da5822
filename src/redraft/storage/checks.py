"""Checks of saved files: types, shapes and ranges, before any other code sees the values.

A model may come from anyone; its manifest only shows that its files arrived unchanged. Knows
files, JSON and arrays; does not know what they mean to a model.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import DTypeLike, NDArray

from redraft.errors import (
    ConfigError,
    MissingExtraError,
    ModelError,
    RedraftError,
    StoreError,
    listed,
    missing_neural,
)

Array = NDArray[Any]
Shape = tuple[int | None, ...]
"""The length of each axis; None accepts any length."""

LARGEST_JSON = 1 << 26
"""Bytes of a JSON file: its values take several times as much memory."""

_PART = 1 << 20
"""Values that are checked at once: bounds the memory of a check."""

_DTYPES = {"F32": np.float32, "I32": np.int32, "I64": np.int64, "U8": np.uint8}
"""Types of a safetensors file that models use."""


def damaged(path: Path, what: str) -> ModelError:
    """Return the error for a file with invalid contents."""
    return ModelError(f"{path}: damaged ({what}); copy or fit the model again")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn any error of the block into a ModelError that names the path in one line.

    Errors that name a file already, and those about stores and packages, pass unchanged.
    """
    try:
        yield
    except (ModelError, StoreError, MissingExtraError):
        raise
    except ConfigError as error:
        text = str(error)
        raise ModelError(text if str(path.parent) in text else f"{path}: {text}") from error
    except MemoryError as error:
        raise damaged(path, "it asks for more memory than there is") from error
    except (Exception, RecursionError) as error:
        missing = missing_neural(error, purpose=str(path))
        if missing is not None:
            raise missing from error
        is_ours = isinstance(error, RedraftError)
        raise damaged(path, str(error) if is_ours else type(error).__name__) from error


def read_json(path: Path) -> Any:
    """Return the value in a JSON file of limited size, in which all numbers are finite."""
    if path.stat().st_size > LARGEST_JSON:
        raise damaged(path, f"more than {LARGEST_JSON:,} bytes")
    try:
        text = path.read_text(encoding="utf-8")
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite_float)
    except (ValueError, RecursionError) as error:
        raise damaged(path, "not the JSON of a model") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is out of range")
    return value


def entry(path: Path, values: Any, name: str, kind: type) -> Any:
    """Return the entry `name` of a JSON object, which must be of this type."""
    value = values.get(name) if isinstance(values, Mapping) else None
    if type(value) is not kind:
        raise damaged(path, f"{name} is not of type {kind.__name__}")
    return value


def whole(path: Path, name: str, value: Any, *, least: int, most: int) -> int:
    """Return `value`; raise unless it is a whole number from `least` to `most`."""
    if type(value) is not int or not least <= value <= most:
        raise damaged(path, f"{name} is not a whole number from {least} to {most}")
    return value


def real(path: Path, name: str, value: Any, *, least: float, most: float) -> float:
    """Return `value`; raise unless it is a number from `least` to `most`."""
    if type(value) not in (int, float) or not least <= value <= most:
        raise damaged(path, f"{name} is not a number from {least:g} to {most:g}")
    return float(value)


def names(path: Path, name: str, value: Any) -> list[str]:
    """Return `value`; raise unless it is a list of one or more different strings."""
    is_list = isinstance(value, list) and value and all(type(text) is str for text in value)
    if not is_list or len(set(value)) < len(value):
        raise damaged(path, f"{name} is not a list of different names")
    return list(value)


def read_array(path: Path, dtype: DTypeLike, shape: Shape) -> Array:
    """Memory-map the array of a NumPy file; raise unless it has this type and shape."""
    try:
        # not np.load, which would open an archive or a pickle too
        array: Array = np.lib.format.open_memmap(path, mode="r")
    except Exception as error:
        raise damaged(path, "not an array, or not all of it") from error
    end = array.offset + array.nbytes  # type: ignore[attr-defined]
    if end != path.stat().st_size or not array.flags.c_contiguous:
        raise damaged(path, "not an array, or not all of it")
    _check_kind(path, "the array", array.dtype, array.shape, (dtype, shape))
    return array


def tensor_shapes(path: Path) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return the type and the shape of each tensor of a safetensors file; none of them is read."""
    from safetensors import safe_open

    try:
        with safe_open(path, framework="np") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            return {
                name: (part.get_dtype(), tuple(part.get_shape())) for name, part in slices.items()
            }
    except Exception as error:
        raise damaged(path, "not a safetensors file, or not all of it") from error


def read_tensors(path: Path, expected: Mapping[str, tuple[DTypeLike, Shape]]) -> dict[str, Array]:
    """Return the arrays of a safetensors file, which must have these names, types and shapes."""
    from safetensors.numpy import load_file

    shapes = tensor_shapes(path)
    if shapes.keys() != expected.keys():
        raise damaged(path, f"it must hold {listed(sorted(expected))} and nothing else")
    for name, (dtype, shape) in expected.items():
        actual_dtype, actual_shape = shapes[name]
        _check_kind(path, name, _DTYPES.get(actual_dtype), actual_shape, (dtype, shape))
    return load_file(path)


def _check_kind(
    path: Path,
    name: str,
    dtype: DTypeLike | None,
    shape: tuple[int, ...],
    expected: tuple[DTypeLike, Shape],
) -> None:
    """Raise unless an array has the expected type and shape."""
    wanted = np.dtype(expected[0])
    fits = len(shape) == len(expected[1]) and all(
        length in (None, actual) for actual, length in zip(shape, expected[1], strict=True)
    )
    if dtype is None or wanted != dtype or not fits:
        axes = ", ".join("any" if length is None else str(length) for length in expected[1])
        raise damaged(path, f"{name} must be {wanted} of shape ({axes})")


def check_values(path: Path, name: str, array: Array, *, least: float, most: float) -> None:
    """Raise unless every value lies between `least` and `most`; NaN does not."""
    flat = array.reshape(-1)
    for start in range(0, len(flat), _PART):
        part = np.asarray(flat[start : start + _PART])
        if not ((part >= least) & (part <= most)).all():
            raise damaged(path, f"a value of {name} is out of range")


def check_ascending(path: Path, name: str, values: Array, *, starts: Array | None = None) -> None:
    """Raise unless the values ascend without equal ones, within each slice if there are `starts`.

    The starts must have been checked.
    """
    for first in range(0, len(values), _PART):
        part = np.asarray(values[first : first + _PART + 1])
        rises = part[1:] > part[:-1]
        if starts is not None:
            low, high = np.searchsorted(starts, (first + 1, first + len(part)))
            rises[np.asarray(starts[low:high]) - first - 1] = True
        if not rises.all():
            raise damaged(path, f"{name} must ascend")


def check_vectors(path: Path, vectors: Array) -> None:
    """Raise unless every row of a matrix is finite and at most of length 1."""
    rows = max(1, _PART // max(1, vectors.shape[1]))
    for start in range(0, len(vectors), rows):
        part = np.asarray(vectors[start : start + rows], np.float64)
        if not (np.einsum("nd,nd->n", part, part) <= 1.01).all():
            raise damaged(path, "a vector is not finite, or longer than 1")


def check_starts(path: Path, starts: Array, *, count: int, size: int) -> None:
    """Raise unless `starts` cuts `size` entries into `count` consecutive slices."""
    if starts.shape != (count + 1,) or starts[0] != 0 or starts[-1] != size:
        raise damaged(path, f"the starts of {count:,} slices do not fit their {size:,} entries")
    for first in range(0, len(starts), _PART):
        part = np.asarray(starts[first : first + _PART + 1])
        if not (part[1:] >= part[:-1]).all():
            raise damaged(path, "the starts of slices must ascend")


def same(path: Path, what: str, counts: Sequence[int]) -> None:
    """Raise unless all counts of one thing are equal."""
    if len(set(counts)) > 1:
        raise damaged(path, f"{what}: {' and '.join(f'{count:,}' for count in counts)}")
