"""Fit the re-ranked retriever, and choose the retriever whose prototypes are edited best.

Training pairs are asked of an index and a table of values that do not have them, and the candidates
are edited without training: the similarity of the edits to the truth is the label of the re-ranker,
and what retrievers are compared by. Needs no torch.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from redraft.editing.proposals import stored_candidates
from redraft.editing.reranker import Differences, Reranker
from redraft.editing.slot_filling import Query, opposites
from redraft.editing.substitution import substitute
from redraft.editing.templates import TemplateModel
from redraft.editing.value_table import ValueTable
from redraft.errors import PairsError
from redraft.metrics.bleu import bleu_yin
from redraft.metrics.bootstrap import mean_interval
from redraft.metrics.exact_match import is_same_output
from redraft.retrieval.auto import AutoRetriever, MeasuredRetriever, Selection
from redraft.retrieval.base import Retriever
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.retrieval.bow import BowRetriever
from redraft.retrieval.fused import EncoderRetriever
from redraft.retrieval.published_encoder import read_encoder
from redraft.retrieval.reranked import COLUMNS, RerankedRetriever, compare
from redraft.training.fit import DEV_MIN, FitOptions
from redraft.training.fit_choosing import MAX_COUNTED, MAX_EXAMPLES, even_sample
from redraft.types import Example, normal_input

MAX_QUESTIONS = 400
"""Held-out training pairs that the re-ranker is trained on and retrievers are compared on."""

CANDIDATES = 30
"""BM25's candidates that are edited for each of them."""

INDEX_FOLDS, RERANKER_FOLDS = 5, 5
"""Folds of the pairs that the index does not have, and of cross-fitting the re-ranker."""

Similarities = NDArray[np.float64]


@dataclass(frozen=True)
class _Asked:
    """A held-out pair: its candidates' differences, and the similarity of their edits."""

    example: Example
    differences: Differences
    similarities: Similarities  # 1 if the edit is right
    firsts: Mapping[str, float]  # the same of the first prototypes of other retrievers, by name


@dataclass(frozen=True)
class _Trained:
    retriever: RerankedRetriever
    asked: Sequence[_Asked]
    scores: Sequence[Similarities]  # by re-rankers that were fitted without the pair


def fit_auto(examples: Sequence[Example], options: FitOptions) -> AutoRetriever:
    """Return the retriever whose edited prototypes answer held-out pairs best.

    It is BM25 unless the best one is surely ahead of it: the 95 % interval of the paired difference
    in similarity is above zero.
    """
    sample = even_sample(examples, MAX_EXAMPLES)
    others: dict[str, Retriever] = {BowRetriever.name: BowRetriever.build(sample)}
    if options.encoder is not None:
        encoder = read_encoder(options.encoder)
        others[EncoderRetriever.name] = EncoderRetriever.build(sample, encoder)
    trained = _train(examples, sample, others) if len(examples) >= DEV_MIN else None
    if trained is None:
        selection = Selection(Bm25Retriever.name, 0, ())
    else:
        selection = _select(trained.asked, trained.scores)
    options.log(f"retriever: {selection.text}")
    if selection.chosen == RerankedRetriever.name and trained is not None:
        return AutoRetriever(trained.retriever, selection)
    if selection.chosen in others:
        chosen = others[selection.chosen]
        is_complete = len(sample) == len(examples)
        return AutoRetriever(chosen if is_complete else chosen.with_examples(examples), selection)
    base = trained.retriever.base if trained is not None else Bm25Retriever.build(examples)
    return AutoRetriever(base, selection)


def fit_reranked(examples: Sequence[Example]) -> RerankedRetriever:
    """Return BM25 with a re-ranker trained on edits; raise a PairsError for too few pairs."""
    sample = even_sample(examples, MAX_EXAMPLES)
    trained = _train(examples, sample, {}) if len(examples) >= DEV_MIN else None
    if trained is None:
        raise PairsError(
            f"the reranked retriever needs {DEV_MIN} pairs with different inputs to learn from; "
            "give more pairs, or choose --retriever bm25"
        )
    return trained.retriever


