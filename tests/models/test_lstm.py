"""The LSTMs against torch's own, packed ones, and against the gates' equations."""

from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from redraft.models.batch import Sequences
from redraft.models.lstm import (
    BidirectionalLSTM,
    ResidualLSTM,
    last_states,
    rearrange,
    reversal,
)

INPUT, WIDTH, CODE = 5, 8, 6

lengths_of_rows = st.lists(st.integers(1, 9), min_size=1, max_size=5)
seeds = st.integers(0, 2**31)


class Padded(NamedTuple):
    inputs: Tensor  # (B, T, D), noise where there is no token
    lengths: Tensor  # (B,)

    def mask(self) -> Tensor:
        return Sequences(self.inputs[:, :, 0], self.lengths).mask


def noise(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def padded(lengths: list[int], seed: int, *, wider: int = 0) -> Padded:
    width = max(lengths) + wider
    return Padded(noise(len(lengths), width, INPUT, seed=seed), torch.tensor(lengths))


def bidirectional(layers: int) -> BidirectionalLSTM:
    torch.manual_seed(layers)
    return BidirectionalLSTM(INPUT, WIDTH, layers=layers, dropout_rate=0.5).requires_grad_(False)


def residual(layers: int) -> ResidualLSTM:
    torch.manual_seed(layers)
    return ResidualLSTM(WIDTH, CODE, layers=layers, dropout_rate=0.5).requires_grad_(False)


def torchs_own(ours: BidirectionalLSTM) -> nn.LSTM:
    """torch's bidirectional LSTM with our weights."""
    layers = len(ours.forwards)
    theirs = nn.LSTM(INPUT, WIDTH, num_layers=layers, bidirectional=True, batch_first=True)
    theirs.requires_grad_(False)
    for layer, pair in enumerate(zip(ours.forwards, ours.backwards, strict=True)):
        for direction, suffix in zip(pair, ("", "_reverse"), strict=True):
            for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                copied = getattr(direction, f"{kind}_l0")
                getattr(theirs, f"{kind}_l{layer}{suffix}").copy_(copied)
    return theirs


def read(network: nn.Module, batch: Padded) -> tuple[Tensor, Tensor]:
    states, last = network(batch.inputs, batch.lengths, generator=None)
    return states, last


def run(network: ResidualLSTM, inputs: Tensor, code: Tensor) -> Tensor:
    states: Tensor = network(inputs, code, generator=None)[0]
    return states


@pytest.mark.parametrize("layers", [1, 2])
def test_without_padding_it_is_torchs_bidirectional_lstm(layers: int) -> None:
    ours = bidirectional(layers)
    batch = padded([7, 7, 7], seed=1)
    states, last = read(ours, batch)
    expected, (ends, _) = torchs_own(ours)(batch.inputs)
    torch.testing.assert_close(states, expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(last, torch.cat([ends[-2], ends[-1]], 1), atol=1e-6, rtol=0)


@pytest.mark.parametrize("layers", [1, 2])
@settings(deadline=None, max_examples=25)
@given(lengths=lengths_of_rows, wider=st.integers(0, 4), seed=seeds)
def test_with_padding_it_is_torchs_lstm_over_packed_sequences(
    layers: int, lengths: list[int], wider: int, seed: int
) -> None:
    ours = bidirectional(layers)
    batch = padded(lengths, seed, wider=wider)
    states, last = read(ours, batch)
    packed = pack_padded_sequence(
        batch.inputs, batch.lengths, batch_first=True, enforce_sorted=False
    )
    packed_states, (ends, _) = torchs_own(ours)(packed)
    width = batch.inputs.shape[1]
    expected = pad_packed_sequence(packed_states, batch_first=True, total_length=width)[0]
    mask = batch.mask()
    torch.testing.assert_close(states[mask], expected[mask], atol=1e-6, rtol=0)
    torch.testing.assert_close(last, torch.cat([ends[-2], ends[-1]], 1), atol=1e-6, rtol=0)


@pytest.mark.parametrize("layers", [1, 2])
@settings(deadline=None, max_examples=25)
@given(lengths=lengths_of_rows, longer=st.integers(1, 6), seed=seeds)
def test_neither_padding_nor_longer_rows_beside_them_change_real_states(
    layers: int, lengths: list[int], longer: int, seed: int
) -> None:
    network = bidirectional(layers)
    batch = padded(lengths, seed)
    states, last = read(network, batch)
    width = max(lengths) + longer
    beside = padded([width], seed + 1)
    padding = noise(len(lengths), longer, INPUT, seed=seed + 2)
    inputs = torch.cat([torch.cat([batch.inputs, padding], 1), beside.inputs])
    wide, wide_last = read(network, Padded(inputs, torch.cat([batch.lengths, beside.lengths])))
    mask = batch.mask()
    same = wide[: len(lengths), : max(lengths)]
    torch.testing.assert_close(same[mask], states[mask], atol=1e-6, rtol=0)
    torch.testing.assert_close(wide_last[: len(lengths)], last, atol=1e-6, rtol=0)


def test_every_state_depends_on_every_real_token_of_its_row() -> None:
    network = bidirectional(1)
    batch = padded([4, 6], seed=3)
    before, _ = read(network, batch)
    for row, length in enumerate(batch.lengths.tolist()):
        for position in range(length):
            inputs = batch.inputs.clone()
            inputs[row, position] += 1
            after, _ = read(network, Padded(inputs, batch.lengths))
            changed = (after - before).abs().amax(2) > 0
            assert changed[row, :length].all()
            assert not changed[1 - row].any()


def test_dropout_happens_only_where_randomness_is_given() -> None:
    network = bidirectional(2)
    inputs, lengths = padded([5, 3], seed=4)
    quiet, _ = network(inputs, lengths, generator=None)
    noisy = [
        network(inputs, lengths, generator=torch.Generator().manual_seed(seed))[0]
        for seed in (1, 1, 2)
    ]
    assert torch.equal(noisy[0], noisy[1])
    assert not torch.equal(noisy[0], noisy[2])
    assert not torch.equal(noisy[0], quiet)


@settings(deadline=None)
@given(lengths_of_rows, st.integers(0, 4))
def test_reversing_mirrors_the_real_positions_and_leaves_the_others(
    lengths: list[int], wider: int
) -> None:
    width = max(lengths) + wider
    order = reversal(torch.tensor(lengths), width)
    for row, length in zip(order.tolist(), lengths, strict=True):
        assert row == [*reversed(range(length)), *range(length, width)]


@settings(deadline=None)
@given(lengths_of_rows, st.integers(0, 4), seeds)
def test_reversing_twice_changes_nothing(lengths: list[int], wider: int, seed: int) -> None:
    batch = padded(lengths, seed, wider=wider)
    order = reversal(batch.lengths, batch.inputs.shape[1])
    assert torch.equal(rearrange(rearrange(batch.inputs, order), order), batch.inputs)


@settings(deadline=None)
@given(lengths_of_rows, st.integers(0, 4), seeds)
def test_the_last_state_stands_at_the_last_real_token(
    lengths: list[int], wider: int, seed: int
) -> None:
    batch = padded(lengths, seed, wider=wider)
    found = last_states(batch.inputs, batch.lengths)
    for row, length in enumerate(lengths):
        assert torch.equal(found[row], batch.inputs[row, :length][-1])


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 3), st.integers(0, 6), seeds)
def test_a_later_input_does_not_change_earlier_outputs(
    layers: int, changed: int, seed: int
) -> None:
    network = residual(layers)
    inputs, code = noise(2, 7, WIDTH, seed=seed), noise(2, CODE, seed=seed + 1)
    before = run(network, inputs, code)
    inputs[:, changed] += 1
    after = run(network, inputs, code)
    assert torch.equal(after[:, :changed], before[:, :changed])
    assert (after[:, changed:] != before[:, changed:]).any(2).all()


