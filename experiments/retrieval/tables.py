"""The tables of the retrieval pages."""

from collections.abc import Mapping

from experiments.lib.results import Row
from experiments.lib.tables import Table
from experiments.public_pairs.comparison import MEAN_OF_ALL
from experiments.retrieval import edits, encoders
from experiments.retrieval.comparison import METRICS


def _is_edited(row: Row, *, of: str | None = None) -> bool:
    return row.variant == edits.VARIANT and of in (None, row.system)


TABLES: Mapping[str, Table] = {
    "retrieval": Table(METRICS, lambda row: row.is_plain),
    "retrieval, kappa": Table(METRICS, lambda row: row.variant.startswith("kappa")),
    "retrieval, edited": Table(
        edits.METRICS, lambda row: _is_edited(row) and row.setting == MEAN_OF_ALL
    ),
    "retrieval, edited, ahead": Table(
        edits.METRICS, lambda row: _is_edited(row, of="auto") and row.is_difference
    ),
    "retrieval, edited, sets": Table(
        edits.METRICS,
        lambda row: _is_edited(row) and not row.is_difference and row.setting != MEAN_OF_ALL,
    ),
    "retrieval, encoder": Table(
        encoders.METRICS,
        lambda row: row.variant == encoders.VARIANT and row.setting == MEAN_OF_ALL,
    ),
    "retrieval, encoder, sets": Table(
        encoders.METRICS,
        lambda row: row.variant == encoders.VARIANT and row.setting != MEAN_OF_ALL,
    ),
}
"""By their names in the pages: every retriever, the task retriever by its concentration, the edits
of the first prototype, and those of a sentence encoder."""
