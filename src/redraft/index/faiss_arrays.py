"""Saves FAISS indexes as plain arrays and rebuilds them from arrays after checking every value.

FAISS's own files are never read: its reader and its search are native code that trusts the file.
The vectors themselves are saved elsewhere, once.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from redraft.storage.checks import check_values, damaged, read_tensors, tensor_shapes

Vectors = NDArray[np.float32]
Ids = NDArray[np.int64]
Arrays = Mapping[str, NDArray[Any]]

STRUCTURE = "structure.safetensors"
LINKS = 32
"""HNSW links per vector and level; the lowest level has twice as many."""
BITS = 8
"""Bits per product-quantisation code."""

_LARGEST = 1e3
"""Limit of a centroid's coordinates; the vectors are of length 1."""
_LEVELS = 64


def save_structure(structure: Any, path: Path) -> None:
    """Write an IVF, IVF-PQ or HNSW index to a safetensors file."""
    import faiss

    to_arrays = _graph_arrays if isinstance(structure, faiss.IndexHNSW) else _cell_arrays
    save_file(dict(to_arrays(structure)), path)


def load_cells(path: Path, vectors: Vectors) -> Any:
    """Return the saved IVF index of these vectors."""
    import faiss

    count, width = vectors.shape
    arrays = read_tensors(
        path, {"centroids": (np.float32, (None, width)), "cells": (np.int32, (count,))}
    )
    quantizer = _quantizer(path, arrays)
    structure: Any = faiss.IndexIVFFlat(quantizer, width, quantizer.ntotal)
    _attach(structure, quantizer)
    cells, contiguous = arrays["cells"].astype(np.int64), np.ascontiguousarray(vectors)
    structure.add_core(count, faiss.swig_ptr(contiguous), None, faiss.swig_ptr(cells))
    return structure


def load_compressed(path: Path, count: int, width: int) -> Any:
    """Return the saved IVF-PQ index of `count` vectors."""
    import faiss

    pieces = tensor_shapes(path).get("codes", ("", ()))[1][-1:]
    if not pieces or not pieces[0] or width % pieces[0]:
        raise damaged(path, f"the codes do not fit vectors of {width} numbers")
    sizes = pieces[0], 2**BITS, width // pieces[0]
    kinds = {
        "centroids": (np.float32, (None, width)),
        "cells": (np.int32, (count,)),
        "pieces": (np.float32, sizes),
        "codes": (np.uint8, (count, pieces[0])),
    }
    arrays = read_tensors(path, kinds)
    check_values(path, "the pieces", arrays["pieces"], least=-_LARGEST, most=_LARGEST)
    quantizer = _quantizer(path, arrays)
    structure: Any = faiss.IndexIVFPQ(quantizer, width, quantizer.ntotal, pieces[0], BITS)
    _attach(structure, quantizer)
    faiss.copy_array_to_vector(arrays["pieces"].ravel(), structure.pq.centroids)
    structure.precompute_table()
    add_codes(structure, arrays["cells"], np.arange(count), arrays["codes"])
    return structure


def load_graph(path: Path, vectors: Vectors) -> Any:
    """Return the saved HNSW index of these vectors."""
    import faiss

    count, width = vectors.shape
    kinds = {
        "levels": (np.int32, (count,)),
        "links": (np.int32, (None,)),
        "entry": (np.int32, (1,)),
    }
    arrays = read_tensors(path, kinds)
    structure: Any = faiss.IndexHNSWFlat(width, LINKS)
    graph = structure.hnsw
    before = faiss.vector_to_array(graph.cum_nneighbor_per_level).astype(np.int64)
    offsets = _check_graph(path, arrays, before)
    structure.storage.add(np.ascontiguousarray(vectors))
    for name, array in (("levels", arrays["levels"]), ("neighbors", arrays["links"])):
        faiss.copy_array_to_vector(array, getattr(graph, name))
    faiss.copy_array_to_vector(offsets.astype(np.uint64), graph.offsets)
    graph.entry_point = int(arrays["entry"][0])
    graph.max_level = int(arrays["levels"].max()) - 1
    structure.ntotal = count
    return structure


