"""The tables of the retrieval pages."""

from collections.abc import Mapping

from experiments.lib.tables import Table
from experiments.retrieval.comparison import METRICS

TABLES: Mapping[str, Table] = {
    "retrieval": Table(METRICS, lambda row: row.is_plain),
    "retrieval, kappa": Table(METRICS, lambda row: bool(row.variant)),
}
"""By their names in the pages: every retriever, and the task retriever by its concentration."""
