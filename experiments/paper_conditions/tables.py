"""The tables of the page about the paper's conditions."""

from collections.abc import Mapping

from experiments.autocomplete.run import PUBLISHED
from experiments.autocomplete.tables import RATIOS
from experiments.lib.paired import DEFAULT, OTHER_PAIRS, PAPERS_UNAIDED, UNAIDED
from experiments.lib.results import Row
from experiments.lib.tables import Table
from experiments.paper_conditions import cards, functions


def _is_ratio(row: Row) -> bool:
    compared = ((DEFAULT, UNAIDED), (DEFAULT, PAPERS_UNAIDED), *OTHER_PAIRS)
    return (row.system, row.baseline) in compared


TABLES: Mapping[str, Table] = {
    "paper conditions, cards": Table(cards.METRICS, lambda row: row.setting == cards.SETTING),
    "paper conditions, functions": Table(
        functions.METRICS,
        lambda row: row.setting == functions.SETTING and not row.is_difference,
        PUBLISHED,
    ),
    "paper conditions, ratios": Table(
        RATIOS, lambda row: row.setting == functions.SETTING and _is_ratio(row)
    ),
}
"""By their names in the page: Hearthstone, functions with near-copies, and their ratios."""
