"""Two other kinds of pairs: the defaults, untouched, beside what a user might pick instead."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from redraft.data.example import Example
from redraft.studies.answers import Bench, Questions, Rows, is_ahead, paper_rows, system_rows
from redraft.studies.corpora import Watch, standard_library
from redraft.studies.queries import make_queries
from redraft.studies.results import Measured, Table
from redraft.studies.signatures import mine_signatures, split_signatures

METRICS = {"bleu_yin": "BLEU yin", "exact": "exact %", "exact_clean": "exact, unseen %"}
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
    yield bench.alone(BASELINE, bench.questions.setting)


MEASURES: Mapping[str, Sequence[Rows]] = {
    "systems": (baseline_rows, system_rows),
    "paper": (paper_rows,),
}
"""What can be measured, by name."""


def tables(kinds: Sequence[str]) -> dict[str, Table]:
    """By their marks in a page: the systems of each kind and split, and what one is ahead by."""
    found = {}
    for kind in kinds:
        for split in SPLITS:
            found[f"pairs {kind}, {split}"] = _table(kind, split, compares=False)
            found[f"pairs {kind}, {split}, ahead"] = _table(kind, split, compares=True)
    return found


def _table(kind: str, split: str, *, compares: bool) -> Table:
    def has(row: Mapping[str, Any]) -> bool:
        is_here = (row["setting"], row["split"]) == (kind, split)
        return is_here and is_ahead(row) is compares

    return Table(METRICS, has)
