"""Two other kinds of pairs: the defaults, untouched, beside what a user might pick instead."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from redraft.data.example import Example
from redraft.studies.answers import Bench, Questions, paper_rows, system_rows
from redraft.studies.corpora import Watch, standard_library
from redraft.studies.differences import difference_rows, keep, read_kept
from redraft.studies.queries import make_queries
from redraft.studies.results import Measured, Row, Table
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


MEASURES: Mapping[str, Sequence[Callable[[Bench], Iterator[Measured]]]] = {
    "systems": (baseline_rows, system_rows),
    "paper": (paper_rows,),
}
"""What can be measured, by name."""


def measured_rows(bench: Bench, measure: str, folder: Path) -> Iterator[Row]:
    """The rows of a measure; the figures of every question are kept in the folder."""
    for rows in MEASURES[measure]:
        for measured in rows(bench):
            keep(measured, folder, metrics=measured.values)
            yield measured.row


def compared_rows(folder: Path) -> Iterator[Row]:
    """What Retrieve+Edit is ahead by of each other system, in all that was kept in the folder."""
    for row in difference_rows(read_kept(folder), metrics=METRICS):
        # of a system that is never right everything is an endless multiple
        shown = {name: row.metrics[name] for name in METRICS if name in row.metrics}
        interval = {name: row.interval[name] for name in shown}
        yield replace(row, metrics=shown, interval=interval)


def tables(kinds: Sequence[str]) -> dict[str, Table]:
    """By their marks in a page: the systems of each kind and split, and what one is ahead by."""
    found = {}
    for kind in kinds:
        for split in SPLITS:
            found[f"pairs {kind}, {split}"] = _table(kind, split, is_ahead=False)
            found[f"pairs {kind}, {split}, ahead"] = _table(kind, split, is_ahead=True)
    return found


def _table(kind: str, split: str, *, is_ahead: bool) -> Table:
    def has(row: Mapping[str, Any]) -> bool:
        is_here = (row["setting"], row["split"]) == (kind, split)
        return is_here and (" − " in row["system"]) is is_ahead

    return Table(METRICS, has)
