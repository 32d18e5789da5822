"""The paper's autocomplete tables: Retrieve+Edit, the retrievers alone, and what a user might pick
instead, in a project of their own and across packages.

Every editor trains on the same functions for a fixed number of steps and keeps its last weights.
The n-gram caches are fitted on the functions of dev, and nothing on those that are measured.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from redraft.config import merged, values_of
from redraft.editing.neural_editor import NeuralEditor
from redraft.fitting import (
    FitOptions,
    Parts,
    editor_config,
    fit_editor,
    fit_encoder,
    retriever_config,
)
from redraft.models.ngram_cache import NgramCache
from redraft.retrieval.encoder import DirectionEncoder
from redraft.retrieval.learned import InputRetriever, TaskRetriever
from redraft.retrieval.lexical import Bm25Retriever, LexicalRetriever
from redraft.retrieval.retriever import NoRetriever, Retriever
from redraft.studies.completions import Measured, measure_editor, measure_retriever
from redraft.studies.functions import (
    IN_PROJECT,
    OTHER_FILES,
    PAPER,
    RETRIEVED,
    STRICT,
    Build,
    Found,
    Functions,
    Setting,
    settings,
)
from redraft.studies.peers import ClassicCache, suffix_match
from redraft.training.fit_cache import fit_cache, fit_gate
from redraft.training.train_editor import FEW_EPOCHS, count_projects
from redraft.training.train_retriever import Target, input_target, task_target

Settings = Mapping[str, Mapping[str, Any]]

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

SUFFIX_PROTOTYPES = 3
SUFFIX_LENGTHS = (1, 2, 3, 4, 6, 8)
"""How many words must agree for the suffix match to be believed: chosen on dev."""


@dataclass(frozen=True)
class Size:
    """How much is trained and asked."""

    steps: int  # of an editor
    batch: int  # examples of a step
    retriever_steps: int
    asked: int  # functions of each held-out package
    fitted: int  # the same on dev, to fit caches
    decoded: int  # functions of all, whose bodies are written whole


SIZES = {
    "small": Size(steps=800, batch=8, retriever_steps=150, asked=12, fitted=16, decoded=60),
    "full": Size(steps=12_000, batch=16, retriever_steps=4_000, asked=20, fitted=16, decoded=200),
}
"""Few functions teach more in many small steps; the full size has the steps of the paper's code."""


class Bench:
    """Trains what is measured, once for each seed, and keeps what is retrieved."""

    def __init__(
        self, strict: Functions, paper: Functions, size: Size, options: FitOptions, folder: Path
    ) -> None:
        self.strict = strict
        self.size = size
        self.options = options
        self.folder = folder / f"seed-{options.seed}"
        self.asked = settings(strict, paper, split="test", each=size.asked)
        self.dev = settings(strict, paper, split="dev", each=size.fitted)
        self._found: dict[tuple[str, str, str], Found] = {}

    def found(self, setting: Setting, name: str = "bm25", build: Build | None = None) -> Found:
        """What a retriever finds in a setting, retrieved once."""
        key = (name, setting.name, setting.split)
        if key not in self._found:
            self._found[key] = setting.retrieve(build or Bm25Retriever.build)
        return self._found[key]

    def editor(
        self, name: str, retriever: Retriever, changed: Settings | None = None
    ) -> tuple[NeuralEditor, dict[str, Any]]:
        """An editor trained on what the retriever finds, and what a row says of it."""
        steps = {
            "steps": self.size.steps,
            "batch_size": self.size.batch,
            "evaluate_every": self.size.steps,
        }
        common = self.options.settings.get("editor", {})
        seen = self.size.steps * self.size.batch / len(self.strict.train)
        network = {"dropout": 0.0} if seen <= FEW_EPOCHS else {}
        tables = merged({"training": steps, "network": network}, common, changed or {})
        folder = self.folder / "".join(each if each.isalnum() else "-" for each in name)
        options = replace(self.options, folder=folder, settings={"editor": tables})
        started = time.monotonic()
        editor = fit_editor(Parts(self.strict.train, []), retriever, options)
        about = {
            "train_seconds": round(time.monotonic() - started, 1),
            "parameters": sum(each.numel() for each in editor.network.parameters()),
            "config": {
                **values_of(
                    editor_config(
                        len(self.strict.train), options, projects=count_projects(self.strict.train)
                    )
                ),
                "numbering": values_of(editor.numbering.config),
            },
        }
        return editor, about

    def encoder(self, name: str, target: Target) -> tuple[DirectionEncoder, dict[str, Any]]:
        """The encoder of a learned retriever, and what a row says of it."""
        steps = {"steps": self.size.retriever_steps, "evaluate_every": self.size.retriever_steps}
        tables = merged({"training": steps}, self.options.settings.get("retriever", {}))
        options = replace(self.options, folder=self.folder / name, settings={"retriever": tables})
        started = time.monotonic()
        encoder = fit_encoder(Parts(self.strict.train, []), options, target=target)
        return encoder, {
            "train_seconds": round(time.monotonic() - started, 1),
            "parameters": sum(each.numel() for each in encoder.network.parameters()),
            "config": values_of(retriever_config(len(self.strict.train), options)),
        }

    def fit_cache(self, editor: NeuralEditor) -> NgramCache:
        """The cache of an editor, fitted on dev: in projects, and on a few across packages."""
        own, others = self.dev[IN_PROJECT], self.dev[STRICT]
        some = slice(None, None, 3)
        examples = [*own.asked, *others.asked[some]]
        return fit_cache(editor, examples, [*self.found(own), *self.found(others)[some]])


