"""The paper's autocomplete tables: Retrieve+Edit, the retrievers alone, and what a user might pick
instead, in a project of their own and across packages.

Every editor trains on the same functions for a fixed number of steps and keeps its last weights.
The n-gram caches are fitted on the functions of dev, and nothing on those that are measured.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np

from experiments.autocomplete.bench import CompletionBench, Settings
from experiments.autocomplete.completions import measure_retriever
from experiments.autocomplete.settings import (
    IN_PROJECT,
    OTHER_FILES,
    PAPER,
    RETRIEVED,
    STRICT,
    Build,
    Found,
)
from experiments.lib.baselines import ClassicCache, suffix_match
from experiments.lib.decoder_only import DECODER_ONLY, decoder_only
from experiments.lib.next_token import predict_by_caches
from experiments.lib.results import Measured
from redraft.editing.neural import NeuralEditor
from redraft.metrics.completion import completion_metrics
from redraft.metrics.retrieval_quality import oracle_prototypes
from redraft.retrieval.base import NoRetriever
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.retrieval.bow import BowRetriever
from redraft.retrieval.dense import InputRetriever, TaskRetriever
from redraft.training.cache_gate import fit_gate
from redraft.training.editor_config import preset_config
from redraft.training.retriever_task import input_target, task_target
from redraft.types import Prototype

PUBLISHED: tuple[Mapping[str, Any], ...] = (
    {
        "system": "Retrieve+Edit (Hashimoto et al. 2018)",
        "avg_1": 5.8,
        "avg_5": 7.5,
        "avg_10": 8.1,
        "longest_1": 17.6,
        "longest_10": 21.9,
        "bleu_yin": 34.7,
    },
    {
        "system": "Seq2Seq (ibid.)",
        "avg_1": 2.5,
        "avg_5": 3.4,
        "avg_10": 3.8,
        "longest_1": 10.6,
        "longest_10": 13.2,
        "bleu_yin": 19.2,
    },
    {"system": "TaskRetriever alone (ibid.)", "avg_1": 4.7, "longest_1": 13.5, "bleu_yin": 29.9},
    {"system": "InputRetriever alone (ibid.)", "avg_1": 4.1, "longest_1": 12.3, "bleu_yin": 29.8},
    {"system": "LexicalRetriever alone (ibid.)", "avg_1": 3.4, "longest_1": 9.8, "bleu_yin": 23.1},
)
"""On the authors' own corpus, by their own reading of the metrics."""

ORACLE = "oracle prototypes"

SUFFIX_PROTOTYPES = 3
SUFFIX_LENGTHS = (1, 2, 3, 4, 6, 8)
"""How many words must agree for the suffix match to be believed: chosen on dev."""


def retriever_rows(bench: CompletionBench) -> Iterator[Measured]:
    """Every retriever, its prototypes' outputs aligned with what was typed."""
    systems: dict[str, tuple[Build, dict[str, Any]]] = {
        "lexical": (BowRetriever.build, {}),
        "bm25": (Bm25Retriever.build, {}),
    }
    for retriever, target in ((TaskRetriever, task_target), (InputRetriever, input_target)):
        encoder, about = bench.encoder(retriever.name, target)
        systems[retriever.name] = partial(retriever.build, encoder=encoder), about
    for name, (build, about) in systems.items():
        for setting in bench.asked.values():
            measured = measure_retriever(name, setting, bench.found(setting, name, build))
            yield bench.about(measured, about)


def system_rows(bench: CompletionBench) -> Iterator[Measured]:
    """Retrieve+Edit and its peers."""
    yield from retriever_rows(bench)
    yield from retrieve_and_edit_rows(bench)
    yield from peer_rows(bench)


def retrieve_and_edit_rows(bench: CompletionBench) -> Iterator[Measured]:
    """The default in every setting."""
    editor, about = bench.editor("retrieve+edit", Bm25Retriever.build(bench.strict.train))
    editor = editor.with_cache(bench.fit_cache(editor))
    for setting in bench.asked.values():
        yield bench.measure("retrieve+edit", setting, editor, about)


def peer_rows(bench: CompletionBench) -> Iterator[Measured]:
    """Seq2Seq alone and with what else knows the project, and a decoder-only Transformer."""
    nothing = NoRetriever(bench.strict.train)
    editor, about = bench.editor("seq2seq", nothing)
    # what reads no prototype is the same in every setting with the same questions
    for setting in (bench.asked[IN_PROJECT], bench.asked[PAPER]):
        yield from _alike(bench, bench.measure("seq2seq", setting, editor, about))
    cached = with_classic_cache(bench, editor)
    suffix = choose_suffix(bench, editor)
    alone = editor.with_decoding(cached.decoding).with_cache(ClassicCache.alone())
    for setting in (bench.asked[IN_PROJECT], bench.asked[OTHER_FILES]):
        yield bench.measure("seq2seq + cache", setting, cached, about, is_decoded=False)
        yield bench.measure("seq2seq + suffix", setting, suffix, about, is_decoded=False)
        yield bench.measure("cache", setting, alone, {}, is_decoded=False)
    network = {"architecture": DECODER_ONLY, "copying": "none"}
    with decoder_only():
        editor, about = bench.editor(DECODER_ONLY, nothing, {"network": network})
    for setting in (bench.asked[IN_PROJECT], bench.asked[PAPER]):
        yield from _alike(bench, bench.measure(DECODER_ONLY, setting, editor, about))


