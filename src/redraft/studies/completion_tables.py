"""The tables of the autocomplete page: which rows each has, and which figures of them."""

from collections.abc import Mapping
from typing import Any

from redraft.studies.autocomplete import ABLATIONS, OTHER_ABLATIONS, PUBLISHED
from redraft.studies.completions import COMPLETIONS, METRICS
from redraft.studies.costs import COSTS
from redraft.studies.differences import DEFAULT
from redraft.studies.functions import IN_PROJECT, OTHER_FILES, PAPER, STRICT
from redraft.studies.results import Table

PARTS = (*OTHER_ABLATIONS, *ABLATIONS)

RATIOS = {
    "avg_1_ratio": "avg 1",
    "avg_5_ratio": "avg 5",
    "avg_10_ratio": "avg 10",
    "longest_1_ratio": "longest 1",
    "bleu_yin": "BLEU, difference",
}

AHEAD = {name: METRICS[name] for name in ("avg_1", "avg_5", "avg_10", "bleu_yin", "keys_saved")}


def _is_system(row: Mapping[str, Any]) -> bool:
    return " − " not in row["system"]


def _is_ahead(row: Mapping[str, Any]) -> bool:
    """Whether a row compares the default with another system."""
    system, _, other = row["system"].partition(" − ")
    return system == DEFAULT and bool(other) and other not in PARTS and not _is_similarity(row)


def _has_costs(row: Mapping[str, Any]) -> bool:
    """Whether a row is the first of a system: the paper's are measured across packages alone."""
    place = PAPER if row["system"].endswith("(LSTM)") else IN_PROJECT
    return _is_system(row) and row["setting"] == place


def _is_similarity(row: Mapping[str, Any]) -> bool:
    return bool(row["setting"].startswith("similarity"))


def _is_ratio(row: Mapping[str, Any]) -> bool:
    return row["system"] in (f"{DEFAULT} − seq2seq", "task − lexical") and not _is_similarity(row)


TABLES: Mapping[str, Table] = {
    "in a project": Table(
        METRICS, lambda row: _is_system(row) and row["setting"] in (IN_PROJECT, OTHER_FILES)
    ),
    "across packages": Table(
        COMPLETIONS,
        lambda row: (
            _is_system(row)
            and row["setting"].partition(",")[0] in (STRICT, PAPER)
            and row["setting"].partition(", ")[2] not in PARTS
        ),
        PUBLISHED,
    ),
    "costs": Table(COSTS, _has_costs),
    "ahead": Table(AHEAD, _is_ahead),
    "ratios": Table(RATIOS, _is_ratio),
    "parts": Table(AHEAD, lambda row: row["system"].partition(" − ")[2] in PARTS),
    "similarity": Table(RATIOS, _is_similarity),
}
"""By the name that their marks in the page have after that of the size."""
