"""What an editor makes of its prototypes, and what examples are worth that were never trained on.

The same editor is given the best prototypes there are, any, or none, in place of the nearest. An
editor of half of the pairs is given the other half to retrieve from. Seq2Seq, which reads no
prototype, can remember those pairs as well.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from redraft.config import DEFAULT_RETRIEVER
from redraft.data.example import Example
from redraft.evaluation.editability import oracle_prototypes
from redraft.retrieval.prototype import Prototype
from redraft.studies.answers import SYSTEMS, Bench, system_rows
from redraft.studies.results import Measured

HALF = "half of the pairs"
ADDED = "half of the pairs, the others added"
STUDIED = 4
"""Steps of training on the nearest pairs before each answer."""


def given_rows(bench: Bench) -> Iterator[Measured]:
    """Retrieve+Edit with other prototypes than the nearest."""
    setting, asked = bench.questions.setting, bench.questions.asked
    editor = bench.trained("retrieve+edit", setting, DEFAULT_RETRIEVER)
    train = bench.questions.train
    best = [[each] if each else [] for each in oracle_prototypes(train, asked)]
    given: dict[str, list[list[Prototype]]] = {
        "the best prototype": best,
        "any prototype": _any(train, len(asked), seed=bench.options.seed),
        "no prototype": [[] for _ in asked],
    }
    for what, found in given.items():
        yield bench.given("retrieve+edit", f"{setting}, {what}", editor, found)


def _any(examples: Sequence[Example], count: int, *, seed: int) -> list[list[Prototype]]:
    chance = random.Random(seed)
    return [[Prototype(chance.choice(examples), 1.0)] for _ in range(count)]


def adding_rows(bench: Bench) -> Iterator[Measured]:
    """Both systems trained on every other pair; then the others are added, and also studied."""
    questions = bench.questions
    whole, half = questions.train, questions.train[::2]
    fewer = Bench(
        replace(questions, train=half, setting=f"{questions.setting}, {HALF}"),
        bench.options,
        bench.folder / "half",
    )
    yield from system_rows(fewer)
    added = fewer.retriever(DEFAULT_RETRIEVER).add(whole[1::2])
    for system, retriever in SYSTEMS.items():
        editor = fewer.trained(system, fewer.questions.setting, retriever)
        studying = editor.with_decoding(replace(editor.decoding, studied=STUDIED))
        setting = f"{questions.setting}, {ADDED}"
        yield fewer.measure(system, setting, added, editor)
        yield fewer.measure(system, f"{setting} and studied", added, studying)
