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
from redraft.index.bm25 import build_scorer
from redraft.metrics.bleu import bleu_yin
from redraft.metrics.exact_match import is_same_output
from redraft.retrieval.base import Retriever
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.retrieval.bow import BowRetriever
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

FUSION = 20
"""The constant of reciprocal rank fusion (Cormack et al. 2009)."""

Rank = Callable[[Input], Sequence[int]]
Scores = Mapping[str, Sequence[float]]


def edit_rows(sets: Sequence[PairSet], log: Callable[[str], None]) -> Iterator[Row]:
    """Yield every ranker on every set, its difference to BM25, and the means over the sets."""
    scores: dict[str, dict[str, Scores]] = defaultdict(dict)
    for pairs in sets:
        editor = SubstitutionEditor(ValueTable.learn(pairs.train))
        for name, rank in _rankers(pairs, editor.table, log).items():
            own = scores[name][pairs.name] = _measure(rank, pairs, editor)
            yield _row(name, pairs.name, pairs.split, [own])
            if name != BM25:
                lead = _less(own, scores[BM25][pairs.name])
                yield _row(name, pairs.name, pairs.split, [lead], baseline=BM25)
    if len(sets) < 2:
        return
    for name, by_set in scores.items():
        parts = [by_set[pairs.name] for pairs in sets]
        yield _row(name, MEAN_OF_ALL, sets[0].split, parts)
        if name != BM25:
            leads = [_less(by_set[pairs.name], scores[BM25][pairs.name]) for pairs in sets]
            yield _row(name, MEAN_OF_ALL, sets[0].split, leads, baseline=BM25)


def _rankers(pairs: PairSet, table: ValueTable, log: Callable[[str], None]) -> dict[str, Rank]:
    auto = fit_auto(pairs.train, FitOptions(log=log))
    chosen = auto.chosen
    reranked = chosen if isinstance(chosen, RerankedRetriever) else fit_reranked(pairs.train)
    rows = {id(example): row for row, example in enumerate(pairs.train)}

    def retrieved(retriever: Retriever) -> Rank:
        return lambda x: [
            rows[id(prototype.example)]
            for prototype in retriever.retrieve([x], RANKED, distinct=False)[0]
        ]

    bm25, lexical = (retrieved(kind.build(pairs.train)) for kind in (Bm25Retriever, BowRetriever))
    masked = _masked(pairs, table)
    return {
        BM25: bm25,
        "lexical": lexical,
        "bm25, values masked": masked,
        "bm25 + lexical": _fused(bm25, lexical),
        "bm25 + values masked": _fused(bm25, masked),
        "reranked": retrieved(reranked),
        "auto": retrieved(auto),
    }


def _masked(pairs: PairSet, table: ValueTable) -> Rank:
    """Return BM25 over the words and pairs of words of inputs whose values are masked."""
    sources = [SlottedExample.of(example, table) for example in pairs.train]
    scorer = build_scorer([masked_input(source.x, source.slots) for source in sources])

    def rank(x: Input) -> list[int]:
        ids = scorer.get_tokens_ids(masked_query(Query.of(x, table)))
        scores = scorer.get_scores_from_ids(ids)[: len(sources)]
        ranked: list[int] = np.argsort(-scores, kind="stable")[:RANKED].tolist()
        return ranked

    return rank


def _fused(*rankers: Rank) -> Rank:
    def rank(x: Input) -> list[int]:
        scores: dict[int, float] = defaultdict(float)
        for ranker in rankers:
            for place, row in enumerate(ranker(x)):
                scores[row] += 1 / (FUSION + place)
        return sorted(scores, key=lambda row: -scores[row])

    return rank


def _measure(rank: Rank, pairs: PairSet, editor: SubstitutionEditor) -> Scores:
    values: dict[str, list[float]] = {metric: [] for metric in METRICS}
    for example in pairs.asked:
        first = pairs.train[rank(example.x)[0]]
        output = editor.edit([example.x], [[Prototype(first, 0.0)]])[0][0].output
        values["bleu_yin"].append(100 * bleu_yin(example.y, first.y))
        values["edited"].append(100 * bleu_yin(example.y, output))
        values["exact"].append(100.0 * is_same_output(output, example.y))
    return values


def _less(ours: Scores, theirs: Scores) -> Scores:
    return {metric: np.subtract(ours[metric], theirs[metric]).tolist() for metric in METRICS}


def _row(
    name: str, setting: str, split: str, parts: Sequence[Scores], *, baseline: str = ""
) -> Row:
    """Return the mean over the `parts`, one per set."""
    means = {
        metric: round(float(np.mean([np.mean(part[metric]) for part in parts])), DECIMALS)
        for metric in METRICS
    }
    intervals = interval_of(parts[0])
    if len(parts) > 1:
        intervals = {
            metric: mean_of_means([np.array(part[metric]) for part in parts]) for metric in METRICS
        }
    return Row(
        name,
        setting,
        split,
        ALL_SEEDS if baseline else 0,
        sum(len(part["exact"]) for part in parts),
        means,
        intervals,
        variant=VARIANT,
        baseline=baseline,
        baseline_variant=VARIANT if baseline else "",
    )
