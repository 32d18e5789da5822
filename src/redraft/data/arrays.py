"""Arrays in files: written piece by piece, and mapped into memory when they are read."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from redraft.errors import ModelError

Array = NDArray[Any]


@contextmanager
def appended(
    path: Path, shape: tuple[int, ...], dtype: DTypeLike
) -> Iterator[Callable[[Array], None]]:
    """Writes an array of this shape to a NumPy file, one piece of its first axis after another."""
    described = {
        "descr": np.lib.format.dtype_to_descr(np.dtype(dtype)),
        "fortran_order": False,
        "shape": shape,
    }
    with path.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, described)
        yield lambda piece: np.ascontiguousarray(piece, dtype).tofile(stream)


def mapped(path: Path) -> Array:
    """The array in a NumPy file, of which only what is used is read."""
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: damaged ({error}); copy or fit the model again") from error
