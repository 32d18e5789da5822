"""Arrays in NumPy files, written in pieces."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]


@contextmanager
def appended(
    path: Path, shape: tuple[int, ...], dtype: DTypeLike
) -> Iterator[Callable[[Array], None]]:
    """Write an array of this shape to `path`; the yielded function appends rows to it."""
    header = {
        "descr": np.lib.format.dtype_to_descr(np.dtype(dtype)),
        "fortran_order": False,
        "shape": shape,
    }
    with path.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        yield lambda piece: np.ascontiguousarray(piece, dtype).tofile(stream)
