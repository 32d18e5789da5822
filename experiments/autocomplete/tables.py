"""The tables of the autocomplete page: which rows each has, and which figures of them."""

from collections.abc import Mapping

from experiments.autocomplete.completions import COMPLETIONS, METRICS
from experiments.autocomplete.run import ORACLE, PUBLISHED
from experiments.autocomplete.settings import IN_PROJECT, OTHER_FILES, PAPER, STRICT
from experiments.lib.costs import COSTS
from experiments.lib.paired import DEFAULT, OTHER_PAIRS, UNAIDED
from experiments.lib.results import Row
from experiments.lib.tables import Table

RATIOS = {
    "avg_1_ratio": "avg 1",
    "avg_5_ratio": "avg 5",
    "avg_10_ratio": "avg 10",
    "longest_1_ratio": "longest 1",
    "bleu_yin": "BLEU, difference",
}

AHEAD = {name: METRICS[name] for name in ("avg_1", "avg_5", "avg_10", "bleu_yin", "keys_saved")}


def _is_part(row: Row) -> bool:
    """True if a row compares the default with itself, one part changed."""
    return row.baseline == row.system == DEFAULT and row.baseline_variant != ORACLE


def _is_ahead(row: Row) -> bool:
    """True if a row compares the default with another system, or with better prototypes."""
    return row.is_difference and row.system == DEFAULT and not (row.subset or _is_part(row))


def _has_costs(row: Row) -> bool:
    """True for one row of each system: the paper's are measured across packages alone."""
    place = PAPER if row.system.endswith("(LSTM)") else IN_PROJECT
    return row.is_plain and row.setting == place


def _is_ratio(row: Row) -> bool:
    pairs = ((DEFAULT, UNAIDED), *OTHER_PAIRS)
    return (row.system, row.baseline) in pairs and not (row.variant or row.subset)


TABLES: Mapping[str, Table] = {
    "in a project": Table(
        METRICS, lambda row: row.is_plain and row.setting in (IN_PROJECT, OTHER_FILES)
    ),
    "across packages": Table(
        COMPLETIONS,
        lambda row: (
            not row.is_difference and row.setting in (STRICT, PAPER) and row.variant in ("", ORACLE)
        ),
        PUBLISHED,
    ),
    "costs": Table(COSTS, _has_costs),
    "ahead": Table(AHEAD, _is_ahead),
    "ratios": Table(RATIOS, _is_ratio),
    "parts": Table(AHEAD, _is_part),
    "similarity": Table(RATIOS, lambda row: bool(row.subset)),
}
"""By the name that their marks in the page have after that of the size."""
