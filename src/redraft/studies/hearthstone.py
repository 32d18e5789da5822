"""The paper's Hearthstone table: Retrieve+Edit, Seq2Seq and the retrievers alone, and what each
part of the editor is worth.

Nothing is chosen by the cards that are measured: the editors train on all of train for a fixed
number of steps and keep their last weights.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from redraft.config import DEFAULT_RETRIEVER, merged, values_of
from redraft.data.example import Example
from redraft.editing.editor import Editor, VerbatimEditor
from redraft.editing.neural_editor import NeuralEditor
from redraft.evaluation.evaluation import Evaluation
from redraft.experiment import fit_model
from redraft.fitting import FitOptions, Parts, editor_config, fit_editor
from redraft.retrieval.retriever import Retriever
from redraft.retrieve_and_edit import RetrieveAndEdit
from redraft.studies.results import DECIMALS, Row
from redraft.training.train_editor import paper_config

SETTING = "hearthstone"
METRICS = {
    "bleu_yin": "BLEU yin",
    "bleu_paper": "BLEU paper",
    "exact": "exact %",
    "exact_clean": "exact, unseen %",
    "parses": "parses %",
}
ALONE = ("lexical", "bm25", "input", "hybrid", "task")
MIXED = (3, 5)
"""How many prototypes are mixed; the systems have one."""

OTHER_RETRIEVERS = ("lexical", "task")

PUBLISHED: tuple[Mapping[str, Any], ...] = (
    {"n": 66, "system": "Seq2Seq (Ling et al. 2016)", "bleu_paper": 60.4, "exact": 1.5},
    {"n": 66, "system": "retriever (Ling et al. 2016)", "bleu_paper": 62.5, "exact": 0.0},
    {
        "n": 66,
        "system": "Latent Predictor Network (Ling et al. 2016)",
        "bleu_paper": 65.6,
        "exact": 4.5,
    },
    {"n": 66, "system": "Retrieve+Edit (Hashimoto et al. 2018)", "bleu_paper": 70.0, "exact": 9.1},
    {"n": 66, "system": "Yin & Neubig 2017", "bleu_yin": 75.8, "exact": 16.2},
    {"n": 66, "system": "ReCode (Hayati et al. 2018)", "bleu_yin": 78.4, "exact": 19.6},
    {
        "n": 66,
        "system": "Abstract Syntax Networks (Rabinovich et al. 2017)",
        "bleu_yin": 79.2,
        "exact": 22.7,
    },
    {"n": 66, "system": "TreeGen (Sun et al. 2020), own scorer", "bleu_yin": 80.8, "exact": 31.8},
)
"""Test split, without pre-training, as their authors gave them."""

Settings = Mapping[str, Mapping[str, Any]]

ABLATIONS: Mapping[str, Settings] = {
    "no copying": {"network": {"copying": "none"}},
    "x' read too": {"numbering": {"reads_prototype_input": True}},
    "no identity augmentation": {"augmentation": {"identity": 0.0}},
    "no noise in training": {"prototypes": {"top": 1}},
    "LSTM": {"network": {"architecture": "lstm"}},
}
"""Each with the default otherwise."""


@dataclass(frozen=True)
class Cards:
    """The cards to learn from, and those to answer."""

    train: Sequence[Example]
    asked: Sequence[Example]
    split: str


class Bench:
    """Trains systems on the cards and scores their answers; retrievers are fitted once a seed."""

    def __init__(self, cards: Cards, options: FitOptions, folder: Path | None) -> None:
        self.cards = cards
        self.options = options
        self.folder = folder
        self._retrievers: dict[str, tuple[Retriever, float]] = {}

    def retriever(self, name: str) -> tuple[Retriever, float]:
        """The named retriever over all of train, and the seconds it took to fit."""
        if name not in self._retrievers:
            started = time.monotonic()
            options = self._options("retriever", name)
            model = fit_model(self.cards.train, retriever=name, editor="verbatim", options=options)
            self._retrievers[name] = model.retriever, time.monotonic() - started
        return self._retrievers[name]

    def editor(
        self, name: str, retriever: Retriever, settings: Settings
    ) -> tuple[NeuralEditor, float]:
        """An editor trained on what the retriever finds, and the seconds it took."""
        started = time.monotonic()
        options = replace(self._options("editor", name), settings={"editor": settings})
        editor = fit_editor(Parts(self.cards.train, []), retriever, options)
        return editor, time.monotonic() - started

    def _options(self, *place: str) -> FitOptions:
        seed = f"seed-{self.options.seed}"
        folder = (
            self.folder.joinpath(seed, *(_file(each) for each in place)) if self.folder else None
        )
        return replace(self.options, folder=folder)

    def row(self, system: str, setting: str, retriever: Retriever, editor: Editor) -> Row:
        """The scores of a system's answers."""
        started = time.monotonic()
        predictions = RetrieveAndEdit(retriever, editor).predict([x.x for x in self.cards.asked])
        seconds = time.monotonic() - started
        outputs = {example.y for example in self.cards.train}
        scores = Evaluation.of(self.cards.asked, predictions, train_outputs=outputs).scores
        return Row(
            system,
            setting,
            self.cards.split,
            self.options.seed,
            scores.n,
            {name: round(value, DECIMALS) for name, value in scores.metrics.items()},
            {
                n: (round(low, DECIMALS), round(high, DECIMALS))
                for n, (low, high) in scores.interval.items()
            },
            predict_seconds=round(seconds, 2),
        )

    def edited(
        self, system: str, setting: str, retriever_name: str, settings: Settings
    ) -> tuple[Row, NeuralEditor]:
        """The row of a trained editor, and the editor."""
        retriever, fitting = self.retriever(retriever_name)
        settings = merged(self.options.settings.get("editor", {}), settings)
        editor, training = self.editor(f"{system} {setting}", retriever, settings)
        config = editor_config(
            len(self.cards.train), replace(self.options, settings={"editor": settings})
        )
        row = replace(
            self.row(system, setting, retriever, editor),
            train_seconds=round(fitting + training, 1),
            parameters=sum(each.numel() for each in editor.network.parameters()),
            config={
                "retriever": retriever_name,
                **values_of(config),
                "numbering": values_of(editor.numbering.config),
            },
        )
        return row, editor


