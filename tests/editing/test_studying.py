"""The nearest examples studied before an answer, and forgotten after it."""

from dataclasses import replace

import pytest
import torch

from redraft.editing.neural_editor import NeuralEditor
from redraft.editing.studying import studied
from tests.editing.test_remembered_examples import (
    NEAR,
    ODD,
    X,
    assert_alike,
    plain,
    remembering,
    several,
)


def studying(editor: NeuralEditor, steps: int) -> NeuralEditor:
    return editor.with_decoding(replace(editor.decoding, studied=steps))


@pytest.mark.parametrize("members", [1, 2])
def test_what_is_studied_before_an_answer_is_likelier_and_forgotten_after_it(members: int) -> None:
    editor = remembering(remembered=4, editor=plain() if members == 1 else several())
    weights = {name: each.clone() for name, each in editor.network.state_dict().items()}
    learning = [each.requires_grad for each in editor.network.parameters()]
    found, odd = [[*NEAR, ODD]], replace(ODD.example, x={"text": "greet Zorblax again"})
    chances = []
    for steps in (0, 2, 8):
        asked = studying(editor, steps)
        question = asked.question(odd.x, found[0], asked.numbering.tokenize_output(odd.y))
        with studied(asked, question.edits[0].remembered), torch.inference_mode():
            chances.append(float(asked.network.log_likelihoods(asked.batch(question.edits)).sum()))
    assert chances == sorted(chances)
    assert chances[0] < chances[1]
    before = editor.edit([X], found, k=2)
    assert studying(editor, 2).edit([X], found, k=2) != before
    assert editor.edit([X], found, k=2) == before
    for name, each in editor.network.state_dict().items():
        assert torch.equal(each, weights[name])
    assert [each.requires_grad for each in editor.network.parameters()] == learning


def test_every_question_is_answered_by_what_is_studied_for_it_alone() -> None:
    editor = studying(remembering(remembered=4), 2)
    inputs, found = [X, {"text": "greet Ada"}, X], [[*NEAR, ODD], NEAR[:1], []]
    for at, ranked in enumerate(editor.edit(inputs, found, k=2)):
        assert_alike(ranked, editor.edit(inputs[at : at + 1], found[at : at + 1], k=2)[0])


def test_an_error_while_answering_forgets_what_was_studied() -> None:
    editor = studying(remembering(remembered=4), 3)
    weights = [each.clone() for each in editor.network.parameters()]
    examples = editor.question(X, [*NEAR, ODD]).edits[0].remembered

    def fail() -> None:
        with studied(editor, examples):
            assert not all(map(torch.equal, weights, editor.network.parameters()))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert all(map(torch.equal, weights, editor.network.parameters()))
