"""Copy mechanisms against linear scores and a pointer in NumPy."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from redraft.models.batch import Sequences
from redraft.models.copying import NEVER, NoCopying, PointerCopying, PositionalCopying
from redraft.models.memory import Memory, Sources

WIDTH, MEMORY = 8, 12
END = 3
COPYABLE = [True, False, True]

rows = st.tuples(*[st.lists(st.integers(4, 9), max_size=5).map(lambda row: [*row, END])] * 3)
batches = st.lists(rows, min_size=1, max_size=4)
Row = tuple[list[int], list[int], list[int]]
EXAMPLE: list[Row] = [
    ([4, 5, 4, END], [6, END], [7, 5, 8, END]),
    ([6, END], [4, 5, END], [9, 9, END]),
]


def join(batch: list[Row]) -> Sources:
    return Sources.join([Sequences.pad(column) for column in zip(*batch, strict=True)], COPYABLE)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def memory(sources: Sources) -> Memory:
    batch, places = sources.ids.shape
    return Memory(sources, noise(batch, places, MEMORY, seed=1), noise(batch, MEMORY, seed=2))


def positional(*limits: int) -> PositionalCopying:
    torch.manual_seed(0)
    return PositionalCopying(limits, WIDTH).requires_grad_(False)


def pointer(slots: int, known: int) -> PointerCopying:
    torch.manual_seed(0)
    return PointerCopying(slots, WIDTH, MEMORY, vocab_size=known).requires_grad_(False)


def test_eos_padding_and_read_only_sources_cannot_be_copied() -> None:
    t, f = True, False
    assert join(EXAMPLE).copyable.tolist() == [
        [*(t, t, t, f), *(f, f, f), *(t, t, t, f)],
        [*(t, f, f, f), *(f, f, f), *(t, t, f, f)],
    ]


def test_every_position_of_a_source_has_its_own_copy_token_up_to_the_limit() -> None:
    prepared = positional(2, 0, 3).prepare(memory(join(EXAMPLE)))
    assert prepared.tolist() == [
        [*(1, 2, 0, 0), *(0, 0, 0), *(3, 4, 5, 0)],
        [*(1, 0, 0, 0), *(0, 0, 0), *(3, 4, 0, 0)],
    ]


def test_a_token_has_the_slot_of_its_first_position() -> None:
    copying, sources = positional(3, 0, 3), join(EXAMPLE)
    ids = torch.tensor([[4, 5, 6, 7, 8, 9, END, 0]] * 2)
    assert copying.slots_of(ids, sources).tolist() == [
        [1, 2, 0, 4, 6, 0, 0, 0],  # 6 stands only where nothing is copied from
        [0, 0, 1, 0, 0, 4, 0, 0],
    ]


def test_a_position_past_the_limit_gives_no_slot() -> None:
    copying, sources = positional(1, 0, 1), join(EXAMPLE)
    assert copying.slots == 2
    assert copying.slots_of(torch.tensor([[4, 5, 7, 8], [6, 9, 4, 5]]), sources).tolist() == [
        [1, 0, 2, 0],
        [1, 2, 0, 0],
    ]


@settings(deadline=None, max_examples=40)
@given(batches, st.tuples(*[st.integers(1, 4)] * 3))
def test_slots_match_a_search_from_the_left(batch: list[Row], limits: tuple[int, int, int]) -> None:
    sources = join(batch)
    found = positional(*limits).slots_of(sources.ids, sources)
    for row, sequences in enumerate(batch):
        first: dict[int, int] = {}
        start = 1
        for sequence, limit, allowed in zip(sequences, limits, COPYABLE, strict=True):
            for place, token in enumerate(sequence[:-1][:limit]):
                if allowed:
                    first.setdefault(token, start + place)
            start += limit
        expected = [first.get(token, 0) for token in sources.ids[row].tolist()]
        assert found[row].tolist() == expected


def test_the_score_of_a_position_is_the_linear_score_of_its_copy_token() -> None:
    copying, sources = positional(2, 0, 3), join(EXAMPLE)
    prepared, states = copying.prepare(memory(sources)), noise(2, 5, WIDTH, seed=3)
    scores = copying(states, prepared)
    assert scores.shape == (2, 5, sources.ids.shape[1])
    weight, bias = copying.score.weight, copying.score.bias
    for row, numbers in enumerate(prepared.tolist()):
        for place, number in enumerate(numbers):
            found = scores[row, :, place]
            if number == 0:
                assert (found == NEVER).all()
            else:
                expected = states[row] @ weight[number - 1] + bias[number - 1]
                torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)


def test_the_token_at_a_position_does_not_change_its_score() -> None:
    copying, states = positional(3, 3, 3), noise(1, 2, WIDTH)
    scores = [
        copying(states, copying.prepare(memory(join([row]))))
        for row in (([4, 5, END], [6, END], [7, END]), ([8, 9, END], [9, END], [4, END]))
    ]
    assert torch.equal(*scores)


@settings(deadline=None, max_examples=40)
@given(batches, st.integers(0, 2**31))
def test_a_pointers_scores_are_scaled_products_of_queries_and_keys(
    batch: list[Row], seed: int
) -> None:
    copying, held = pointer(4, known=8), memory(join(batch))
    states = noise(len(batch), 3, WIDTH, seed=seed)
    found = copying(states, copying.prepare(held)).numpy()
    query, bias, key = (
        each.numpy() for each in (copying.query.weight, copying.query.bias, copying.key.weight)
    )
    queries = np.einsum("ij,btj->bti", query, states.numpy()) + bias
    keys = np.einsum("ij,bsj->bsi", key, held.states.numpy())
    expected = np.einsum("bti,bsi->bts", queries, keys) / np.sqrt(WIDTH)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_with_a_pointer_only_oovs_have_slots_modulo_their_number() -> None:
    copying, sources = pointer(3, known=6), join(EXAMPLE)
    ids = torch.tensor([[0, 1, 5, 6, 7, 8, 9, 20]] * 2)
    assert copying.slots_of(ids, sources).tolist() == [[0, 0, 0, 1, 2, 3, 1, 3]] * 2


def test_without_copying_every_position_has_probability_zero() -> None:
    copying, sources = NoCopying(), join(EXAMPLE)
    assert copying.slots == 0
    assert not copying.slots_of(sources.ids, sources).any()
    scores = copying(noise(2, 5, WIDTH), copying.prepare(memory(sources)))
    assert scores.shape == (2, 5, sources.ids.shape[1])
    assert not scores.exp().any()
