"""The nearest examples studied before an answer, and forgotten after it."""

from concurrent.futures import ThreadPoolExecutor
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
        network = studied(asked, question.edits[0].remembered).network
        with torch.inference_mode():
            chances.append(float(network.log_likelihoods(asked.batch(question.edits)).sum()))
    assert chances[0] < chances[1] < chances[2]
    before = editor.edit([X], found, k=2)
    for generator in (None, torch.Generator().manual_seed(0)):
        assert studying(editor, 2).edit([X], found, k=2, generator=generator) != before
    assert editor.edit([X], found, k=2) == before
    for name, each in editor.network.state_dict().items():
        assert torch.equal(each, weights[name])
    assert [each.requires_grad for each in editor.network.parameters()] == learning


def test_every_question_is_answered_by_what_is_studied_for_it_alone() -> None:
    editor = studying(remembering(remembered=4), 2)
    inputs, found = [X, {"text": "greet Ada"}, X], [[*NEAR, ODD], NEAR[:1], []]
    for at, ranked in enumerate(editor.edit(inputs, found, k=2)):
        assert_alike(ranked, editor.edit(inputs[at : at + 1], found[at : at + 1], k=2)[0])


def test_answers_that_are_studied_for_at_once_do_not_disturb_each_other() -> None:
    editor = studying(remembering(remembered=4), 2)
    found = [[*NEAR, ODD], [ODD, *NEAR], NEAR]
    alone = [editor.edit([X], [each]) for each in found]
    with ThreadPoolExecutor(3) as threads:
        together = list(threads.map(lambda each: editor.edit([X], [each]), 3 * found))
    assert together == 3 * alone


def test_an_editor_that_has_nothing_to_study_is_the_same_one() -> None:
    editor = studying(remembering(remembered=4), 3)
    assert studied(editor, []) is editor
    question = editor.question(X, [*NEAR, ODD])
    assert studied(studying(editor, 0), question.edits[0].remembered).network is editor.network
