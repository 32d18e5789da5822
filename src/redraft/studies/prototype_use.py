"""What an editor makes of its prototypes, and what examples are worth that were never trained on.

The same editor is given the best prototypes there are, any, or none, in place of the nearest. An
editor of half of the pairs is given the other half to retrieve from.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from redraft.config import DEFAULT_RETRIEVER
from redraft.data.example import Example
from redraft.evaluation.editability import oracle_prototypes
from redraft.retrieval.prototype import Prototype
from redraft.studies.answers import Bench, system_rows
from redraft.studies.results import Measured

HALF = "half of the pairs"
ADDED = "half of the pairs, the others added"


def given_rows(bench: Bench) -> Iterator[Measured]:
    """Retrieve+Edit with other prototypes than the nearest."""
    setting, asked = bench.questions.setting, bench.questions.asked
    _, editor = bench.edited("retrieve+edit", setting, DEFAULT_RETRIEVER, {})
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
    """Both systems trained on every other pair; then the others are added, and nothing trained."""
    questions = bench.questions
    whole, half = questions.train, questions.train[::2]
    fewer = Bench(
        replace(questions, train=half, setting=f"{questions.setting}, {HALF}"),
        bench.options,
        bench.folder / "half",
    )
    yield from system_rows(fewer)
    _, editor = fewer.edited("retrieve+edit", fewer.questions.setting, DEFAULT_RETRIEVER, {})
    retriever = fewer.retriever(DEFAULT_RETRIEVER)[0].add(whole[1::2])
    yield fewer.measure("retrieve+edit", f"{questions.setting}, {ADDED}", retriever, editor)
