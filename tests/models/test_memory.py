"""Rows that share a memory: fold and expand."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from redraft.models.memory import BeamIndex

MEMORIES = 4
quick = settings(deadline=None, max_examples=25)

owners_of_rows = st.lists(st.integers(0, MEMORIES - 1), min_size=1, max_size=9).map(torch.tensor)
widths = st.integers(1, 3)


@quick
@given(owners_of_rows, widths)
def test_expand_undoes_fold(owners: torch.Tensor, length: int) -> None:
    values = torch.randn(len(owners), length, 2)
    beam_index = BeamIndex.from_owners(owners, MEMORIES)
    assert torch.equal(beam_index.expand(beam_index.fold(values)), values)


@quick
@given(owners_of_rows, widths)
def test_every_row_is_folded_into_its_memory(owners: torch.Tensor, length: int) -> None:
    values = (owners + 1.0)[:, None, None].expand(-1, length, 1)
    gathered = BeamIndex.from_owners(owners, MEMORIES).fold(values)[:, :, 0]
    for memory in range(MEMORIES):
        found = gathered[memory][gathered[memory] != 0]
        assert found.tolist() == [memory + 1.0] * (length * int((owners == memory).sum()))


@quick
@given(owners_of_rows, st.data())
def test_reordered_rows_keep_their_memories(owners: torch.Tensor, data: st.DataObject) -> None:
    rows = torch.tensor(
        data.draw(st.lists(st.integers(0, len(owners) - 1), min_size=1, max_size=9))
    )
    beam_index, used = BeamIndex.from_owners(owners, MEMORIES).reorder(rows)
    kept = torch.arange(MEMORIES) if used is None else used
    assert kept[beam_index.owners].tolist() == owners[rows].tolist()
    assert beam_index.memories == len(kept)
    # never more than twice what is needed
    assert len(kept) < 2 * len(set(owners[rows].tolist())) or used is not None


def test_one_row_per_memory_is_left_unchanged() -> None:
    values = torch.randn(3, 2, 5)
    plain = BeamIndex.one_row_each(3, values.device)
    assert plain.fold(values) is values
    assert plain.expand(values) is values