def add_codes(structure: Any, cells: NDArray[Any], rows: Ids, codes: NDArray[np.uint8]) -> None:
    """Add rows, in ascending order, with their PQ codes to the cells of an IVF index."""
    import faiss

    order = np.argsort(cells, kind="stable")
    ends = np.searchsorted(cells[order], np.arange(structure.nlist + 1))
    for cell in np.flatnonzero(np.diff(ends)).tolist():
        in_cell = order[ends[cell] : ends[cell + 1]]
        ids = np.ascontiguousarray(rows[in_cell], np.int64)
        cell_codes = np.ascontiguousarray(codes[in_cell])
        structure.invlists.add_entries(
            cell, len(ids), faiss.swig_ptr(ids), faiss.swig_ptr(cell_codes)
        )
    structure.ntotal += len(rows)


def take_codes(structure: Any) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Return the cell (N,) and the code (N, C) of each row of an IVF index."""
    import faiss

    cells = np.empty(structure.ntotal, np.int32)
    codes = np.empty((structure.ntotal, structure.code_size), np.uint8)
    for cell in range(structure.nlist):
        size = structure.invlists.list_size(cell)
        if size:
            rows = faiss.rev_swig_ptr(structure.invlists.get_ids(cell), size)
            pointer = structure.invlists.get_codes(cell)
            cells[rows] = cell
            codes[rows] = faiss.rev_swig_ptr(pointer, size * structure.code_size).reshape(size, -1)
    return cells, codes


def _cell_arrays(structure: Any) -> Arrays:
    import faiss

    width, count = structure.d, structure.nlist
    centroids = structure.quantizer.reconstruct_n(0, count).reshape(count, width)
    cells, codes = take_codes(structure)
    if not isinstance(structure, faiss.IndexIVFPQ):
        return {"centroids": centroids, "cells": cells}
    pieces = faiss.vector_to_array(structure.pq.centroids)
    shape = structure.pq.M, 2**BITS, width // structure.pq.M
    return {
        "centroids": centroids,
        "cells": cells,
        "pieces": pieces.reshape(shape),
        "codes": codes,
    }


def _graph_arrays(structure: Any) -> Arrays:
    import faiss

    graph = structure.hnsw
    return {
        "levels": faiss.vector_to_array(graph.levels),
        "links": faiss.vector_to_array(graph.neighbors),
        "entry": np.array([graph.entry_point], np.int32),
    }


def _quantizer(path: Path, arrays: Arrays) -> Any:
    """Check the centroids and the cell of every row; return the centroids as a flat index."""
    import faiss

    centroids, cells = arrays["centroids"], arrays["cells"]
    if not len(centroids):
        raise damaged(path, "no cells")
    check_values(path, "the centroids", centroids, least=-_LARGEST, most=_LARGEST)
    check_values(path, "the cells", cells, least=0, most=len(centroids) - 1)
    quantizer: Any = faiss.IndexFlatL2(centroids.shape[1])
    quantizer.add(np.ascontiguousarray(centroids))
    return quantizer


def _attach(structure: Any, quantizer: Any) -> None:
    """Give an index ownership of its quantizer and mark it as trained."""
    structure.own_fields = True
    quantizer.this.disown()
    structure.is_trained = True


def _check_graph(path: Path, arrays: Arrays, before: Ids) -> Ids:
    """Check that every link leads to a row of its level; return where the links of rows begin.

    `before` holds the number of links of a row below each level.
    """
    levels, links, entry = arrays["levels"], arrays["links"], int(arrays["entry"][0])
    if not len(levels):
        raise damaged(path, "no levels")
    check_values(path, "the levels", levels, least=1, most=min(_LEVELS, len(before) - 1))
    offsets = np.concatenate([[0], np.cumsum(before[levels])])
    if offsets[-1] != len(links):
        raise damaged(path, f"its {len(links):,} links are not those of its levels")
    check_values(path, "the links", links, least=-1, most=len(levels) - 1)
    if not 0 <= entry < len(levels) or levels[entry] != levels.max():
        raise damaged(path, "it has no entry to its highest level")
    for level in range(1, int(levels.max())):
        rows = np.flatnonzero(levels > level)
        positions = offsets[rows][:, None] + np.arange(before[level], before[level + 1])
        targets = links[positions]
        if not (levels[targets[targets >= 0]] > level).all():
            raise damaged(path, "a link leads to a row that its level lacks")
    return offsets
