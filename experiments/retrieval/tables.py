"""The tables of the retrieval pages."""

from collections.abc import Mapping

from experiments.lib.tables import Table
from experiments.retrieval import edits
from experiments.retrieval.comparison import METRICS

TABLES: Mapping[str, Table] = {
    "retrieval": Table(METRICS, lambda row: row.is_plain),
    "retrieval, kappa": Table(METRICS, lambda row: row.variant.startswith("kappa")),
    "retrieval, edited": Table(
        edits.METRICS, lambda row: row.variant == edits.VARIANT and not row.is_difference
    ),
    "retrieval, edited, ahead": Table(
        edits.METRICS, lambda row: row.variant == edits.VARIANT and row.is_difference
    ),
}
"""By their names in the pages: every retriever, the task retriever by its concentration, and the
edits of the first prototype."""
