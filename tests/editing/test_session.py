"""Completions of a prefix, by the neural editor and by alignment with prototypes."""

import math

import pytest
import torch

from redraft.editing.neural import NeuralEditor
from redraft.editing.session import align, continuation, readable_prefix
from redraft.text.tokenizer import Tokenizer
from redraft.text.vocabulary import END
from redraft.types import Completion
from tests.greetings import greeter

X = {"text": "greet Zorblax"}
WHOLE = 'print("hello Zorblax")'


@pytest.mark.parametrize("prefix", ["", "print", 'print("', 'print("hello', 'print("hello '])
def test_the_best_completion_leads_to_the_whole_output(prefix: str) -> None:
    found = greeter().start_session(X).complete(prefix, k=3)
    assert len(found) == 3
    assert prefix + found[0].text == WHOLE
    assert found[0].text.lstrip().startswith(found[0].token)
    log_probs = [completion.log_prob for completion in found]
    assert log_probs == sorted(log_probs, reverse=True)
    assert len({completion.token for completion in found}) == 3


def test_the_completion_of_the_whole_output_is_empty() -> None:
    best = greeter().start_session(X).complete(WHOLE)[0]
    assert (best.token, best.text) == ("", "")


@pytest.mark.parametrize("prefix", ["", 'print("hello', "something(else)", 'print("hello Nobody'])
def test_the_best_token_is_the_argmax_of_the_network(prefix: str) -> None:
    model = greeter()
    editor = model.editor
    assert isinstance(editor, NeuralEditor)
    encoding = editor.encoding
    (found,) = model.retriever.retrieve([X])
    typed = encoding.tokenize_output(prefix)
    prototypes = [[encoding.tokenize(found[0].example)]]
    (row,) = encoding.encode(encoding.tokenize_input(X), prototypes, typed)
    batch = editor.batch([row])
    with torch.inference_mode():  # not around the test, which may be the one to train the greeter
        state = editor.network.encode(batch, generator=None)
        states, state = editor.network.read(state, batch.target.ids[:, :-1])  # all but the end
        expected = editor.network.next_tokens(states[:, -1:], state)[0, 0]
    best = model.start_session(X, 1).complete(prefix, k=1)[0]
    (word,) = encoding.words([int(expected.argmax())], row.unknown)
    assert best.token == ("" if word == END else word)
    assert best.log_prob == pytest.approx(expected.max().item(), abs=1e-4)
    assert best.prototype == found[0]


def test_inputs_are_completed_one_by_one_in_their_order() -> None:
    model = greeter()
    first, second = model.complete(["greet Zorblax", "greet Quux"], ['print("hello', ""], k=2)
    texts = [[completion.text for completion in found] for found in (first, second)]
    alone = [
        model.start_session("greet Zorblax", 2).complete('print("hello', 2),
        model.start_session("greet Quux", 2).complete("", 2),
    ]
    assert texts == [[completion.text for completion in found] for found in alone]
    assert (texts[0][0], texts[1][0]) == (' Zorblax")', 'print("hello Quux")')


def test_a_completion_stops_at_the_end_of_the_line() -> None:
    tokens = Tokenizer().tokenize("a = 1\nb = 2")
    assert continuation("a =", readable_prefix(Tokenizer().tokenize("a =")), tokens[2:4]) == " 1\n"


@pytest.mark.parametrize(
    ("prefix", "tokens", "expected"),
    [
        ("return", ["sum", "("], " sum("),
        ("return ", ["sum", "("], "sum("),
        ("f(", ["x", ")"], "x)"),
        ("f( ", ["x", ")"], "x)"),  # a space where none belongs stays
        ("", ["x"], "x"),
        ("x", [], ""),
    ],
)
def test_the_text_continues_the_prefix(prefix: str, tokens: list[str], expected: str) -> None:
    assert continuation(prefix, readable_prefix(Tokenizer().tokenize(prefix)), tokens) == expected


@pytest.mark.parametrize(
    ("prefix", "output", "expected"),
    [
        ("a b", "a b c", 2),
        ("z b", "a b c", 2),
        ("b", "b x b y", 1),
        ("q q b", "b x b y", 3),
        ("z", "a b c", 1),
        ("z z z z", "a b", 2),
        ("", "a b", 0),
        ("a", "", 0),
    ],
)
def test_a_prefix_is_aligned_after_the_longest_match_of_its_suffix(
    prefix: str, output: str, expected: int
) -> None:
    assert align(prefix.split(), output.split()) == expected


def test_a_completion_as_json() -> None:
    row = Completion("x", "x)", math.log(0.25), None).to_json()
    assert row == {"text": "x)", "token": "x", "probability": 0.25, "prototype": None}
    assert Completion("x", "x)", -math.inf, None).to_json()["probability"] is None
