"""The tables of the page, made from results.json alone."""

from collections.abc import Mapping

from experiments.lib.results import Row
from experiments.lib.tables import Table
from experiments.public_pairs import support
from experiments.public_pairs.comparison import MEAN_OF_ALL, QUESTION_MEAN
from experiments.public_pairs.confidences import CONFIDENCE, CONFIDENCE_METRICS
from experiments.public_pairs.promises import (
    STORED,
    STORED_METRICS,
    UNKNOWN,
    UNKNOWN_METRICS,
)
from experiments.public_pairs.sets import is_question_split
from experiments.public_pairs.systems import COMPARED, METRICS

_COMPARED = {name: METRICS[name] for name in COMPARED}


def _is_mean(row: Row) -> bool:
    return row.setting in (QUESTION_MEAN, MEAN_OF_ALL)


def _is_system(row: Row) -> bool:
    return row.is_plain and row.setting != support.SETTING and not _is_mean(row)


TABLES: Mapping[str, Table] = {
    "public pairs, question splits": Table(
        METRICS, lambda row: _is_system(row) and is_question_split(row.setting)
    ),
    "public pairs, other splits": Table(
        METRICS, lambda row: _is_system(row) and not is_question_split(row.setting)
    ),
    "public pairs, means": Table(_COMPARED, lambda row: row.is_plain and _is_mean(row)),
    "public pairs, ahead": Table(
        _COMPARED,
        lambda row: row.is_difference and (is_question_split(row.setting) or _is_mean(row)),
    ),
    "public pairs, stored and added": Table(STORED_METRICS, lambda row: row.variant == STORED),
    "public pairs, unknown": Table(UNKNOWN_METRICS, lambda row: row.variant == UNKNOWN),
    "public pairs, confidence": Table(CONFIDENCE_METRICS, lambda row: row.variant == CONFIDENCE),
    "public pairs, support": Table(
        support.METRICS, lambda row: row.is_plain and row.setting == support.SETTING
    ),
}
"""By their names in the page."""
