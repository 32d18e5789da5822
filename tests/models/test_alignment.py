"""Alignment: each token is told in which of x, x' and y' it stands, whatever the word is."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from redraft.data.sequences import Sequences
from redraft.models.alignment import Alignment
from redraft.models.memory import Sources

END = 3
TOKENS = st.lists(st.integers(4, 8), max_size=5)
ROWS = st.lists(st.lists(TOKENS, min_size=5, max_size=5), min_size=1, max_size=3)
"""Of each row two fields of x, two of x', and y'."""

COPYABLE = [True, True, False, False, True]


def counting() -> Alignment:
    """One whose vectors are the numbers of the ways: 1 for x, 2 for x', 4 for y'."""
    alignment = Alignment(2, COPYABLE, 1)
    alignment.vectors.weight.data = torch.arange(8.0)[:, None]
    return alignment


def joined(rows: list[list[list[int]]]) -> Sources:
    roles = [[[*tokens, END] for tokens in role] for role in zip(*rows, strict=True)]
    return Sources.join([Sequences.pad(each) for each in roles], COPYABLE)


def ways(tokens: Tensor, sources: Sources) -> list[list[float]]:
    with torch.no_grad():
        found: list[list[float]] = counting()(tokens, sources)[:, :, 0].tolist()
    return found


@given(ROWS)
def test_a_token_is_told_every_side_that_has_it(rows: list[list[list[int]]]) -> None:
    tokens = torch.tensor([[0, 2, END, *range(4, 10)]]).expand(len(rows), -1)
    sources = joined(rows)
    expected = [
        [0.0, 0.0, 0.0]  # padding, the start and the end stand nowhere
        + [
            float((token in x + more) + 2 * (token in x_ + more_) + 4 * (token in y_))
            for token in range(4, 10)
        ]
        for x, more, x_, more_, y_ in rows
    ]
    assert ways(tokens, sources) == expected
    assert ways(tokens, sources.packed(2)) == expected


def test_a_word_to_replace_and_what_replaces_it_are_known_apart() -> None:
    """x: hit Ann; x': hit Bob; y': hit(Bob)."""
    hit, ann, bob, other = 4, 5, 6, 7
    sources = joined([[[hit, ann], [], [hit, bob], [], [hit, bob, other]]])
    assert ways(torch.tensor([[hit, ann, bob, other]]), sources) == [[7, 1, 6, 4]]


@pytest.mark.parametrize("copyable", [[True, True], [True, True, True]])
def test_x_alone_and_prototypes_whose_inputs_are_not_read_have_their_sides(
    copyable: list[bool],
) -> None:
    alignment = Alignment(2, copyable, 4)
    assert alignment.sides.tolist() == [0, 0, 2][: len(copyable)]


def test_only_the_vectors_are_learned_and_saved() -> None:
    assert list(counting().state_dict()) == ["vectors.weight"]
    sources = joined([[[4], [], [4], [], [5]]])
    alignment = Alignment(2, COPYABLE, 3)
    alignment(torch.tensor([[4, 4, 5]]), sources).sum().backward()
    gradient = alignment.vectors.weight.grad
    assert gradient is not None
    assert gradient[:, 0].tolist() == [0, 0, 0, 2, 1, 0, 0, 0]
