"""How well the edit of the first prototype answers: the measure that `auto` chooses by.

The output of the first prototype is scored as it is and with the values of the question
substituted. Rankers that are not part of the package, with masked values and fused by rank, are
measured beside the retrievers.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from experiments.lib.results import ALL_SEEDS, DECIMALS, Row, interval_of
from experiments.public_pairs.comparison import MEAN_OF_ALL, mean_of_means
from experiments.public_pairs.sets import PairSet
from redraft.editing.slot_filling import Query, SlottedExample
from redraft.editing.substitution import SubstitutionEditor
from redraft.editing.templates import masked_input, masked_query
from redraft.editing.value_table import ValueTable
from redraft.index.bm25 import Bm25Index
from redraft.metrics.bleu import bleu_yin
from redraft.metrics.exact_match import is_same_output
from redraft.retrieval.base import Retriever
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.retrieval.bow import BowRetriever
from redraft.retrieval.fused import fuse
from redraft.retrieval.reranked import RerankedRetriever
from redraft.training.fit import FitOptions
from redraft.training.fit_auto import fit_auto, fit_reranked
from redraft.types import Input, Prototype

VARIANT = "edited"
BM25 = "bm25"
METRICS = {
    "bleu_yin": "BLEU, prototype",
    "edited": "BLEU, edited",
    "exact": "edited, right %",
}
RANKED = 30
"""Prototypes of each ranking that are fused."""

Rank = Callable[[Input], Sequence[int]]
Scores = Mapping[str, Sequence[float]]


def edit_rows(sets: Sequence[PairSet], log: Callable[[str], None]) -> Iterator[Row]:
    """Yield every ranker on every set, its difference to BM25, and the means over the sets."""

    def score(pairs: PairSet) -> Iterator[tuple[str, Scores]]:
        editor = SubstitutionEditor(ValueTable.learn(pairs.train))
        for name, rank in _rankers(pairs, editor.table, log).items():
            yield name, measure(rank, pairs, editor)

    yield from compared_rows(sets, score, variant=VARIANT)


def compared_rows(
    sets: Sequence[PairSet],
    score: Callable[[PairSet], Iterator[tuple[str, Scores]]],
    *,
    variant: str,
) -> Iterator[Row]:
    """Yield the scores of every system on every set, its difference to BM25, and the means.

    `score` yields the systems of a set with the scores of every question, BM25 first.
    """
    scores: dict[str, dict[str, Scores]] = defaultdict(dict)
    for pairs in sets:
        for name, own in score(pairs):
            scores[name][pairs.name] = own
            yield _row(name, pairs.name, pairs.split, [own], variant=variant)
            if name != BM25:
                lead = _less(own, scores[BM25][pairs.name])
                yield _row(name, pairs.name, pairs.split, [lead], variant=variant, baseline=BM25)
    if len(sets) < 2:
        return
    for name, by_set in scores.items():
        split, parts = sets[0].split, [by_set[pairs.name] for pairs in sets]
        yield _row(name, MEAN_OF_ALL, split, parts, variant=variant)
        if name != BM25:
            leads = [_less(by_set[pairs.name], scores[BM25][pairs.name]) for pairs in sets]
            yield _row(name, MEAN_OF_ALL, split, leads, variant=variant, baseline=BM25)


def _rankers(pairs: PairSet, table: ValueTable, log: Callable[[str], None]) -> dict[str, Rank]:
    auto = fit_auto(pairs.train, FitOptions(log=log))
    chosen = auto.chosen
    reranked = chosen if isinstance(chosen, RerankedRetriever) else fit_reranked(pairs.train)
    bm25, lexical = (
        retrieved(pairs, kind.build(pairs.train)) for kind in (Bm25Retriever, BowRetriever)
    )
    masked = _masked(pairs, table)
    return {
        BM25: bm25,
        "lexical": lexical,
        "bm25, values masked": masked,
        "bm25 + lexical": _fused(bm25, lexical),
        "bm25 + values masked": _fused(bm25, masked),
        "reranked": retrieved(pairs, reranked),
        "auto": retrieved(pairs, auto),
    }


def retrieved(pairs: PairSet, retriever: Retriever) -> Rank:
    """Return the ranking of a retriever over the training pairs."""
    rows = {id(example): row for row, example in enumerate(pairs.train)}
    return lambda x: [
        rows[id(prototype.example)]
        for prototype in retriever.retrieve([x], RANKED, distinct=False)[0]
    ]


def _masked(pairs: PairSet, table: ValueTable) -> Rank:
    """Return BM25 over the words and pairs of words of inputs whose values are masked."""
    sources = [SlottedExample.of(example, table) for example in pairs.train]
    index = Bm25Index.build(masked_input(source.x, source.slots) for source in sources)

    def rank(x: Input) -> list[int]:
        scores = index.scores(masked_query(Query.of(x, table)))
        ranked: list[int] = np.argsort(-scores, kind="stable")[:RANKED].tolist()
        return ranked

    return rank


def _fused(*rankers: Rank) -> Rank:
    def rank(x: Input) -> list[int]:
        fused, _ = fuse([np.array(ranker(x), np.int64) for ranker in rankers], RANKED)
        rows: list[int] = fused.tolist()
        return rows

    return rank


def measure(rank: Rank, pairs: PairSet, editor: SubstitutionEditor) -> Scores:
    values: dict[str, list[float]] = {metric: [] for metric in METRICS}
    for example in pairs.asked:
        first = pairs.train[rank(example.x)[0]]
        output = editor.edit([example.x], [[Prototype(first, 0.0)]])[0][0].output
        values["bleu_yin"].append(100 * bleu_yin(example.y, first.y))
        values["edited"].append(100 * bleu_yin(example.y, output))
        values["exact"].append(100.0 * is_same_output(output, example.y))
    return values


def _less(ours: Scores, theirs: Scores) -> Scores:
    return {metric: np.subtract(ours[metric], theirs[metric]).tolist() for metric in ours}


def _row(
    name: str,
    setting: str,
    split: str,
    parts: Sequence[Scores],
    *,
    variant: str,
    baseline: str = "",
) -> Row:
    """Return the mean over the `parts`, one per set."""
    metrics = parts[0].keys()
    means = {
        metric: round(float(np.mean([np.mean(part[metric]) for part in parts])), DECIMALS)
        for metric in metrics
    }
    intervals = interval_of(parts[0])
    if len(parts) > 1:
        intervals = {
            metric: mean_of_means([np.array(part[metric]) for part in parts]) for metric in metrics
        }
    return Row(
        name,
        setting,
        split,
        ALL_SEEDS if baseline else 0,
        sum(len(part["exact"]) for part in parts),
        means,
        intervals,
        variant=variant,
        baseline=baseline,
        baseline_variant=variant if baseline else "",
    )