def _train(
    examples: Sequence[Example], sample: Sequence[Example], others: Mapping[str, Retriever]
) -> _Trained | None:
    """Train the re-ranker on edits of the `sample`; None if no pair is left to ask.

    The first prototypes of `others`, retrievers over the sample, are edited to compare with.
    """
    table = ValueTable.learn(sample)
    templates = TemplateModel.learn(even_sample(sample, MAX_COUNTED), table)
    asked = _ask(sample, templates, others)
    if len(asked) < RERANKER_FOLDS:
        return None
    scores: list[Similarities] = [np.empty(0)] * len(asked)
    held_out = {}
    for fold in range(RERANKER_FOLDS):
        reranker = _fit([one for i, one in enumerate(asked) if i % RERANKER_FOLDS != fold])
        for i in range(fold, len(asked), RERANKER_FOLDS):
            scores[i] = reranker.score(asked[i].differences)
            held_out[normal_input(asked[i].example.x)] = reranker
    base = Bm25Retriever.build(examples)
    return _Trained(
        RerankedRetriever(base, templates, _fit(asked), held_out),
        asked,
        scores,
    )


def _fit(asked: Sequence[_Asked]) -> Reranker:
    differences = [one.differences for one in asked]
    return Reranker.fit_lists(differences, [one.similarities for one in asked], names=COLUMNS)


def _ask(
    examples: Sequence[Example], templates: TemplateModel, others: Mapping[str, Retriever]
) -> list[_Asked]:
    """Ask training pairs of an index and a table without them; stored inputs are left out."""
    rows = list(range(len(examples)))
    random.Random(0).shuffle(rows)
    rows = rows[:MAX_QUESTIONS]
    base = Bm25Retriever.build(examples)
    asked: list[_Asked] = []
    for fold in range(INDEX_FOLDS):
        fold_rows = sorted(rows[fold::INDEX_FOLDS])
        questions = [examples[row] for row in fold_rows]
        inputs = [example.x for example in questions]
        candidates = base.remove(fold_rows).retrieve(inputs, CANDIDATES, distinct=False)
        firsts = {name: other.remove(fold_rows).retrieve(inputs) for name, other in others.items()}
        with templates.table.without(questions):
            for i, (example, found) in enumerate(zip(questions, candidates, strict=True)):
                if not found or stored_candidates(example.x, found):
                    continue
                read = [templates.template(prototype.example) for prototype in found]
                distances = np.array([prototype.distance for prototype in found], np.float32)
                asked.append(
                    _Asked(
                        example,
                        compare(example.x, read, distances, templates),
                        _edit(example, [prototype.example for prototype in found], templates),
                        {
                            name: float(_edit(example, [first[i][0].example], templates)[0])
                            for name, first in firsts.items()
                        },
                    )
                )
    return asked


def _edit(
    example: Example, prototypes: Sequence[Example], templates: TemplateModel
) -> Similarities:
    """Return the similarity to the truth of each prototype's edit."""
    table = templates.table
    query = Query.of(example.x, table)
    similarities = []
    for prototype in prototypes:
        source = templates.template(prototype).source
        edit = substitute(query, source, table, opposite=opposites(query, source, table))
        is_right = is_same_output(edit.output, example.y)
        # BLEU below 1 for other outputs, so that only right ones count as exact
        similarities.append(1.0 if is_right else min(bleu_yin(example.y, edit.output), 0.999))
    return np.array(similarities)


def _select(asked: Sequence[_Asked], scores: Sequence[Similarities]) -> Selection:
    """Compare the retrievers by the edits of their first prototypes, and apply the rule."""
    pairs = list(zip(asked, scores, strict=True))
    similarities = {
        Bm25Retriever.name: [one.similarities[0] for one in asked],
        **{name: [one.firsts[name] for one in asked] for name in asked[0].firsts},
        RerankedRetriever.name: [one.similarities[score.argmax()] for one, score in pairs],
    }
    base = np.array(similarities[Bm25Retriever.name])
    measured = []
    for name, values in similarities.items():
        gains = np.array(values) - base
        low, high = mean_interval(gains)
        figures = (np.mean(values), np.mean(np.array(values) == 1), gains.mean(), low, high)
        measured.append(MeasuredRetriever(name, *(round(100 * float(x), 2) for x in figures)))
    best = max(measured, key=lambda row: row.similarity)
    chosen = best.name if best.low > 0 else Bm25Retriever.name
    return Selection(chosen, len(asked), tuple(measured))