def _file(name: str) -> str:
    return "".join(each if each.isalnum() else "-" for each in name)


def retriever_rows(bench: Bench) -> Iterator[Row]:
    """Every retriever, its first prototype's output as the answer."""
    for name in ALONE:
        retriever, seconds = bench.retriever(name)
        row = bench.row(name, SETTING, retriever, VerbatimEditor())
        yield replace(row, train_seconds=round(seconds, 1))


def system_rows(bench: Bench) -> Iterator[Row]:
    """Retrieve+Edit and Seq2Seq, both with the default settings."""
    yield bench.edited("retrieve+edit", SETTING, DEFAULT_RETRIEVER, {})[0]
    yield bench.edited("seq2seq", SETTING, "none", {})[0]


def paper_rows(bench: Bench) -> Iterator[Row]:
    """Both with the paper's LSTMs at their published size and steps."""
    settings = values_of(paper_config())
    settings["training"] = {**settings["training"], "seed": bench.options.seed}
    yield bench.edited("retrieve+edit (paper)", SETTING, "task", settings)[0]
    yield bench.edited("seq2seq (paper)", SETTING, "none", settings)[0]


def ablation_rows(bench: Bench) -> Iterator[Row]:
    """Retrieve+Edit with one part changed at a time; with none changed it is among the systems."""
    _, editor = bench.edited("retrieve+edit", SETTING, DEFAULT_RETRIEVER, {})
    retriever = bench.retriever(DEFAULT_RETRIEVER)[0]
    for count in MIXED:
        mixed = editor.with_decoding(replace(editor.decoding, prototypes=count))
        yield bench.row("retrieve+edit", f"{SETTING}, {count} prototypes mixed", retriever, mixed)
    greedy = editor.with_decoding(replace(editor.decoding, beam_size=1))
    yield bench.row("retrieve+edit", f"{SETTING}, greedy", retriever, greedy)
    for what, settings in ABLATIONS.items():
        yield bench.edited("retrieve+edit", f"{SETTING}, {what}", DEFAULT_RETRIEVER, settings)[0]
    for name in OTHER_RETRIEVERS:
        yield bench.edited("retrieve+edit", f"{SETTING}, {name} retrieval", name, {})[0]


MEASURES: Mapping[str, Sequence[Callable[[Bench], Iterator[Row]]]] = {
    "systems": (retriever_rows, system_rows),
    "paper": (paper_rows,),
    "ablations": (ablation_rows,),
}
"""What can be measured, by name."""
