"""Test-time training: a copy of the network learns the neighbours, the editor stays as it was."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from redraft import Example, RetrieveAndEdit
from redraft.editing.decoding import DecodingConfig
from redraft.editing.neural import NeuralEditor
from redraft.editing.neural_session import Words
from redraft.editing.test_time_training import NEIGHBOURS, adapt, edit_examples
from redraft.errors import ConfigError
from redraft.models.ngram_cache import NgramCache
from redraft.retrieval.bow import BowRetriever
from redraft.text.vocabulary import BOS_ID, EOS_ID
from redraft.types import Prototype
from tests.greetings import NAMES, greeter, greeting

X = {"text": "greet Zorblax"}
NEAR = [Prototype(greeting(name), 0.1 * i) for i, name in enumerate(NAMES[:3])]
ODD = Prototype(Example(X, 'print("hello Wonderful")'), 0.4)  # a word that nothing else has


def trained_for(steps: int) -> NeuralEditor:
    editor = greeter().editor
    assert isinstance(editor, NeuralEditor)
    return editor.with_decoding(replace(editor.decoding, ttt_steps=steps))


def test_neighbours_are_likelier_after_training_and_the_editor_is_unchanged() -> None:
    editor = trained_for(0)
    weights = {name: each.clone() for name, each in editor.network.state_dict().items()}
    learning = [each.requires_grad for each in editor.network.parameters()]
    found, odd = [*NEAR, ODD], replace(ODD.example, x={"text": "greet Zorblax again"})
    log_probs = []
    for steps in (0, 2, 8):
        asked = trained_for(steps)
        output = asked.encoding.tokenize_output(odd.y)
        editor_input = asked.editor_input(odd.x, found, output, neighbours=found)
        network = adapt(asked, editor_input.edits[0].neighbours).network
        with torch.inference_mode():
            log_probs.append(float(network.log_likelihoods(asked.batch(editor_input.edits)).sum()))
    assert log_probs[0] < log_probs[1] < log_probs[2]
    before = editor.edit([X], [found], k=2)
    for generator in (None, np.random.default_rng(0)):
        assert trained_for(2).edit([X], [found], k=2, generator=generator) != before
    assert editor.edit([X], [found], k=2) == before
    for name, each in editor.network.state_dict().items():
        assert torch.equal(each, weights[name])
    assert [each.requires_grad for each in editor.network.parameters()] == learning


def test_every_input_is_answered_by_a_network_trained_for_it_alone() -> None:
    editor = trained_for(2)
    inputs, found = [X, {"text": "greet Ada"}, X], [[*NEAR, ODD], NEAR[:1], []]
    for at, ranked in enumerate(editor.edit(inputs, found, k=2)):
        (alone,) = editor.edit(inputs[at : at + 1], found[at : at + 1], k=2)
        assert [each.output for each in ranked] == [each.output for each in alone]
        assert [each.prototype for each in ranked] == [each.prototype for each in alone]
        expected = pytest.approx([each.log_prob for each in alone], abs=1e-4)
        assert [each.log_prob for each in ranked] == expected


def test_answers_in_several_threads_do_not_disturb_each_other() -> None:
    editor = trained_for(2)
    found = [[*NEAR, ODD], [ODD, *NEAR], NEAR]
    alone = [editor.edit([X], [each]) for each in found]
    with ThreadPoolExecutor(3) as threads:
        together = list(threads.map(lambda each: editor.edit([X], [each]), 3 * found))
    assert together == 3 * alone


def test_without_neighbours_or_steps_the_editor_is_the_same_object() -> None:
    editor = trained_for(3)
    assert adapt(editor, []) is editor
    editor_input = editor.editor_input(X, NEAR, neighbours=NEAR)
    idle = trained_for(0)
    assert adapt(idle, editor_input.edits[0].neighbours) is idle


def test_neighbours_are_retrieved_and_encoded_only_for_test_time_training() -> None:
    assert (trained_for(0).wants(1), trained_for(1).wants(1)) == (1, NEIGHBOURS)
    cached = trained_for(1).with_cache(NgramCache())
    assert (
        cached.with_decoding(replace(cached.decoding, ngram_cache_neighbours=100)).wants(1) == 100
    )
    assert trained_for(1).editor_input(X, NEAR).edits[0].neighbours == []
    found = [*NEAR, ODD]
    completed = trained_for(4).start_session(X, found).complete('print("', k=50)
    assert completed == trained_for(0).start_session(X, found).complete('print("', k=50)


def test_a_neighbour_is_trained_on_with_the_nearest_of_the_others_as_its_prototype() -> None:
    assert edit_examples([*NEAR, ODD], 2) == [
        [NEAR[0], NEAR[1], NEAR[2]],
        [NEAR[1], NEAR[0], NEAR[2]],
        [NEAR[2], NEAR[0], NEAR[1]],
        [ODD, NEAR[0], NEAR[1]],
    ]
    assert edit_examples(NEAR[:1], 1) == [NEAR[:1]]
    assert edit_examples([], 1) == []
    editor = trained_for(1)
    editor_input = editor.editor_input(X, NEAR, neighbours=NEAR)
    words, tokenize = Words(editor.encoding, editor_input.oovs), editor.encoding.tokenize_output
    others = [NEAR[1], NEAR[0], NEAR[0]]
    for edit, own, other in zip(editor_input.edits[0].neighbours, NEAR, others, strict=True):
        assert words.tokens(edit.target[1:-1]) == tokenize(own.example.y)
        assert (edit.target[0], edit.target[-1]) == (BOS_ID, EOS_ID)
        assert words.tokens(edit.sources[1][:-1]) == tokenize(other.example.y)


def test_a_saved_editor_keeps_its_steps(tmp_path: Path) -> None:
    retriever = BowRetriever.build([greeting(name) for name in NAMES[:9]])
    model = RetrieveAndEdit(retriever, trained_for(2))
    model.save(tmp_path / "model")
    loaded = RetrieveAndEdit.load(tmp_path / "model")
    assert loaded.predict([X], k=3) == model.predict([X], k=3)
    assert loaded.predict([X]) != RetrieveAndEdit(retriever, trained_for(0)).predict([X])


def test_a_negative_number_of_steps_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"ttt_steps is -1; expected a whole number from 0"):
        DecodingConfig(ttt_steps=-1)