def with_classic_cache(bench: CompletionBench, editor: NeuralEditor) -> NeuralEditor:
    """The editor with a cache over all of the project, its share for each match fitted on dev."""
    everything = editor.with_decoding(replace(editor.decoding, ngram_cache_neighbours=RETRIEVED))
    cache, dev = ClassicCache(), bench.dev[IN_PROJECT]
    fit_gate(cache, [cache.shares], everything, dev.asked, bench.found(dev))
    return everything.with_cache(cache)


def choose_suffix(bench: CompletionBench, editor: NeuralEditor) -> NeuralEditor:
    """The editor with the suffix match that completes most on dev."""
    few = editor.with_decoding(replace(editor.decoding, ngram_cache_neighbours=SUFFIX_PROTOTYPES))
    dev = bench.dev[IN_PROJECT]

    tried = [suffix_match(least) for least in SUFFIX_LENGTHS]
    predicted = predict_by_caches(few.with_cache(tried[0]), tried, dev.asked, bench.found(dev))
    completed = [
        float(np.mean(completion_metrics([each.ranks for each in own])["avg_1"]))
        for own in predicted
    ]
    return few.with_cache(tried[int(np.argmax(completed))])


def _alike(bench: CompletionBench, measured: Measured) -> Iterator[Measured]:
    """The same figures in every setting that asks the same questions."""
    asked = bench.asked[measured.row.setting].asked
    for setting in bench.asked.values():
        if setting.asked is asked:
            yield replace(measured, row=replace(measured.row, setting=setting.name))


OTHER_ABLATIONS = ("no cache", "no prototype read")
ABLATIONS: Mapping[str, Settings] = {
    "3 prototypes read": {"encoding": {"prototypes": 3}},
    "trained in-project only": {"prototypes": {"cross_project": 0.0, "prototype_dropout": 0.0}},
    "trained across only": {"prototypes": {"cross_project": 1.0, "prototype_dropout": 0.0}},
}
"""Each with the default otherwise."""


def ablation_rows(bench: CompletionBench) -> Iterator[Measured]:
    """Retrieve+Edit with one part changed at a time."""
    retriever = Bm25Retriever.build(bench.strict.train)
    asked = [bench.asked[IN_PROJECT], bench.asked[STRICT]]

    def rows(what: str, editor: NeuralEditor, about: Mapping[str, Any]) -> Iterator[Measured]:
        for setting in asked:
            measured = bench.measure("retrieve+edit", setting, editor, about, is_decoded=False)
            row = replace(measured.row, variant=what)
            yield replace(measured, row=row)

    editor, about = bench.editor("retrieve+edit", retriever)
    without_cache, without_prototypes = OTHER_ABLATIONS
    yield from rows(without_cache, editor, about)
    unread, about = bench.editor("seq2seq", NoRetriever(bench.strict.train))
    unread = unread.with_decoding(editor.decoding)
    yield from rows(without_prototypes, unread.with_cache(bench.fit_cache(unread)), about)
    for what, changed in ABLATIONS.items():
        editor, about = bench.editor(what, retriever, changed)
        yield from rows(what, editor.with_cache(bench.fit_cache(editor)), about)


def paper_rows(bench: CompletionBench) -> Iterator[Measured]:
    """Across packages: the paper's own network, and the best prototypes that there are."""
    setting, train = bench.asked[PAPER], bench.strict.train
    best = oracle_prototypes(setting.known[""], setting.asked)
    oracle: list[list[Prototype]] = [
        [*([each] if each else []), *others]
        for each, others in zip(best, bench.found(setting), strict=True)
    ]
    yield bench.about(measure_retriever("oracle", setting, oracle), {})

    def rows(system: str, editor: NeuralEditor, found: Found, about: Any) -> Iterator[Measured]:
        yield bench.measure(system, setting, editor, about, found=found)
        measured = bench.measure(system, setting, editor, about, found=oracle)
        named = replace(measured.row, variant=ORACLE)
        yield replace(measured, row=named)

    editor, about = bench.editor("retrieve+edit", Bm25Retriever.build(train))
    editor = editor.with_cache(bench.fit_cache(editor))
    yield from rows("retrieve+edit", editor, bench.found(setting), about)
    encoder, _ = bench.encoder(TaskRetriever.name, task_target)
    build = partial(TaskRetriever.build, encoder=encoder)
    editor, about = bench.editor("retrieve+edit LSTM", build(train), lstm_settings())
    found = bench.found(setting, TaskRetriever.name, build)
    yield from rows("retrieve+edit (LSTM)", editor, found, about)
    editor, about = bench.editor("seq2seq LSTM", NoRetriever(train), lstm_settings())
    yield bench.measure("seq2seq (LSTM)", setting, editor, about)


def lstm_settings() -> Settings:
    """The network and the prototypes of the paper; the steps are those of every editor here."""
    tables = asdict(preset_config("paper", 0))
    names = ("learning_rate", "lr_decay")
    training = {name: tables["training"][name] for name in names}
    decoding = {"ngram_cache_neighbours": 0, "length_penalty": tables["decoding"]["length_penalty"]}
    prototypes = {"cross_project": 1.0, "prototype_dropout": 0.0}
    return {**tables, "training": training, "decoding": decoding, "prototypes": prototypes}


MEASURES: Mapping[str, Sequence[Callable[[CompletionBench], Iterator[Measured]]]] = {
    "systems": (system_rows,),
    "paper": (paper_rows,),
    "ablations": (ablation_rows,),
}
"""What can be measured, by name."""
