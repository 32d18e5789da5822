"""Fitting the default editor: untrained in seconds, then with a network if that helps."""

from itertools import pairwise, product
from pathlib import Path

import pytest

from redraft.editing.choosing import ChoosingEditor
from redraft.model import RetrieveAndEdit
from redraft.training import fit_model
from redraft.training.fit import FitOptions
from redraft.training.fit_choosing import FOLDS, HOPELESS_QUESTIONS, Judge
from redraft.types import Example
from tests.combined import combined_model
from tests.greetings import NAMES, greeting, settings

GREETINGS = [greeting(name) for name in NAMES]
SWAPPED = [Example({"text": f"swap {a} and {b}"}, f"({b}, {a})") for a, b in pairwise(NAMES)]
EXAMPLES = [*GREETINGS, *SWAPPED]
MANY = [greeting(first + second) for first in NAMES[:15] for second in NAMES[:15]]
"""Enough to hold out a dev set that can judge a network."""


@pytest.fixture(scope="module")
def combined() -> RetrieveAndEdit:
    dev = EXAMPLES[::2]
    return combined_model(EXAMPLES, dev, FitOptions(settings(60), dev=dev), sketches=False)


def test_the_model_is_ready_before_the_network_is_trained() -> None:
    ready: list[RetrieveAndEdit] = []
    lines: list[str] = []
    options = FitOptions(settings(10), train=True, on_ready=ready.append, log=lines.append)
    model = RetrieveAndEdit.fit(MANY, options=options)
    assert len(ready) == 1
    assert isinstance(ready[0].editor, ChoosingEditor)
    assert ready[0].editor.neural is None
    assert ready[0].predict_one("greet Nobody").output == 'print("hello Nobody")'
    assert len(ready[0].retriever.examples) == len(model.retriever.examples) == len(MANY)
    judged = [line for line in lines if "neural" in line or "network" in line]
    assert judged, lines


def test_a_network_that_does_not_help_is_not_used() -> None:
    lines: list[str] = []
    options = FitOptions(settings(1), train=True, log=lines.append)
    model = RetrieveAndEdit.fit(MANY, options=options)
    assert isinstance(model.editor, ChoosingEditor)
    assert model.editor.neural is None
    assert any("the network is not used" in line for line in lines)
    untrained = RetrieveAndEdit.fit(MANY)
    inputs = ["greet Nobody", "greet Ada Nobody", "who is it?"]
    assert model.predict(inputs, 3) == untrained.predict(inputs, 3)


def test_a_network_that_cannot_be_judged_is_not_trained() -> None:
    lines: list[str] = []
    ready: list[RetrieveAndEdit] = []
    options = FitOptions(settings(1_000_000), train=True, log=lines.append, on_ready=ready.append)
    RetrieveAndEdit.fit(EXAMPLES, options=options)
    assert ready == []
    assert any("no network is trained" in line for line in lines)


def test_a_network_is_judged_by_pairs_that_the_judging_editor_has_not_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judged: list[tuple[ChoosingEditor, Judge]] = []

    def record(
        editor: ChoosingEditor, _neural: object, judge: Judge, *_: object, **__: object
    ) -> ChoosingEditor:
        judged.append((editor, judge))
        return editor

    monkeypatch.setattr(fit_model, "add_neural", record)
    RetrieveAndEdit.fit(MANY, options=FitOptions(settings(1), train=True))
    [(editor, judge)] = judged
    assert not {pair.identity for pair in judge.pairs} & {
        example.identity for example in judge.retriever.examples
    }
    assert editor.templates.count == len(MANY)
    assert judge.editor.templates.count == len(MANY) - len(judge.pairs)
    [name] = {word for word in judge.pairs[0].x["text"].casefold().split() if word != "greet"}
    with judge.forgotten_by(editor):
        assert editor.templates.table.in_inputs[name] == 0
    assert editor.templates.table.in_inputs[name] > 0
    assert judge.editor.templates.table.in_inputs[name] == 0


def test_stored_inputs_are_answered_as_stored_with_a_network_too(combined: RetrieveAndEdit) -> None:
    inputs = [example.x for example in combined.retriever.examples]
    answers = combined.predict(inputs)
    outputs = [candidates[0].output for candidates in answers]
    assert outputs == [example.y for example in combined.retriever.examples]


def test_a_model_with_a_network_answers_alike_after_loading(
    combined: RetrieveAndEdit, tmp_path: Path
) -> None:
    combined.save(tmp_path / "model")
    loaded = RetrieveAndEdit.load(tmp_path / "model")
    inputs = ["greet Nobody", "swap Ada and Nobody"]
    expected = [[c.output for c in ranked] for ranked in combined.predict(inputs, 3)]
    assert [[c.output for c in ranked] for ranked in loaded.predict(inputs, 3)] == expected


def test_questions_that_no_proposal_answers_are_soon_given_up() -> None:
    lines: list[str] = []
    words = ["".join(letters) for letters in product("abcdefgh", repeat=3)]
    examples = [
        Example({"text": f"what follows {word} in the list"}, f"f({other})")
        for word, other in zip(words, reversed(words), strict=True)
    ]
    RetrieveAndEdit.fit(examples, options=FitOptions(log=lines.append))
    [line] = [line for line in lines if "held-out pairs" in line]
    count = int(line.split("right on ")[1].split()[0])
    assert HOPELESS_QUESTIONS <= count < HOPELESS_QUESTIONS + len(examples) / FOLDS
