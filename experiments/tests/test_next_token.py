"""Foresight of an editor, all outputs at once, against walks of one output token by token."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from experiments.lib.next_token import NEVER, predict, rank
from redraft import Example
from redraft.editing.neural import NeuralEditor
from redraft.editing.neural_session import SUPPRESSED
from redraft.models.ngram_cache import NgramCache
from redraft.text.tokenizer import detokenize
from redraft.text.vocabulary import EOS_ID
from redraft.types import Prototype
from tests.greetings import NAMES, greeter, greeting

EXAMPLES = [
    greeting("Zorblax"),
    Example({"text": "greet Quux"}, 'hello(" Quux42")\nprint(Zorblax, Quux42)'),
    greeting(NAMES[3]),
    Example({"text": ""}, ""),
    Example({"text": "greet Ada Boole7"}, 'print("hello Boole7")\n' * 3),
]
CLOSE = 1e-4


def make_editor(*, mixed: int = 1, cached: int = 0) -> NeuralEditor:
    """The greeter's, with a cache if outputs are cached."""
    with torch.enable_grad():  # it may be trained here
        editor = greeter().editor
    assert isinstance(editor, NeuralEditor)
    editor = editor.with_decoding(
        replace(editor.decoding, prototypes=mixed, ngram_cache_neighbours=cached)
    )
    return editor.with_cache(NgramCache().requires_grad_(False)) if cached else editor


def retrieve(editor: NeuralEditor, examples: Sequence[Example]) -> list[list[Prototype]]:
    return greeter().retriever.retrieve([each.x for each in examples], editor.wants(1))


def bounds(log_probs: NDArray[np.float32], token: int) -> tuple[int, int]:
    """The lowest and the highest rank that a token may have if probabilities are a little off."""
    if np.isneginf(log_probs[token]):
        return NEVER, NEVER
    ahead = int((log_probs > log_probs[token] + CLOSE).sum())
    return ahead, int((log_probs > log_probs[token] - CLOSE).sum()) - 1


@pytest.mark.parametrize(("mixed", "cached"), [(1, 0), (3, 0), (1, 4), (2, 4)])
@torch.no_grad()
def test_ranks_are_those_of_a_walk_token_by_token(mixed: int, cached: int) -> None:
    editor = make_editor(mixed=mixed, cached=cached)
    found = retrieve(editor, EXAMPLES)
    stops = {EOS_ID, editor.encoding.vocabulary.id_of("\n")}
    foresights = predict(editor, EXAMPLES, found)
    for example, prototypes, foresight in zip(EXAMPLES, found, foresights, strict=True):
        tokens = editor.encoding.tokenize_output(example.y)
        editor_input = editor.editor_input(example.x, prototypes, tokens)
        walk, state = editor.start_decoding([editor_input])
        target = editor_input.edits[0].target
        assert [len(each) for each in (foresight.ranks, foresight.first, foresight.ends)] == [
            len(tokens) + 1
        ] * 3
        for at, token in enumerate(target[:-1]):
            expected, state = walk.step(state, torch.tensor([[token]]))
            expected[:, list(SUPPRESSED)] = -torch.inf
            log_probs = expected[0].numpy()
            low, high = bounds(log_probs, target[at + 1])
            assert low <= foresight.ranks[at] <= high
            assert foresight.first[at] == pytest.approx(log_probs.max(), abs=CLOSE)
            if bounds(log_probs, int(log_probs.argmax())) == (0, 0):  # no other is as likely
                assert foresight.ends[at] == (int(log_probs.argmax()) in stops)


@pytest.mark.parametrize(("mixed", "cached"), [(1, 0), (2, 0), (1, 4)])
def test_a_token_of_rank_k_is_the_kth_completion(mixed: int, cached: int) -> None:
    editor = make_editor(mixed=mixed, cached=cached)
    found = retrieve(editor, EXAMPLES)
    compared = 0
    foresights = predict(editor, EXAMPLES, found)
    for example, prototypes, foresight in zip(EXAMPLES, found, foresights, strict=True):
        draft = editor.start_session(example.x, prototypes)
        tokens = editor.encoding.tokenize_output(example.y)
        for at, own in enumerate(foresight.ranks.tolist()):
            if at and (tokens[at - 1] == " " or draft.words.longer(tokens[at - 1])):
                continue  # a draft takes it for less, or for the beginning of a longer word
            completions = draft.complete(detokenize(tokens[:at]), k=10_000)
            coming = next(
                (each for each in completions if each.token == "".join(tokens[at : at + 1])), None
            )
            if coming is None:
                assert own == NEVER
                continue
            log_probs = np.array([each.log_prob for each in completions], np.float32)
            low, high = bounds(log_probs, completions.index(coming))
            assert low <= own <= high
            assert foresight.first[at] == pytest.approx(completions[0].log_prob, abs=1e-3)
            compared += 1
    assert compared > 20


def test_a_token_that_cannot_come_out_ranks_never() -> None:
    surprising = [Example({"text": "greet Ada"}, "nowhere(nowhere)")]
    editor = make_editor()
    (alone,) = predict(editor, surprising, retrieve(editor, surprising))
    assert [at for at, each in enumerate(alone.ranks) if each == NEVER] == [0, 2]
    editor = make_editor(cached=3)
    (cached,) = predict(editor, surprising, retrieve(editor, surprising))
    assert [at for at, each in enumerate(cached.ranks) if each == NEVER] == [0]  # then it is known


def test_the_order_and_the_number_of_examples_change_nothing() -> None:
    editor = make_editor(cached=3)
    examples = EXAMPLES * 4  # more than are read side by side
    found = retrieve(editor, examples)
    together = predict(editor, examples, found)
    for at in (0, 7, 19):
        (alone,) = predict(editor, examples[at : at + 1], found[at : at + 1])
        np.testing.assert_allclose(alone.first, together[at].first, atol=CLOSE)
        likely = together[at].ranks < 3
        assert alone.ranks[likely].tolist() == together[at].ranks[likely].tolist()
    assert predict(editor, [], []) == []


@given(
    arrays.arrays(np.float32, (4, 9), elements=st.sampled_from([-np.inf, -2.0, -1.5, -1.0])),
    arrays.arrays(np.int64, 4, elements=st.integers(0, 8)),
)
def test_a_rank_is_a_place_in_a_stable_sort(
    log_probs: NDArray[np.float32], tokens: NDArray[np.int64]
) -> None:
    found = rank(torch.from_numpy(log_probs), torch.from_numpy(tokens)).tolist()
    for row, token, own in zip(log_probs, tokens, found, strict=True):
        order = np.argsort(-row, kind="stable").tolist()
        assert own == (NEVER if np.isneginf(row[token]) else order.index(token))
