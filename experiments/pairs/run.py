"""Two other kinds of pairs: the defaults, untouched, beside what a user might pick instead."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from experiments.lib.bench import Bench, Questions, Rows, paper_rows, system_rows
from experiments.lib.installed import Watch
from experiments.lib.results import Measured
from experiments.lib.tables import Table
from experiments.pairs.queries import make_queries
from experiments.pairs.signatures import mine_signatures, split_signatures
from redraft.mining.python_functions import standard_library
from redraft.types import Example

METRICS = {"bleu_yin": "BLEU yin", "exact": "exact %", "exact_unseen": "exact, unseen %"}
"""Exact is the same text; unseen are outputs that do not stand in train."""

BASELINE = "bm25"

SPLITS = ("dev", "test")
"""What can be answered; test chooses nothing."""


def _queries(_: Watch) -> Mapping[str, Sequence[Example]]:
    return make_queries()


def _signatures(watch: Watch) -> Mapping[str, Sequence[Example]]:
    return split_signatures(mine_signatures(watch(standard_library())))


KINDS: Mapping[str, Callable[[Watch], Mapping[str, Sequence[Example]]]] = {
    "queries": _queries,
    "signatures": _signatures,
}
"""What makes the splits of each kind of pairs."""


def read_questions(kind: str, split: str, watch: Watch = iter) -> Questions:
    """The questions of a split of this kind of pairs."""
    splits = KINDS[kind](watch)
    return Questions(kind, split, splits["train"], splits[split], language="text")


def baseline_rows(bench: Bench) -> Iterator[Measured]:
    """The nearest question's output as it is."""
    yield bench.alone(BASELINE)


MEASURES: Mapping[str, Sequence[Rows]] = {
    "systems": (baseline_rows, system_rows),
    "paper": (paper_rows,),
}
"""What can be measured, by name."""


TABLES: Mapping[str, Table] = {
    "pairs": Table(METRICS, lambda row: not row.is_difference, shows_split=True),
    "pairs, ahead": Table(METRICS, lambda row: row.is_difference, shows_split=True),
}
"""By their names in the page: every system, and what Retrieve+Edit is ahead by."""
