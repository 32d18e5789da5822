"""Padding of token ids."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from redraft.text.batch import Sequences

rows_of_tokens = st.lists(
    st.lists(st.integers(1, 99), min_size=1, max_size=8), min_size=1, max_size=6
)


@given(rows_of_tokens)
def test_a_padded_row_is_the_row_and_then_zeros(rows: list[list[int]]) -> None:
    sequences = Sequences.pad(rows)
    width = max(map(len, rows))
    assert sequences.ids.tolist() == [row + [0] * (width - len(row)) for row in rows]
    assert sequences.lengths.tolist() == [len(row) for row in rows]


@given(rows_of_tokens)
def test_the_mask_is_true_at_real_tokens(rows: list[list[int]]) -> None:
    sequences = Sequences.pad(rows)
    assert sequences.mask.dtype == torch.bool
    assert torch.equal(sequences.mask, sequences.ids != 0)
    assert sequences.ids[sequences.mask].tolist() == [token for row in rows for token in row]


def test_ids_and_lengths_move_to_a_device() -> None:
    moved = Sequences.pad([[4, 5], [6]]).to(torch.device("meta"))
    assert moved.ids.device.type == moved.lengths.device.type == "meta"
    assert moved.mask.shape == (2, 2)
