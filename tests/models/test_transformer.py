"""Attention against a softmax in loops; encoders and decoders against what must not matter."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import cast

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from redraft.models.attention import Attended, Attention, rotate
from redraft.models.batch import Sequences
from redraft.models.config import EditNetworkConfig
from redraft.models.decoders import Decoder, DecoderState
from redraft.models.edit_network import ARCHITECTURES, EditSizes
from redraft.models.encoders import Encoder
from redraft.models.memory import BeamIndex, Memory, Sources
from redraft.models.transformer import DecoderLayer, EncoderLayer, causal_mask

INPUT, WIDTH = 6, 8
SIZES = EditSizes(10, 10, fields=1, copyable=(True, True))
CONFIG = EditNetworkConfig(width=WIDTH, decoder_layers=2, dropout=0.5)
KINDS = ["lstm", "transformer"]
LENGTHS = ((3, 5), (1, 2), (4, 1))

seeds = st.integers(0, 2**31)
lengths_of_rows = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=4)
pieces_of_length = st.lists(st.integers(1, 4), min_size=1, max_size=4)
quick = settings(deadline=None, max_examples=25)


def noise(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def close(found: object, expected: object) -> None:
    torch.testing.assert_close(found, expected, atol=5e-5, rtol=0)


def attention_layer(heads: int, memory_width: int = INPUT) -> Attention:
    torch.manual_seed(heads)
    return Attention(WIDTH, memory_width, heads=heads).requires_grad_(False)


@cache
def encoder(kind: str) -> Encoder:
    torch.manual_seed(1)
    return ARCHITECTURES[kind][0](SIZES, INPUT, CONFIG).requires_grad_(False)


@cache
def decoder(kind: str) -> Decoder:
    torch.manual_seed(2)
    return ARCHITECTURES[kind][1](SIZES, INPUT, CONFIG).requires_grad_(False)


def sources_of(lengths: Sequence[tuple[int, int]], *, wider: int = 0) -> Sources:
    """Sources of these lengths; what their tokens are matters to no layer."""
    columns = []
    for column in zip(*lengths, strict=True):
        ids = torch.zeros(len(lengths), max(column) + wider, dtype=torch.long)
        columns.append(Sequences(ids, torch.tensor(column)))
    return Sources.join(columns, [True, True])


def fill(sources: Sources, width: int, seed: int) -> Tensor:
    """Noise at all places: of a real one given by row, role and position, else by the seed."""
    values = noise(*sources.ids.shape, width, seed=seed)
    start = 0
    for source_id, columns in enumerate(sources.widths):
        for row, length in enumerate(sources.lengths[:, source_id].tolist()):
            values[row, start : start + length] = noise(length, width, seed=100 * row + source_id)
        start += columns
    return values


def memory_of(lengths: Sequence[tuple[int, int]], *, seed: int = 0, wider: int = 0) -> Memory:
    sources = sources_of(lengths, wider=wider)
    return Memory(sources, fill(sources, WIDTH, seed), noise(len(lengths), WIDTH, seed=7))


def rows_of(memory: Memory, rows: Tensor) -> Memory:
    return Memory(memory.sources.reorder(rows), memory.states[rows], memory.summary[rows])


def decode(
    kind: str, embedded: Tensor, state: Memory | DecoderState
) -> tuple[Tensor, DecoderState]:
    start = decoder(kind).start(state, generator=None) if isinstance(state, Memory) else state
    states, after = decoder(kind)(embedded, start, generator=None)
    return states, after


@pytest.mark.parametrize("heads", [1, 2, 4])
@quick
@given(rows=st.integers(1, 3), length=st.integers(1, 4), places=st.integers(1, 5), seed=seeds)
def test_attention_is_a_softmax_of_scaled_products(
    heads: int, rows: int, length: int, places: int, seed: int
) -> None:
    layer = attention_layer(heads)
    states, held = noise(rows, length, WIDTH, seed=seed), noise(rows, places, INPUT, seed=seed + 1)
    mask = torch.rand(rows, length, places, generator=torch.Generator().manual_seed(seed)) < 0.6
    mask[:, :, 0] = True
    found = layer(states, layer.project(held), mask[:, None])
    size = WIDTH // heads
    keys, values = (held @ layer.key_value.weight.T + layer.key_value.bias).chunk(2, 2)
    for row in range(rows):
        for at in range(length):
            query = layer.query.weight @ states[row, at] + layer.query.bias
            gathered = []
            for head in range(heads):
                part = slice(head * size, (head + 1) * size)
                scores = keys[row, :, part] @ query[part] / math.sqrt(size)
                probs = scores.exp() * mask[row, at]
                gathered.append((probs / probs.sum()) @ values[row, :, part])
            expected = layer.out.weight @ torch.cat(gathered) + layer.out.bias
            close(found[row, at], expected)


def test_without_a_mask_every_position_is_attended_to() -> None:
    layer = attention_layer(2)
    states, attended = noise(2, 3, WIDTH, seed=1), layer.project(noise(2, 4, INPUT, seed=2))
    everything = torch.ones(3, 4, dtype=torch.bool)
    close(layer(states, attended, None), layer(states, attended, everything))


def test_joined_keys_and_values_equal_those_of_joined_positions() -> None:
    layer, held = attention_layer(2), noise(3, 5, INPUT, seed=3)
    whole = layer.project(held)
    for pieces in ([5], [2, 3], [1, 3, 1]):
        parts = [layer.project(piece) for piece in torch.split(held, pieces, 1)]
        joined = Attended.join(*parts)
        close((joined.keys, joined.values), (whole.keys, whole.values))


def test_reordering_selects_keys_and_values_by_row() -> None:
    layer, held, rows = attention_layer(2), noise(3, 5, INPUT, seed=3), torch.tensor([2, 0, 2])
    chosen, alone = layer.project(held).reorder(rows), layer.project(held[rows])
    close((chosen.keys, chosen.values), (alone.keys, alone.values))


even_widths = st.integers(1, 8).map(lambda half: 2 * half)
some_places = st.lists(st.integers(0, 300), min_size=1, max_size=5)


@given(some_places, even_widths, seeds)
def test_rotation_frequencies_decrease_from_plane_to_plane(
    places: list[int], width: int, seed: int
) -> None:
    vectors = noise(2, 3, len(places), width, seed=seed)
    found = rotate(vectors, torch.tensor(places))
    left, right = vectors.double().chunk(2, 3)
    half = width // 2
    angles = [[place / 1_000 ** (plane / half) for plane in range(half)] for place in places]
    turned = torch.complex(left, right) * torch.exp(1j * torch.tensor(angles).double())
    expected = torch.cat([turned.real, turned.imag], 3).float()
    torch.testing.assert_close(found, expected, atol=2e-4, rtol=0)


@given(some_places, st.integers(0, 200), even_widths, seeds)
def test_the_product_of_rotated_vectors_depends_only_on_their_distance(
    places: list[int], further: int, width: int, seed: int
) -> None:
    at = torch.tensor(places)
    queries, keys = (noise(1, 1, len(places), width, seed=seed + each) for each in (0, 1))
    here = rotate(queries, at) @ rotate(keys, at).transpose(2, 3)
    there = rotate(queries, at + further) @ rotate(keys, at + further).transpose(2, 3)
    torch.testing.assert_close(here, there, atol=2e-3, rtol=0)


@given(even_widths, seeds)
def test_position_zero_or_no_positions_do_not_rotate(width: int, seed: int) -> None:
    vectors = noise(2, 3, 4, width, seed=seed)
    assert torch.equal(rotate(vectors, torch.zeros(4)), vectors)
    assert rotate(vectors, None) is vectors


def test_with_positions_attention_depends_on_the_distance_of_a_key() -> None:
    layer = attention_layer(2)
    states, held = noise(2, 3, WIDTH, seed=1), noise(2, 4, INPUT, seed=2)
    places, later = torch.arange(3), torch.arange(4)

    def attend(*, queries: int, keys: int) -> Tensor:
        attended = layer.project(held, later + keys)
        read: Tensor = layer(states, attended, None, places + queries)
        return read

    close(attend(queries=9, keys=9), attend(queries=0, keys=0))
    assert (attend(queries=9, keys=0) - attend(queries=0, keys=0)).abs().max() > 1e-3


def test_a_token_attends_to_itself_and_to_earlier_tokens() -> None:
    t, f = True, False
    like = torch.zeros(0)
    mask = causal_mask(2, 5, like)
    assert mask is not None
    assert mask.tolist() == [[t, t, t, t, f], [t, t, t, t, t]]
    assert causal_mask(1, 5, like) is None


@quick
@given(pieces_of_length, seeds)
def test_a_layer_with_a_cached_prefix_equals_the_layer_over_all_tokens(
    pieces: list[int], seed: int
) -> None:
    torch.manual_seed(3)
    layer = DecoderLayer(WIDTH, segments=1, heads=2, dropout_rate=0.5).requires_grad_(False)
    states = noise(2, sum(pieces), WIDTH, seed=seed)
    held = cast(Attention, layer.segments[0]).project(noise(2, 4, WIDTH, seed=seed + 1))
    mask = torch.tensor([[True, True, True, True], [True, False, True, False]])
    beam_index = BeamIndex.one_row_each(2, states.device)
    earlier: Attended | None = None
    parts = []
    for piece in torch.split(states, pieces, 1):
        part, earlier = layer(piece, earlier, [(held, mask)], beam_index, generator=None)
        parts.append(part)
    whole, seen = layer(states, None, [(held, mask)], beam_index, generator=None)
    close(torch.cat(parts, 1), whole)
    assert earlier is not None
    close((earlier.keys, earlier.values), (seen.keys, seen.values))


def test_an_encoder_layer_attends_in_both_directions_but_not_to_padding() -> None:
    torch.manual_seed(3)
    layer = EncoderLayer(WIDTH, heads=2, dropout_rate=0.5).requires_grad_(False)
    states, mask = noise(1, 4, WIDTH, seed=1), torch.tensor([[True, True, True, False]])
    places = torch.arange(4)
    before = layer(states, mask, places, generator=None)
    for place, reaches in ((0, [0, 1, 2, 3]), (2, [0, 1, 2, 3]), (3, [3])):
        # scaled, for a shift of all values is what the norm takes out
        changed = states.clone()
        changed[:, place] *= -2
        moved = (layer(changed, mask, places, generator=None) - before).abs().amax(2)[0] > 1e-6
        assert moved.nonzero()[:, 0].tolist() == reaches


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(lengths=lengths_of_rows, wider=st.integers(1, 4), seed=seeds)
def test_padding_changes_neither_the_encoded_places_nor_their_summary(
    kind: str, lengths: list[tuple[int, int]], wider: int, seed: int
) -> None:
    memories = []
    for sources in (sources_of(lengths), sources_of(lengths, wider=wider)):
        memories.append(encoder(kind)(fill(sources, INPUT, seed), sources, generator=None))
    narrow, wide = memories
    close(wide.states[wide.sources.mask], narrow.states[narrow.sources.mask])
    close(wide.summary, narrow.summary)


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(lengths=lengths_of_rows)
def test_a_row_is_encoded_alone_as_beside_others(kind: str, lengths: list[tuple[int, int]]) -> None:
    sources = sources_of(lengths)
    embedded = fill(sources, INPUT, seed=0)
    together = encoder(kind)(embedded, sources, generator=None)
    for row in range(len(lengths)):
        chosen = torch.tensor([row])
        own = sources.reorder(chosen)
        alone = encoder(kind)(embedded[chosen], own, generator=None)
        close(alone.states[own.mask], together.states[row][own.mask[0]])
        close(alone.summary[0], together.summary[row])


@pytest.mark.parametrize("kind", KINDS)
def test_an_encoder_tells_its_sources_apart(kind: str) -> None:
    sources = sources_of([(3, 3)])
    embedded = noise(1, 3, INPUT, seed=1).repeat(1, 2, 1)
    first, second = sources.apart(encoder(kind)(embedded, sources, generator=None).states)
    assert ((first - second).abs().amax(2) > 1e-3).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_tokens_matters(kind: str) -> None:
    memory, embedded = memory_of(LENGTHS), noise(3, 4, INPUT, seed=1)
    states, _ = decode(kind, embedded, memory)
    replaced, _ = decode(kind, embedded[:, [1, 0, 2, 3]], memory)
    assert ((states - replaced)[:, 2:].abs().amax(2) > 1e-4).all()
    sources = sources_of([(4, 4)])
    places = fill(sources, INPUT, seed=0)
    before = encoder(kind)(places, sources, generator=None).states
    after = encoder(kind)(places[:, [1, 0, *range(2, 8)]], sources, generator=None).states
    assert ((before - after)[:, 2:4].abs().amax(2) > 1e-4).all()


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(lengths=lengths_of_rows, pieces=pieces_of_length, seed=seeds)
def test_incremental_decoding_equals_one_pass(
    kind: str, lengths: list[tuple[int, int]], pieces: list[int], seed: int
) -> None:
    memory = memory_of(lengths)
    embedded = noise(len(lengths), sum(pieces), INPUT, seed=seed)
    state = decoder(kind).start(memory, generator=None)
    parts = []
    for piece in torch.split(embedded, pieces, 1):
        part, state = decode(kind, piece, state)
        parts.append(part)
    whole, end = decode(kind, embedded, memory)
    close(torch.cat(parts, 1), whole)
    close(state.cache, end.cache)


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(changed=st.integers(0, 5), seed=seeds)
def test_a_later_token_does_not_change_earlier_states(kind: str, changed: int, seed: int) -> None:
    memory, embedded = memory_of(LENGTHS), noise(3, 6, INPUT, seed=seed)
    before, _ = decode(kind, embedded, memory)
    embedded[:, changed] += 1
    after, _ = decode(kind, embedded, memory)
    close(after[:, :changed], before[:, :changed])
    assert ((after - before)[:, changed:].abs().amax(2) > 0).all()


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(lengths=lengths_of_rows, wider=st.integers(1, 4), seed=seeds)
def test_padding_of_the_sources_changes_no_state(
    kind: str, lengths: list[tuple[int, int]], wider: int, seed: int
) -> None:
    embedded = noise(len(lengths), 4, INPUT, seed=seed)
    narrow, _ = decode(kind, embedded, memory_of(lengths))
    wide, _ = decode(kind, embedded, memory_of(lengths, seed=seed, wider=wider))
    close(wide, narrow)


@pytest.mark.parametrize("kind", KINDS)
def test_every_real_position_of_the_memory_is_attended_to(kind: str) -> None:
    memory, embedded = memory_of([(3, 5)]), noise(1, 2, INPUT, seed=1)
    before, _ = decode(kind, embedded, memory)
    for place in memory.sources.mask[0].nonzero()[:, 0].tolist():
        states = memory.states.clone()
        states[:, place] += 1
        after, _ = decode(kind, embedded, replace(memory, states=states))
        assert ((after - before).abs().amax(2) > 1e-6).all()


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(rows=st.lists(st.integers(0, 2), min_size=1, max_size=5), seed=seeds)
def test_going_on_with_some_rows_is_computing_those_rows(
    kind: str, rows: list[int], seed: int
) -> None:
    memory, chosen = memory_of(LENGTHS), torch.tensor(rows)
    first, second = noise(3, 3, INPUT, seed=seed), noise(len(rows), 2, INPUT, seed=seed + 1)
    _, state = decode(kind, first, memory)
    found, _ = decode(kind, second, state.reorder(chosen)[0])
    _, alone = decode(kind, first[chosen], rows_of(memory, chosen))
    expected, _ = decode(kind, second, alone)
    close(found, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_one_memory_leave_it_where_it_is(kind: str) -> None:
    memory = memory_of(LENGTHS)
    _, state = decode(kind, noise(3, 3, INPUT, seed=1), memory)
    twice, used = state.reorder(torch.tensor([2, 0, 0, 1]))
    assert used is None
    assert twice.attended is state.attended
    fewer, used = twice.reorder(torch.tensor([1, 2]))
    assert used is not None
    assert used.tolist() == [0]
    assert [len(each.keys) for each in fewer.attended] == [1] * len(state.attended)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_can_be_chosen_before_anything_was_read(kind: str) -> None:
    memory, rows = memory_of(LENGTHS), torch.tensor([1, 1])
    embedded = noise(2, 3, INPUT, seed=1)
    start = decoder(kind).start(memory, generator=None)
    found, _ = decode(kind, embedded, start.reorder(rows)[0])
    close(found, decode(kind, embedded, rows_of(memory, rows))[0])


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_happens_only_where_randomness_is_given(kind: str) -> None:
    sources = sources_of(LENGTHS)
    embedded, read = fill(sources, INPUT, seed=0), noise(3, 4, INPUT, seed=1)
    start = decoder(kind).start(memory_of(LENGTHS), generator=None)

    def both(seed: int | None) -> Tensor:
        generator = None if seed is None else torch.Generator().manual_seed(seed)
        memory = encoder(kind)(embedded, sources, generator=generator)
        states, _ = decoder(kind)(read, start, generator=generator)
        return torch.cat([memory.states.flatten(), states.flatten()])

    assert torch.equal(both(None), both(None))
    assert torch.equal(both(1), both(1))
    assert not torch.equal(both(1), both(2))
    assert not torch.equal(both(1), both(None))