def test_a_row_reads_its_own_code_and_no_other() -> None:
    network = residual(2)
    inputs, code = noise(3, 4, WIDTH, seed=1), noise(3, CODE, seed=2)
    before = run(network, inputs, code)
    code[1] += 1
    changed = (run(network, inputs, code) != before).any(2)  # (B, T)
    assert changed.all(1).tolist() == [False, True, False]
    assert changed.any(1).tolist() == [False, True, False]


def forget(network: ResidualLSTM) -> None:
    """Cut everything that a layer carries from one position to the next."""
    for layer in network.layers:
        weights = dict(layer.named_parameters())
        weights["weight_hh_l0"].zero_()
        forget_gate = slice(WIDTH, 2 * WIDTH)  # the second of i, f, g, o
        weights["weight_ih_l0"][forget_gate] = 0
        weights["bias_ih_l0"][forget_gate] = -1e4


@pytest.mark.parametrize("layers", [1, 3])
def test_the_code_is_read_anew_at_every_position(layers: int) -> None:
    network = residual(layers)
    forget(network)
    inputs, code = noise(1, 1, WIDTH, seed=5).expand(2, 6, WIDTH), noise(2, CODE, seed=6)
    states = run(network, inputs, code)
    alone = run(network, inputs[:, :1], code)
    # nothing is carried: what each position knows of the code, it was told there
    torch.testing.assert_close(states, alone.expand_as(states), atol=1e-6, rtol=0)
    assert (states[0] != states[1]).any(1).all()


def test_layers_are_residual() -> None:
    network = residual(3)
    for layer in network.layers:
        for parameter in layer.parameters():
            parameter.zero_()  # an LSTM of zeros writes zeros
    inputs = noise(2, 4, WIDTH, seed=7)
    assert torch.equal(run(network, inputs, noise(2, CODE, seed=8)), inputs)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 3), st.lists(st.integers(1, 4), min_size=1, max_size=4), seeds)
def test_resuming_from_a_state_equals_one_pass(layers: int, pieces: list[int], seed: int) -> None:
    network = residual(layers)
    inputs, code = noise(2, sum(pieces), WIDTH, seed=seed), noise(2, CODE, seed=seed + 1)
    state: tuple[Tensor, ...] = ()
    parts = []
    for piece in torch.split(inputs, pieces, 1):
        part, state = network(piece, code, state=state, generator=None)
        parts.append(part)
    whole, end = network(inputs, code, generator=None)
    torch.testing.assert_close(torch.cat(parts, 1), whole, atol=1e-6, rtol=0)
    torch.testing.assert_close(state, end, atol=1e-6, rtol=0)


@pytest.mark.parametrize("layers", [1, 3])
def test_the_state_holds_two_vectors_per_layer_and_row(layers: int) -> None:
    _, state = residual(layers)(noise(4, 3, WIDTH, seed=1), noise(4, CODE, seed=2), generator=None)
    assert [tuple(each.shape) for each in state] == [(4, WIDTH)] * (2 * layers)


def test_reordered_rows_continue_as_before() -> None:
    network = residual(2)
    inputs, code = noise(3, 5, WIDTH, seed=1), noise(3, CODE, seed=2)
    _, state = network(inputs[:, :3], code, generator=None)
    rows = torch.tensor([2, 0, 2])
    chosen = tuple(each[rows] for each in state)
    after, _ = network(inputs[rows, 3:], code[rows], state=chosen, generator=None)
    torch.testing.assert_close(after, run(network, inputs, code)[rows, 3:], atol=1e-6, rtol=0)