def retriever_rows(bench: Bench) -> Iterator[Measured]:
    """Every retriever, its prototypes' outputs aligned with what was typed."""
    systems: dict[str, tuple[Build, dict[str, Any]]] = {
        "lexical": (LexicalRetriever.build, {}),
        "bm25": (Bm25Retriever.build, {}),
    }
    for retriever, target in ((TaskRetriever, task_target), (InputRetriever, input_target)):
        encoder, about = bench.encoder(retriever.name, target)
        systems[retriever.name] = partial(retriever.build, encoder=encoder), about
    for name, (build, about) in systems.items():
        for setting in bench.asked.values():
            measured = measure_retriever(name, setting, bench.found(setting, name, build))
            row = replace(measured.row, seed=bench.options.seed, **about)
            yield replace(measured, row=row)


def system_rows(bench: Bench) -> Iterator[Measured]:
    """Retrieve+Edit and its peers."""
    yield from retriever_rows(bench)
    yield from retrieve_and_edit_rows(bench)
    yield from peer_rows(bench)


def retrieve_and_edit_rows(bench: Bench) -> Iterator[Measured]:
    """The default in every setting."""
    editor, about = bench.editor("retrieve+edit", Bm25Retriever.build(bench.strict.train))
    editor = editor.with_cache(bench.fit_cache(editor))
    for setting in bench.asked.values():
        yield _measure(bench, "retrieve+edit", setting, editor, about)


def peer_rows(bench: Bench) -> Iterator[Measured]:
    """Seq2Seq alone and with what else knows the project, and a decoder-only Transformer."""
    nothing = NoRetriever(bench.strict.train)
    editor, about = bench.editor("seq2seq", nothing)
    # what reads no prototype is the same in every setting with the same questions
    for setting in (bench.asked[IN_PROJECT], bench.asked[PAPER]):
        yield from _alike(bench, _measure(bench, "seq2seq", setting, editor, about))
    cached = with_classic_cache(bench, editor)
    suffix = choose_suffix(bench, editor)
    alone = editor.with_decoding(cached.decoding).with_cache(ClassicCache.alone())
    for setting in (bench.asked[IN_PROJECT], bench.asked[OTHER_FILES]):
        yield _measure(bench, "seq2seq + cache", setting, cached, about, is_decoded=False)
        yield _measure(bench, "seq2seq + suffix", setting, suffix, about, is_decoded=False)
        yield _measure(bench, "cache", setting, alone, {}, is_decoded=False)
    network = {"architecture": "decoder-only", "copying": "none"}
    editor, about = bench.editor("decoder-only", nothing, {"network": network})
    for setting in (bench.asked[IN_PROJECT], bench.asked[PAPER]):
        yield from _alike(bench, _measure(bench, "decoder-only", setting, editor, about))


