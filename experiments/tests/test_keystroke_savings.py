"""Keys saved: by properties, against drafts whose every choice is foretold, and a trained one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from experiments.autocomplete.keystroke_savings import (
    FirstChoices,
    Typing,
    keys_saved_metrics,
    replay,
)
from redraft.editing.beam_search import SearchConfig, beam_search
from redraft.editing.neural import NeuralEditor
from redraft.editing.neural_session import LEAST_LIKELY, LONGEST_LINE, NeuralSession
from redraft.editing.session import CompletionSession, continuation, readable_prefix
from redraft.text.tokenizer import Tokenizer, spell
from redraft.text.vocabulary import END as END_TOKEN
from redraft.text.vocabulary import PAD, START, UNKNOWN
from redraft.types import Completion
from tests.baskets import NOUNS, basket_model

Rows = list[tuple[int, ...]]
LINES = st.lists(
    st.lists(st.sampled_from(["x", "return", " =", " value", "(", ".", "", " "]), max_size=30),
    min_size=1,
    max_size=5,
)


def choices(hits: Sequence[bool], *, probs: Sequence[float] | float = 1.0) -> FirstChoices:
    """Choices with these hits and probabilities."""
    log_probs = np.log(np.broadcast_to(np.asarray(probs, np.float64), len(hits)))
    return FirstChoices(np.array(hits, np.bool_), log_probs)


def spelled(lines: Sequence[Sequence[str]]) -> list[str]:
    """The texts of some lines, each but the first indented."""
    texts = [*lines[0]]
    for line in lines[1:]:
        texts += ["\n", "    ", *line]
    return texts


def test_a_right_line_is_one_key_and_indentation_none() -> None:
    texts = ["if", " x", ":", "\n", "    ", "return", " x"]
    assert replay(texts, choices([True] * 8)) == Typing(14, 3, 6, 5)


def test_a_miss_within_a_suggestion_makes_it_wrong() -> None:
    hits = [True, True, False, True, True]
    assert replay(["self", ".", "wanted", "()"], choices(hits)) == Typing(13, 4 + 1 + 6 + 1, 4, 1)


def test_a_suggestion_ends_before_the_token_that_makes_it_unlikely() -> None:
    texts = ["self", ".", "wanted", ".", "other"]
    # 0.8 · 0.8 is likely enough, 0.8 · 0.8 · 0.8 is not; the first token's chance is no matter
    probs = [0.01, 0.8, 0.8, 0.8, 0.8, 1]
    hits = [True, True, True, False, True, True]
    assert replay(texts, choices(hits, probs=probs)) == Typing(17, 1 + 1 + 1, 5, 4)


def test_a_wrong_end_of_the_line_leaves_a_right_beginning() -> None:
    known = choices([True, True, False, True])
    told = replace(known, ends=np.array([False, False, True, True]))
    assert replay(["return", " x", "+y"], known).keys == 6 + 2 + 2
    assert replay(["return", " x", "+y"], told).keys == 1 + 2


def test_a_suggestion_of_a_character_is_typed() -> None:
    assert replay(["x", "\n", "y"], choices([True] * 4)) == Typing(3, 3, 3, 0)


def test_a_suggestion_is_no_longer_than_the_longest_line() -> None:
    count = 2 * LONGEST_LINE
    assert replay(["ab"] * count, choices([True] * (count + 1))).keys == 2
    assert replay(["ab"] * (count + 1), choices([True] * (count + 2))).keys == 3


def test_one_hit_more_can_cost_keys() -> None:
    """The early suggestion is right but short, and none that begins where it ends is right."""
    texts = ["a", "b", "longword", "another", "other"]
    probs = [1, 0.7, 0.8, 0.8, 0.8, 1]
    rest = [True, True, True, False, True]
    assert replay(texts, choices([False, *rest], probs=probs)).keys == 1 + 1 + 5
    assert replay(texts, choices([True, *rest], probs=probs)).keys == 1 + 8 + 7 + 5


def test_lengths_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="2 tokens need 3 choices"):
        replay(["a", "b"], choices([True, True]))


def test_metrics_are_per_cent_of_each_function() -> None:
    found = keys_saved_metrics([Typing(20, 5, 8, 6), Typing(0, 0, 0, 0)])
    assert found == {"keys_saved": [75, 0], "tokens_saved": [75, 0]}


@given(LINES, st.data())
def test_keys_never_exceed_characters(lines: list[list[str]], data: st.DataObject) -> None:
    texts = spelled(lines)
    size = len(texts) + 1
    hits = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    probs = data.draw(st.lists(st.floats(0.1, 1), min_size=size, max_size=size))
    found = replay(texts, choices(hits, probs=probs))
    assert 0 <= found.keys <= found.characters
    assert 0 <= found.accepted <= found.tokens
    assert (found.accepted > 0) == (found.keys < found.characters)


@given(LINES)
def test_without_hits_nothing_is_saved(lines: list[list[str]]) -> None:
    texts = spelled(lines)
    found = replay(texts, choices([False] * (len(texts) + 1)))
    assert found.keys == found.characters
    assert found.accepted == 0


@given(st.lists(st.lists(st.sampled_from(["x", "return", " =", "("]), max_size=20), min_size=1))
def test_a_sure_and_right_system_takes_a_key_a_line(lines: list[list[str]]) -> None:
    texts = spelled(lines)
    found = replay(texts, choices([True] * (len(texts) + 1)))
    assert found.keys == len(lines) - 1 + sum(map(bool, lines))


# against drafts: what is typed is a text, and what is shown is what they say to it


def type_with(draft: CompletionSession, tokens: Sequence[str]) -> Typing:
    """Type a body in an editor that indents, and ask the draft after each token."""
    texts = spell(tokens)
    body = "".join(texts)
    begins = np.cumsum([0, *map(len, texts)]).tolist()
    cursor = keys = accepted = 0
    while cursor < len(body):
        rest = body[cursor:]
        if cursor == 0 or body[cursor - 1] == "\n":
            rest = rest.lstrip(" ")
            cursor = len(body) - len(rest)
        shown = draft.complete(body[:cursor], 1)[0].text.rstrip("\n")
        if len(shown) > 1 and shown.strip() and rest.startswith(shown):
            following = cursor + len(shown)
            accepted += len({each for each in begins if cursor <= each < following})
            keys += 1
        else:
            following = min((each for each in begins if each > cursor), default=cursor)
            keys += following - cursor
        cursor = following
    unindented = "\n".join(line.lstrip(" ") for line in body.split("\n"))
    count = sum(map(bool, spell(Tokenizer().tokenize(unindented))))
    return Typing(len(unindented), keys, count, accepted)


PARTS = ("alpha", "beta", "x", " ", "=", "(", ".", ",", "\n", "\n    ", " = ")
WRONG, END, SIZE = "wrong", 0, 12
CHANCES = (0.25, 0.35, 0.5, 0.7, 0.9, 0.999)


@dataclass(frozen=True)
class Fate:
    """A walk that is told its first choice after each true prefix; astray, it stays wrong."""

    truth: tuple[int, ...]
    firsts: tuple[int, ...]
    probs: tuple[float, ...]
    wrong: int
    size: int

    def step(self, state: Rows, tokens: Tensor) -> tuple[Tensor, Rows]:
        """What was told."""
        read = [(*row, *new) for row, new in zip(state, tokens.tolist(), strict=True)]
        return torch.stack([self.after(row) for row in read]), read

    def reorder(self, state: Rows, rows: Tensor) -> Rows:
        """The state of some rows."""
        return [state[row] for row in rows.tolist()]

    def after(self, read: tuple[int, ...]) -> Tensor:
        """Log-probabilities of what follows."""
        first, chance = self.wrong, 0.9
        if self.truth[: len(read)] == read:
            first, chance = self.firsts[len(read)], self.probs[len(read)]
        rest = torch.full((self.size,), (1 - chance) / (self.size - 1))
        return rest.index_fill(0, torch.tensor([first]), chance).log()


class FatedDraft(CompletionSession):
    """The search of `NeuralSession` along a fate."""

    def __init__(self, fate: Fate, numbers: dict[str, int]) -> None:
        self.fate, self.numbers = fate, numbers

    def complete(self, prefix: str, k: int = 5) -> list[Completion]:  # noqa: ARG002
        """The first choice and what is likely to follow."""
        typed = readable_prefix(Tokenizer().tokenize(prefix))
        read = tuple(self.numbers[token] for token in typed)
        first = int(self.fate.after(read).argmax())
        line, stops = [first], [END, self.numbers["\n"]]
        if first not in stops:
            search = SearchConfig(1, LONGEST_LINE, min_log_prob=LEAST_LIKELY)
            given_first = torch.tensor([first])
            ((best,),) = beam_search(self.fate, [read], search, bos=given_first, eos_ids=stops)
            line += best.tokens if best.log_prob >= LEAST_LIKELY else best.tokens[:-1]
        tokens = list(self.numbers)
        words = [tokens[number] for number in line if number != END]
        return [Completion("", continuation(prefix, typed, words), 0.0, None)]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=60), st.data())
def test_keys_are_those_of_a_draft_with_the_same_choices(
    parts: list[str], data: st.DataObject
) -> None:
    tokens = Tokenizer().tokenize("".join(parts))
    numbers = {token: at for at, token in enumerate(dict.fromkeys(["", "\n", WRONG, *tokens]))}
    truth = [*(numbers[token] for token in tokens), END]
    wrong = [numbers[WRONG], numbers["\n"], END]
    firsts = [data.draw(st.sampled_from([each] * 5 + wrong)) for each in truth]
    probs = [data.draw(st.sampled_from(CHANCES)) for _ in truth]
    size = max(SIZE, len(numbers))
    fate = Fate(tuple(truth), tuple(firsts), tuple(probs), numbers[WRONG], size)
    told = FirstChoices(
        np.array(firsts) == np.array(truth),
        np.log(np.array(probs, np.float32)),
        ends=np.isin(firsts, wrong[1:]),
    )
    assert replay(spell(tokens), told) == type_with(FatedDraft(fate, numbers), tokens)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("baskets")


@pytest.mark.parametrize("noun", ["zucchini", *NOUNS[:3]])
def test_keys_are_those_of_a_trained_draft(folder: Path, noun: str) -> None:
    """Methods that the model saw, one that it did not, and one that goes another way."""
    model = basket_model(folder)
    editor = model.editor
    assert isinstance(editor, NeuralEditor)
    x = {"docstring": f"Add the {noun}.", "name": f"add_{noun}", "arguments": f"self, {noun}"}
    draft = editor.start_session(x, model.retriever.retrieve([x])[0])
    for body in (
        f"if {noun} in self.all:\n    return None\nreturn self.put({noun})",
        f"if self.all:\n    {noun}.put(self)\n\nif not {noun}:\n    return self.all\nreturn None",
    ):
        tokens = editor.encoding.tokenize_output(body)
        assert replay(spell(tokens), first_choices(draft, tokens)) == type_with(draft, tokens)


@torch.inference_mode()
def first_choices(draft: NeuralSession, tokens: Sequence[str]) -> FirstChoices:
    """The choices of a draft of one prototype, all read at once."""
    number = draft.words.id_of
    truth = torch.tensor([[number(token) for token in (START, *tokens, END_TOKEN)]])
    network, start = draft.next_tokens.network, draft._nothing.network
    log_probs = network.next_tokens(*network.read(start, truth[:, :-1]))[0]
    log_probs[:, [number(token) for token in (PAD, UNKNOWN, START)]] = -math.inf
    best = log_probs.max(1)
    ends = torch.isin(best.indices, torch.tensor([number("\n"), number(END_TOKEN)]))
    return FirstChoices((best.indices == truth[0, 1:]).numpy(), best.values.numpy(), ends.numpy())
