"""Ask the same held-out questions of Redraft, of simple baselines, and of a language model.

The user's own pairs decide: the systems differ in their editor and in the examples that a language
model sees. A time limit ends the questions, not a system: all figures are of the same questions.
"""

import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from redraft.data.split import split
from redraft.editing.lm_editor import POOL, LmEditor
from redraft.errors import LmError, LmTimeoutError, PairsError
from redraft.metrics.comparison import Answered, SystemComparison, SystemResult, first_answers
from redraft.model import RetrieveAndEdit
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.training.fit import FitOptions
from redraft.types import Candidate, Example, Input, Prototype

if TYPE_CHECKING:
    from redraft.lm.client import LmClient

HELD_OUT_SHARE = 0.2
"""At most this share of the pairs is asked; the others are fitted on."""

LEAST = 10
"""Pairs that a comparison needs."""

MAX_LATE = 3
"""Late answers of a language model in a row that end a comparison."""

Answer = Callable[[Input], Sequence[Candidate]]


@dataclass(frozen=True)
class CompareOptions:
    """Options of a comparison.

    `fit` may train a network; `lm` adds the rows of a language model. No question is asked after
    `seconds`, unless they are 0. `price` is that of a million tokens.
    """

    fit: FitOptions = FitOptions()  # noqa: RUF009 (frozen)
    lm: LmEditor | None = None
    seconds: float = 0.0
    price: float | None = None
    log: Callable[[str], None] = lambda _: None
    watch: Callable[[Sequence[Example]], Iterable[Example]] = lambda examples: examples


@dataclass(frozen=True)
class System:
    """A system to ask."""

    name: str
    answer: Answer
    fit_seconds: float = 0.0
    is_trained: bool = False


def hold_out(pairs: Sequence[Example], questions: int) -> tuple[list[Example], list[Example]]:
    """Split pairs into those to fit on and at most `questions` to ask, the same every time."""
    if len(pairs) < LEAST:
        raise PairsError(f"{len(pairs)} pairs are too few to compare on; give {LEAST} or more")
    share = min(HELD_OUT_SHARE, questions / len(pairs))
    parts = split(pairs, {"train": 1 - share, "asked": share}, seed=0)
    return list(parts["train"]), list(parts["asked"])


def compare(
    train: Sequence[Example], asked: Sequence[Example], options: CompareOptions
) -> SystemComparison:
    """Fit every system on `train` and ask it `asked`, one question at a time.

    An interrupt ends the questions; the figures are of those that were asked.
    """
    systems = local_systems(train, options)
    if options.lm is not None:
        systems += lm_systems(train, options.lm)
    asking = _Asking(systems, options.lm.client if options.lm is not None else None)
    deadline = time.monotonic() + options.seconds
    done = 0
    for example in options.watch(asked):
        if options.seconds and done and time.monotonic() > deadline:
            options.log(f"time is over: the figures are of {done:,} of {len(asked):,} questions")
            break
        try:
            asking.ask(example.x)
        except LmError as error:
            if not done:
                raise
            options.log(f"the figures are of {done:,} questions: {error}")
            break
        except KeyboardInterrupt:
            if not done:
                raise
            options.log(f"stopped: the figures are of {done:,} of {len(asked):,} questions")
            break
        done += 1
    if asking.late:
        options.log(f"late answers of the language model, which count as wrong: {asking.late:,}")
    results = [
        SystemResult(
            system.name,
            asked,
            asking.answers[system.name],
            is_trained=system.is_trained,
            fit_seconds=system.fit_seconds,
            price=options.price,
        )
        for system in systems
    ]
    return SystemComparison(first_answers(results, done))


class _Asking:
    """Asks every system the same questions, and keeps its answers by its name.

    An answer that comes too late is none; after `MAX_LATE` of them in a row nothing is asked.
    """

    def __init__(self, systems: Sequence[System], client: "LmClient | None") -> None:
        self.systems, self.client = systems, client
        self.answers: dict[str, list[Answered]] = {system.name: [] for system in systems}
        self.late = self._late_in_a_row = 0

    def ask(self, x: Input) -> None:
        """Ask every system; raise an LmError if the language model does not answer any more."""
        for system in self.systems:
            before = self._spent()
            started = time.perf_counter()
            output = self._output(system, x)
            seconds = time.perf_counter() - started
            requests, tokens = (now - then for now, then in zip(self._spent(), before, strict=True))
            if requests and output is not None:
                self._late_in_a_row = 0
            self.answers[system.name].append(Answered(output, seconds, requests, tokens))

    def _output(self, system: System, x: Input) -> str | None:
        try:
            candidates = system.answer(x)
        except LmTimeoutError:
            self._late_in_a_row += 1
            if self.client is None or self._late_in_a_row == MAX_LATE:
                raise
            self.late += 1
            self.client.resume()
            return None
        return candidates[0].output if candidates else None

    def _spent(self) -> tuple[int, int]:
        return (self.client.sent, self.client.tokens) if self.client is not None else (0, 0)


def local_systems(train: Sequence[Example], options: CompareOptions) -> list[System]:
    """Fit the systems that ask no language model."""
    editors = {
        "the nearest example": "verbatim",
        "substitution": "substitution",
        "Redraft untrained": "choosing",
    }
    if options.fit.train:
        editors["Redraft trained"] = "choosing"
    systems = []
    for name, editor in editors.items():
        is_trained = name == "Redraft trained"
        fit = options.fit if is_trained else replace(options.fit, train=False, budget=0.0)
        started = time.monotonic()
        model = RetrieveAndEdit.fit(train, editor=editor, options=fit)
        systems.append(
            System(name, _predicting(model), time.monotonic() - started, is_trained=is_trained)
        )
    return systems


def lm_systems(train: Sequence[Example], lm: LmEditor) -> list[System]:
    """Return the language model alone, and with random, with BM25's and with Redraft's examples."""
    retriever = Bm25Retriever.build(train)
    alone = LmEditor(replace(lm.settings, shots=0), lm.client)
    nearest = LmEditor(lm.settings, lm.client, selection="nearest")
    cover = LmEditor(lm.settings, lm.client, selection="cover")
    # the same for all questions: the server reads them once
    drawn = random.Random(0).sample(train, min(lm.settings.shots, len(train)))
    examples = [Prototype(example, 1.0) for example in drawn]

    def retrieved(x: Input) -> Sequence[Prototype]:
        return retriever.retrieve([x], POOL, distinct=False)[0]

    name = "language model"
    return [
        System(f"{name} alone", _asking(alone, lambda _: [])),
        System(f"{name} with random examples", _asking(nearest, lambda _: examples)),
        System(f"{name} with BM25's examples", _asking(nearest, retrieved)),
        System(f"{name} with Redraft's examples", _asking(cover, retrieved)),
    ]


def _predicting(model: RetrieveAndEdit) -> Answer:
    return lambda x: model.predict([x])[0]


def _asking(editor: LmEditor, prototypes: Callable[[Input], Sequence[Prototype]]) -> Answer:
    return lambda x: editor.edit([x], [prototypes(x)])[0]