def with_classic_cache(bench: Bench, editor: NeuralEditor) -> NeuralEditor:
    """The editor with a cache over all of the project, its share for each match fitted on dev."""
    everything = editor.with_decoding(replace(editor.decoding, cached=RETRIEVED))
    cache, dev = ClassicCache(), bench.dev[IN_PROJECT]
    fit_gate(cache, [cache.shares], everything, dev.asked, bench.found(dev))
    return everything.with_cache(cache)


def choose_suffix(bench: Bench, editor: NeuralEditor) -> NeuralEditor:
    """The editor with the suffix match that completes most on dev."""
    few = editor.with_decoding(replace(editor.decoding, cached=SUFFIX_PROTOTYPES))
    dev = bench.dev[IN_PROJECT]

    def completed(least: int) -> float:
        tried = few.with_cache(suffix_match(least))
        measured = measure_editor("", dev, bench.found(dev), tried, decoded=0)
        return measured.row.metrics["avg_1"]

    return few.with_cache(suffix_match(max(SUFFIX_LENGTHS, key=completed)))


def _measure(
    bench: Bench,
    system: str,
    setting: Setting,
    editor: NeuralEditor,
    about: Mapping[str, Any],
    *,
    is_decoded: bool = True,
) -> Measured:
    decoded = bench.size.decoded if is_decoded else 0
    measured = measure_editor(system, setting, bench.found(setting), editor, decoded=decoded)
    row = replace(measured.row, seed=bench.options.seed, **about)
    return replace(measured, row=row)


def _alike(bench: Bench, measured: Measured) -> Iterator[Measured]:
    """The same figures in every setting that asks the same questions."""
    asked = bench.asked[measured.row.setting].asked
    for setting in bench.asked.values():
        if setting.asked is asked:
            yield replace(measured, row=replace(measured.row, setting=setting.name))


ABLATIONS: Mapping[str, Settings] = {
    "1 prototype read": {"numbering": {"prototypes": 1}},
    "no match lengths": {"network": {"match_length": 0}},
    "trained in-project only": {"prototypes": {"across": 0.0, "absent": 0.0}},
    "trained across only": {"prototypes": {"across": 1.0, "absent": 0.0}},
}
"""Each with the default otherwise."""


def ablation_rows(bench: Bench) -> Iterator[Measured]:
    """Retrieve+Edit with one part changed at a time."""
    retriever = Bm25Retriever.build(bench.strict.train)
    asked = [bench.asked[IN_PROJECT], bench.asked[STRICT]]

    def rows(what: str, editor: NeuralEditor, about: Mapping[str, Any]) -> Iterator[Measured]:
        for setting in asked:
            measured = _measure(bench, "retrieve+edit", setting, editor, about, is_decoded=False)
            row = replace(measured.row, setting=f"{setting.name}, {what}")
            yield replace(measured, row=row)

    editor, about = bench.editor("retrieve+edit", retriever)
    yield from rows("no cache", editor, about)
    unread, about = bench.editor("seq2seq", NoRetriever(bench.strict.train))
    unread = unread.with_decoding(editor.decoding)
    yield from rows("no prototype read", unread.with_cache(bench.fit_cache(unread)), about)
    for what, changed in ABLATIONS.items():
        editor, about = bench.editor(what, retriever, changed)
        yield from rows(what, editor.with_cache(bench.fit_cache(editor)), about)


MEASURES: Mapping[str, Sequence[Callable[[Bench], Iterator[Measured]]]] = {
    "systems": (system_rows,),
    "ablations": (ablation_rows,),
}
"""What can be measured, by name."""
