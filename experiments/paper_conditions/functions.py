"""Completion of Python functions in a corpus with near-copies across packages.

The paper's tables of completion: Retrieve+Edit, Seq2Seq and the retrievers alone. A question is a
function of a held-out package, answered by the functions of the training packages.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from experiments.autocomplete.bench import CompletionBench, Size
from experiments.autocomplete.completions import (
    COMPLETIONS,
    measure_default,
    measure_retriever,
)
from experiments.autocomplete.run import lstm_settings
from experiments.autocomplete.settings import PAPER, Build, Functions
from experiments.lib.paired import NETWORK, PAPERS_DEFAULT, PAPERS_UNAIDED
from experiments.lib.results import Measured
from experiments.lib.settings import merged
from experiments.paper_conditions.cards import COPYING
from experiments.paper_conditions.cards import PAPER as COPIES
from redraft.retrieval.base import NoRetriever
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.retrieval.bow import BowRetriever
from redraft.retrieval.dense import InputRetriever, TaskRetriever
from redraft.training.fit import FitOptions
from redraft.training.fit_auto import fit_reranked
from redraft.training.retriever_task import input_target, task_target

SETTING = "near-copies"
METRICS = COMPLETIONS

ACROSS = {"prototypes": {"cross_project": 1.0, "prototype_dropout": 0.0}}
"""Prototypes of other packages in training, as in answering."""

SIZE = Size(steps=2_400, batch=8, retriever_steps=400, asked=12, fitted=16, decoded=100)


class NearCopyBench:
    """Trains and measures the systems with one seed."""

    def __init__(self, corpus: Functions, options: FitOptions, folder: Path) -> None:
        self.train = corpus.train
        self.bench = CompletionBench(corpus, corpus, SIZE, options, folder)
        self.setting = replace(self.bench.asked[PAPER], name=SETTING)

    def untrained_rows(self) -> Iterator[Measured]:
        """Measure the retrievers that learn nothing."""
        yield self._alone("lexical", BowRetriever.build, {})
        yield self._alone("bm25", Bm25Retriever.build, {})

    def learned_rows(self) -> Iterator[Measured]:
        """Measure the learned retrievers alone."""
        for retriever, target in ((TaskRetriever, task_target), (InputRetriever, input_target)):
            encoder, about = self.bench.encoder(retriever.name, target)
            yield self._alone(retriever.name, partial(retriever.build, encoder=encoder), about)

    def reranked_rows(self) -> Iterator[Measured]:
        """Measure the retriever that learns from edits."""
        reranked = fit_reranked(self.train)
        yield self._alone(reranked.name, lambda _: reranked, {})

    def _alone(self, name: str, build: Build, about: Mapping[str, Any]) -> Measured:
        found = self.bench.found(self.setting, name, build)
        return self.bench.about(measure_retriever(name, self.setting, found), about)

    def default_rows(self) -> Iterator[Measured]:
        """Measure the default: code is copied and edited without a network."""
        yield self.bench.about(measure_default(self.setting, self.bench.options), {})

    def system_rows(self) -> Iterator[Measured]:
        """Measure a network that reads BM25's prototype, without an n-gram cache, and Seq2Seq."""
        retriever = Bm25Retriever.build(self.train)
        editor, about = self.bench.editor(NETWORK, retriever, ACROSS)
        yield self.bench.measure(NETWORK, self.setting, editor, about)
        editor, about = self.bench.editor("seq2seq", NoRetriever(self.train))
        yield self.bench.measure("seq2seq", self.setting, editor, about)

    def lstm_rows(self) -> Iterator[Measured]:
        """Measure both with the paper's LSTM, its copying and its retriever; Seq2Seq is faster."""
        settings = merged(lstm_settings(), {"network": {"copying": COPYING[COPIES]}})
        editor, about = self.bench.editor("seq2seq LSTM", NoRetriever(self.train), settings)
        yield self.bench.measure(PAPERS_UNAIDED, self.setting, editor, about)
        encoder, _ = self.bench.encoder(TaskRetriever.name, task_target)
        build = partial(TaskRetriever.build, encoder=encoder)
        found = self.bench.found(self.setting, TaskRetriever.name, build)
        editor, about = self.bench.editor("retrieve+edit LSTM", build(self.train), settings)
        yield self.bench.measure(PAPERS_DEFAULT, self.setting, editor, about, found=found)
