"""The decoder alone: sources and output are one sequence, and padding stands nowhere in it."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from experiments.lib.decoder_only import (
    DECODER_ONLY,
    CausalDecoder,
    CausalLayer,
    SourceEmbedding,
    decoder_only,
)
from redraft.errors import ConfigError
from redraft.models.attention import Attended, rotate
from redraft.models.batch import EditBatch, Sequences
from redraft.models.config import EditNetworkConfig
from redraft.models.decoders import DecoderState
from redraft.models.edit_network import EditNetwork, EditSizes
from redraft.models.memory import Memory, Sources

START, END = 2, 3
INPUT, WIDTH = 6, 8
SIZES = EditSizes(10, 10, fields=1, copyable=(True, True))
CONFIG = EditNetworkConfig(width=WIDTH, decoder_layers=1, dropout=0.5)
LENGTHS = ((3, 5), (1, 2), (4, 1))

seeds = st.integers(0, 2**31)
lengths_of_rows = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=4)
pieces_of_length = st.lists(st.integers(1, 4), min_size=1, max_size=4)
quick = settings(deadline=None, max_examples=15)


def noise(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def close(found: object, expected: object) -> None:
    torch.testing.assert_close(found, expected, atol=5e-5, rtol=0)


@cache
def embedding() -> SourceEmbedding:
    torch.manual_seed(1)
    return SourceEmbedding(SIZES, INPUT, CONFIG).requires_grad_(False)


@cache
def decoder() -> CausalDecoder:
    torch.manual_seed(2)
    return CausalDecoder(SIZES, INPUT, CONFIG).requires_grad_(False)


def sources_of(lengths: Sequence[tuple[int, ...]], *, wider: int = 0) -> Sources:
    """Sources of these lengths; what their tokens are matters to no layer."""
    columns = []
    for column in zip(*lengths, strict=True):
        ids = torch.zeros(len(lengths), max(column) + wider, dtype=torch.long)
        columns.append(Sequences(ids, torch.tensor(column)))
    return Sources.join(columns, [True] * len(columns))


def memory_of(lengths: Sequence[tuple[int, ...]], *, seed: int = 0, wider: int = 0) -> Memory:
    """Noise at all places: of real ones given by the row alone, of padding by the seed."""
    sources = sources_of(lengths, wider=wider)
    states = noise(*sources.ids.shape, WIDTH, seed=seed)
    for row, real in enumerate(sources.mask):
        states[row, real] = noise(int(real.sum()), WIDTH, seed=row)
    return Memory(sources, states, states.mean(1))


def rows_of(memory: Memory, rows: Tensor) -> Memory:
    return Memory(memory.sources.reorder(rows), memory.states[rows], memory.summary[rows])


def decode(embedded: Tensor, state: Memory | DecoderState) -> tuple[Tensor, DecoderState]:
    start = decoder().start(state, generator=None) if isinstance(state, Memory) else state
    states, after = decoder()(embedded, start, generator=None)
    return states, after


@given(st.lists(st.tuples(*[st.integers(0, 300)] * 3), min_size=1, max_size=4), seeds)
def test_rows_with_places_of_their_own_turn_as_they_would_alone(
    places: list[tuple[int, int, int]], seed: int
) -> None:
    vectors = noise(len(places), 2, 3, 4, seed=seed)
    found = rotate(vectors, torch.tensor(places))
    alone = [rotate(vectors[row : row + 1], torch.tensor(own)) for row, own in enumerate(places)]
    assert torch.equal(found, torch.cat(alone))


@quick
@given(lengths_of_rows, st.integers(1, 4), seeds)
def test_padding_of_the_sources_changes_no_state(
    lengths: list[tuple[int, int]], wider: int, seed: int
) -> None:
    embedded = noise(len(lengths), 4, INPUT, seed=seed)
    narrow, _ = decode(embedded, memory_of(lengths))
    wide, _ = decode(embedded, memory_of(lengths, seed=seed, wider=wider))
    close(wide, narrow)


@quick
@given(lengths_of_rows)
def test_where_one_source_ends_and_the_next_begins_the_decoder_cannot_tell(
    lengths: list[tuple[int, int]],
) -> None:
    """Positions run on: only the embedding knows which source a place belongs to."""
    embedded = noise(len(lengths), 3, INPUT, seed=1)
    apart, _ = decode(embedded, memory_of(lengths))
    joined, _ = decode(embedded, memory_of([(sum(each),) for each in lengths]))
    close(apart, joined)


@quick
@given(lengths_of_rows, seeds)
def test_a_row_is_read_alone_as_beside_others(lengths: list[tuple[int, int]], seed: int) -> None:
    memory, embedded = memory_of(lengths), noise(len(lengths), 4, INPUT, seed=seed)
    together, _ = decode(embedded, memory)
    for row in range(len(lengths)):
        alone, _ = decode(embedded[row : row + 1], rows_of(memory, torch.tensor([row])))
        close(alone[0], together[row])


@quick
@given(lengths_of_rows, pieces_of_length, seeds)
def test_reading_piece_by_piece_is_reading_all_at_once(
    lengths: list[tuple[int, int]], pieces: list[int], seed: int
) -> None:
    memory = memory_of(lengths)
    embedded = noise(len(lengths), sum(pieces), INPUT, seed=seed)
    state, parts = decoder().start(memory, generator=None), []
    for piece in torch.split(embedded, pieces, 1):
        part, state = decode(piece, state)
        parts.append(part)
    whole, end = decode(embedded, memory)
    close(torch.cat(parts, 1), whole)
    close(state.cache, end.cache)


@quick
@given(st.integers(1, 5), st.integers(1, 5), seeds)
def test_sources_and_output_are_one_sequence_through_the_same_layers(
    places: int, tokens: int, seed: int
) -> None:
    """What the sources left behind is what they would have been, had all been read at once."""
    model, memory = decoder(), memory_of([(places, 2)])
    embedded = noise(1, tokens, INPUT, seed=seed)
    found, after = decode(embedded, memory)
    states = torch.cat([memory.states, model.read(embedded)], 1)
    real = torch.ones(1, places + 2 + tokens, dtype=torch.bool)
    for at, layer in enumerate(model.layers):
        states, own = layer(states, [], real, generator=None)
        seen = after.attended[at].join(Attended(*after.cache[2 * at : 2 * at + 2]))
        close((seen.keys, seen.values), (own.keys, own.values))
    close(found, model.norm(states)[:, places + 2 :])


def test_nothing_read_leaves_the_state_as_it_was() -> None:
    start = decoder().start(memory_of(LENGTHS), generator=None)
    embedded = noise(3, 2, INPUT, seed=1)
    nothing, state = decode(embedded[:, :0], start)
    assert nothing.shape == (3, 0, WIDTH)
    close(decode(embedded, state)[0], decode(embedded, start)[0])


def test_a_layer_sees_a_token_and_those_before_it_but_no_padding() -> None:
    torch.manual_seed(3)
    layer = CausalLayer(WIDTH, heads=2, dropout_rate=0.5).requires_grad_(False)
    states, real = noise(1, 5, WIDTH, seed=1), torch.tensor([[True, True, False, True, True]])
    before, _ = layer(states, [], real, generator=None)
    for place, reaches in ((0, [0, 1, 2, 3, 4]), (1, [1, 2, 3, 4]), (2, [2]), (3, [3, 4])):
        # scaled, for a shift of all values is what the norm takes out
        changed = states.clone()
        changed[:, place] *= -2
        moved = (layer(changed, [], real, generator=None)[0] - before).abs().amax(2)[0] > 1e-6
        assert moved.nonzero()[:, 0].tolist() == reaches


@quick
@given(st.integers(0, 5), seeds)
def test_a_later_token_leaves_earlier_states_as_they_were(changed: int, seed: int) -> None:
    memory, embedded = memory_of(LENGTHS), noise(3, 6, INPUT, seed=seed)
    before, _ = decode(embedded, memory)
    embedded[:, changed] += 1
    after, _ = decode(embedded, memory)
    close(after[:, :changed], before[:, :changed])
    assert ((after - before)[:, changed:].abs().amax(2) > 0).all()


def test_a_source_sees_no_later_one_and_the_output_sees_all() -> None:
    memory, embedded = memory_of([(3, 5)]), noise(1, 2, INPUT, seed=1)
    before = decoder().start(memory, generator=None).attended[-1].keys  # (1, H, S, D/H)
    output, _ = decode(embedded, memory)
    for place in range(8):
        states = memory.states.clone()
        states[:, place] *= -2
        changed = replace(memory, states=states)
        after = decoder().start(changed, generator=None).attended[-1].keys
        moved = (after - before).abs().amax((0, 1, 3)) > 1e-6
        assert moved.nonzero()[:, 0].tolist() == list(range(place, 8))
        assert ((decode(embedded, changed)[0] - output).abs().amax(2) > 1e-6).all()


@quick
@given(st.lists(st.integers(0, 2), min_size=1, max_size=5), seeds)
def test_going_on_with_some_rows_is_computing_those_rows(rows: list[int], seed: int) -> None:
    memory, chosen = memory_of(LENGTHS), torch.tensor(rows)
    first, second = noise(3, 3, INPUT, seed=seed), noise(len(rows), 2, INPUT, seed=seed + 1)
    _, state = decode(first, memory)
    found, _ = decode(second, state.reorder(chosen)[0])
    _, alone = decode(first[chosen], rows_of(memory, chosen))
    close(found, decode(second, alone)[0])


def test_an_embedded_place_knows_its_source_and_no_other_place() -> None:
    sources = sources_of([(3, 3)])
    embedded = noise(1, 3, INPUT, seed=1).repeat(1, 2, 1)
    memory = embedding()(embedded, sources, generator=None)
    first, second = sources.apart(memory.states)
    assert ((first - second).abs().amax(2) > 1e-3).all()
    order = [2, 0, 1, 3, 4, 5]
    close(embedding()(embedded[:, order], sources, generator=None).states, memory.states[:, order])


def test_the_summary_is_the_mean_of_the_real_places() -> None:
    sources = sources_of(LENGTHS, wider=1)
    memory = embedding()(noise(*sources.ids.shape, INPUT, seed=1), sources, generator=None)
    for row, real in enumerate(sources.mask):
        close(memory.summary[row], memory.states[row, real].mean(0))


def test_dropout_happens_in_every_part_and_only_where_randomness_is_given() -> None:
    sources, memory = sources_of(LENGTHS), memory_of(LENGTHS)
    places, tokens = noise(*sources.ids.shape, INPUT, seed=1), noise(3, 4, INPUT, seed=2)
    start = decoder().start(memory, generator=None)

    def parts(seed: int | None) -> list[Tensor]:
        generator = None if seed is None else torch.Generator().manual_seed(seed)
        return [
            embedding()(places, sources, generator=generator).states,
            decoder().start(memory, generator=generator).attended[-1].keys,
            decoder()(tokens, start, generator=generator)[0],
        ]

    for none, again, one, same, two in zip(*map(parts, (None, None, 1, 1, 2)), strict=True):
        assert torch.equal(none, again)
        assert torch.equal(one, same)
        assert not torch.equal(one, two)
        assert not torch.equal(one, none)


KNOWN = 12


@pytest.fixture
def tiny() -> Iterator[EditNetworkConfig]:
    with decoder_only():
        yield EditNetworkConfig(
            architecture=DECODER_ONLY,
            copying="none",
            word_width=16,
            width=16,
            decoder_layers=1,
            dropout=0.0,
        )


def test_the_product_does_not_know_the_architecture() -> None:
    with decoder_only():
        assert EditNetworkConfig(architecture=DECODER_ONLY).architecture == DECODER_ONLY
    with pytest.raises(ConfigError, match=r"choose one of: transformer, lstm$"):
        EditNetworkConfig(architecture=DECODER_ONLY)


def test_it_is_as_deep_as_encoder_and_decoder_together(tiny: EditNetworkConfig) -> None:
    config = replace(tiny, decoder_layers=3)
    network = EditNetwork(EditSizes(KNOWN, KNOWN, fields=1, copyable=(True,)), config)
    assert isinstance(network.decoder, CausalDecoder)
    assert len(network.decoder.layers) == 5
    assert list(network.encoder.children()) == [network.encoder.read, network.encoder.source_ids]


@pytest.mark.parametrize("source_ids", [1, 2, 3])
def test_padding_of_any_number_of_sources_does_not_change_the_loss(
    source_ids: int, tiny: EditNetworkConfig
) -> None:
    torch.manual_seed(0)
    network = EditNetwork(EditSizes(KNOWN, KNOWN, fields=1, copyable=(True,) * source_ids), tiny)
    sources = [
        Sequences.pad([[4] * source_id + [5, END], [6] * (3 - source_id) + [END]])
        for source_id in range(source_ids)
    ]
    target = Sequences.pad([[START, 7, 8, END], [START, 9, END]])
    wider = [
        Sequences(torch.nn.functional.pad(each.ids, (0, 2 + source_id)), each.lengths)
        for source_id, each in enumerate(sources)
    ]
    with torch.no_grad():
        narrow = network.log_likelihoods(EditBatch(sources, target, KNOWN))
        close(network.log_likelihoods(EditBatch(wider, target, KNOWN)), narrow)


def test_sixty_steps_learn_to_exchange_two_fields(tiny: EditNetworkConfig) -> None:
    """Other words stand before that of the second field, so that its position does not tell."""
    torch.manual_seed(0)
    network = EditNetwork(EditSizes(KNOWN, KNOWN, fields=2, copyable=(True, True)), tiny)
    pairs = list(itertools.permutations(range(4, KNOWN), 2))
    batch = EditBatch(
        [
            Sequences.pad([[first, END] for first, _ in pairs]),
            Sequences.pad([[4] * (first % 3) + [second, END] for first, second in pairs]),
        ],
        Sequences.pad([[START, second, first, END] for first, second in pairs]),
        KNOWN,
    )
    optimiser = torch.optim.Adam(network.parameters(), lr=0.02)
    for _ in range(60):
        optimiser.zero_grad()
        torch.autograd.backward(-network.log_likelihoods(batch).sum(1).mean())
        optimiser.step()
    with torch.no_grad():
        assert (network.log_likelihoods(batch).sum(1) > -0.2).all()
