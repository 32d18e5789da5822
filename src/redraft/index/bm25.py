"""BM25 in memory by bm25s, saved as plain arrays that are checked on loading."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from redraft.storage.artifact import Artifact
from redraft.storage.checks import check_starts, check_values, damaged, read_array, read_json

LARGEST_SCORE = 1e6
"""Limit of a loaded score: far above any real one, and sums stay finite."""

_ARRAYS = {"data": np.float32, "indices": np.int32, "indptr": np.int64}
_VOCABULARY = "vocab.index.json"


def _new_scorer() -> Any:
    import bm25s

    logging.getLogger("bm25s").setLevel(logging.WARNING)  # it logs a message per index
    return bm25s.BM25()


def build_scorer(bags: Sequence[Sequence[str]]) -> Any:
    """Return a scorer of the bags of words; equal bags give equal files.

    If no bag has a word, empty words stand in: bm25s fails on an empty vocabulary.
    """
    if not any(bags):
        bags = [[""]] * max(1, len(bags))
    columns: dict[str, int] = {}
    # ids in order of occurrence: bm25s would assign them in the order of a set, which varies
    token_ids = [[columns.setdefault(word, len(columns)) for word in bag] for bag in bags]
    scorer = _new_scorer()
    scorer.index((token_ids, columns), show_progress=False)
    return scorer


def save_scorer(scorer: Any, folder: Path) -> None:
    """Write the arrays of the scorer and its words into an existing folder."""
    for name, dtype in _ARRAYS.items():
        array = np.asarray(scorer.scores[name], dtype)
        np.save(folder / f"{name}.csc.index.npy", array, allow_pickle=False)
    text = json.dumps(scorer.vocab_dict, ensure_ascii=False)
    # lone surrogates, which UTF-8 cannot encode, become JSON escapes
    (folder / _VOCABULARY).write_text(text, encoding="utf-8", errors="backslashreplace")


def load_scorer(artifact: Artifact, examples: int) -> Any:
    """Return a saved scorer of this many examples."""
    rows = max(1, examples)
    paths = {name: artifact.path(f"{name}.csc.index.npy") for name in _ARRAYS}
    arrays = {name: read_array(paths[name], dtype, (None,)) for name, dtype in _ARRAYS.items()}
    data, indices, starts = arrays.values()
    words = _load_words(artifact.path(_VOCABULARY), len(starts) - 1)
    check_starts(paths["indptr"], starts, count=len(starts) - 1, size=len(data))
    if len(indices) != len(data):
        raise damaged(paths["indices"], f"{len(data):,} scores have {len(indices):,} rows")
    check_values(paths["data"], "the scores", data, least=0, most=LARGEST_SCORE)
    check_values(paths["indices"], "the rows", indices, least=0, most=rows - 1)
    scorer = _new_scorer()
    plain = {name: np.array(array) for name, array in arrays.items()}
    scorer.scores = {**plain, "num_docs": rows}
    scorer.vocab_dict = words
    scorer.unique_token_ids_set = set(words.values())
    scorer.nonoccurrence_array = None
    return scorer


def _load_words(path: Path, columns: int) -> dict[str, int]:
    words = read_json(path)
    if not isinstance(words, dict):
        raise damaged(path, "not words and their columns")
    scored = {word: column for word, column in words.items() if word or column != columns}
    # bm25s may append the empty word in a column after all others
    if any(type(column) is not int for column in scored.values()) or (
        sorted(scored.values()) != list(range(columns))
    ):
        raise damaged(path, f"its words are not those of {columns:,} columns")
    return words
