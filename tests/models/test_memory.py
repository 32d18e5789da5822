"""Rows that share a memory: what they are laid out as, and that nothing is lost on the way."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from redraft.models.memory import Sharing

MEMORIES = 4
quick = settings(deadline=None, max_examples=25)

owners_of_rows = st.lists(st.integers(0, MEMORIES - 1), min_size=1, max_size=9).map(torch.tensor)
widths = st.integers(1, 3)


@quick
@given(owners_of_rows, widths)
def test_what_is_gathered_is_spread_again(owners: torch.Tensor, length: int) -> None:
    values = torch.randn(len(owners), length, 2)
    sharing = Sharing.of(owners, MEMORIES)
    assert torch.equal(sharing.spread(sharing.gather(values)), values)


@quick
@given(owners_of_rows, widths)
def test_every_row_stands_with_its_own_memory(owners: torch.Tensor, length: int) -> None:
    values = (owners + 1.0)[:, None, None].expand(-1, length, 1)
    gathered = Sharing.of(owners, MEMORIES).gather(values)[:, :, 0]
    for memory in range(MEMORIES):
        found = gathered[memory][gathered[memory] != 0]
        assert found.tolist() == [memory + 1.0] * (length * int((owners == memory).sum()))


@quick
@given(owners_of_rows, st.data())
def test_some_rows_keep_their_memories(owners: torch.Tensor, data: st.DataObject) -> None:
    rows = torch.tensor(
        data.draw(st.lists(st.integers(0, len(owners) - 1), min_size=1, max_size=9))
    )
    sharing, used = Sharing.of(owners, MEMORIES).select(rows)
    kept = torch.arange(MEMORIES) if used is None else used
    assert kept[sharing.owners].tolist() == owners[rows].tolist()
    assert sharing.memories == len(kept)
    # never more than twice what is needed
    assert len(kept) < 2 * len(set(owners[rows].tolist())) or used is not None


def test_a_row_for_each_memory_is_left_as_it_is() -> None:
    values = torch.randn(3, 2, 5)
    plain = Sharing.plain(3, values.device)
    assert plain.gather(values) is values
    assert plain.spread(values) is values
