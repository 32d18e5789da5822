"""The noisy autoencoder against a loop over single steps, and its invariances."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from redraft.errors import ConfigError
from redraft.models.autoencoder import NoisyAutoencoder
from redraft.models.batch import Sequences
from redraft.models.config import AutoencoderConfig

VOCABULARY = 24
UNKNOWN, START, END = 1, 2, 3
TINY = AutoencoderConfig(
    word_width=10, width=8, embedding_dim=12, encoder_layers=2, decoder_layers=2
)
BARE = replace(TINY, bag_of_words=False)
BAG_ONLY = replace(TINY, encoder_layers=0)

words = st.integers(END + 1, VOCABULARY - 1)
field = st.lists(words, max_size=6).map(lambda row: [*row, END])
target = st.lists(words, max_size=6).map(lambda row: [START, *row, END])
example = st.tuples(field, field, target)
Row = tuple[list[int], list[int], list[int]]

ROWS: Sequence[Row] = (
    ([4, 5, 6, END], [7, 8, END], [START, 9, 10, 11, END]),
    ([5, 12, END], [END], [START, 13, END]),
    ([14, 15, 16, 17, 18, END], [19, END], [START, 20, 21, 22, 23, 4, END]),
    ([8, END], [9, 10, 11, 12, END], [START, END]),
)


def network(config: AutoencoderConfig) -> NoisyAutoencoder:
    """Return a network with nonzero LSTM projections, also with a bag of words."""
    torch.manual_seed(0)
    model = NoisyAutoencoder(VOCABULARY, 2, config)
    if config.encoder_layers:
        nn.init.normal_(model.encoder.combine.weight, std=0.5)
    return model


def untrained(config: AutoencoderConfig) -> NoisyAutoencoder:
    torch.manual_seed(0)
    return NoisyAutoencoder(VOCABULARY, 2, config)


def batch(rows: Sequence[Row]) -> tuple[list[Sequences], Sequences]:
    first, second, targets = (Sequences.pad(column) for column in zip(*rows, strict=True))
    return [first, second], targets


def score(model: NoisyAutoencoder, rows: Sequence[Row], seed: int | None = None) -> Tensor:
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    return model.log_likelihood(*batch(rows), generator=generator).detach()


def encode(model: NoisyAutoencoder, first: list[int], second: list[int]) -> Tensor:
    fields = [Sequences.pad([first]), Sequences.pad([second])]
    directions: Tensor = model.encoder(fields, generator=None)
    return directions[0].detach()


def widen(sequences: Sequences, by: int) -> Sequences:
    padding = sequences.ids.new_zeros(len(sequences.ids), by)
    return Sequences(torch.cat([sequences.ids, padding], 1), sequences.lengths)


def step(layer: nn.Module, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """One step of an LSTM, from its equations."""
    weights: dict[str, Tensor] = dict(layer.named_parameters())
    gates = weights["weight_ih_l0"] @ x + weights["bias_ih_l0"]
    gates = gates + weights["weight_hh_l0"] @ h + weights["bias_hh_l0"]
    i, f, g, o = gates.chunk(4)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


@torch.no_grad()
def naive_log_likelihood(model: NoisyAutoencoder, row: Row) -> float:
    """Score the target token by token."""
    first, second, written = row
    code = encode(model, first, second)
    width = model.config.width
    memory = [(torch.zeros(width), torch.zeros(width)) for _ in model.decoder.layers]
    total = 0.0
    for token, expected in itertools.pairwise(written):
        state = model.read(model.encoder.embedding.weight[token])
        for at, layer in enumerate(model.decoder.layers):
            memory[at] = step(layer, state + model.decoder.codes[at](code), *memory[at])
            state = state + memory[at][0]
        total += float(torch.log_softmax(model.write(state), 0)[expected])
    return total


@pytest.mark.parametrize("config", [TINY, BARE, BAG_ONLY])
def test_the_likelihood_equals_the_sum_over_a_loop_of_tokens(config: AutoencoderConfig) -> None:
    model = network(config)
    expected = [naive_log_likelihood(model, row) for row in ROWS]
    assert score(model, ROWS).tolist() == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("config", [TINY, BARE, BAG_ONLY])
@settings(deadline=None, max_examples=20)
@given(rows=st.lists(example, min_size=1, max_size=4))
def test_the_score_does_not_depend_on_the_rest_of_the_batch(
    config: AutoencoderConfig, rows: list[Row]
) -> None:
    model = network(config)
    alone = torch.cat([score(model, [row]) for row in rows])
    torch.testing.assert_close(score(model, rows), alone, atol=1e-4, rtol=1e-5)
    torch.testing.assert_close(score(model, rows[::-1]), alone.flip(0), atol=1e-4, rtol=1e-5)


@settings(deadline=None, max_examples=20)
@given(st.lists(example, min_size=1, max_size=4), st.integers(1, 5), st.integers(1, 5))
def test_padding_changes_neither_directions_nor_likelihoods(
    rows: list[Row], inputs_by: int, target_by: int
) -> None:
    model = network(TINY)
    fields, targets = batch(rows)
    wide = [widen(each, inputs_by) for each in fields]
    torch.testing.assert_close(
        model.encoder(wide, generator=None),
        model.encoder(fields, generator=None),
        atol=1e-6,
        rtol=0,
    )
    found = model.log_likelihood(wide, widen(targets, target_by), generator=None)
    torch.testing.assert_close(found.detach(), score(model, rows), atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("config", [TINY, BARE, BAG_ONLY])
@settings(deadline=None, max_examples=20)
@given(rows=st.lists(example, min_size=1, max_size=4))
def test_directions_have_length_one(config: AutoencoderConfig, rows: list[Row]) -> None:
    for model in (untrained(config), network(config)):
        lengths = model.encoder(batch(rows)[0], generator=None).norm(dim=1)
        torch.testing.assert_close(lengths, torch.ones(len(rows)))


def test_a_likelihood_is_a_logarithm_of_a_probability() -> None:
    model = network(TINY)
    assert (score(model, ROWS) < 0).all()
    assert (score(model, ROWS, seed=1) < 0).all()


NOISY = replace(TINY, dropout=0.3, word_dropout=0.3)


def test_without_a_generator_nothing_is_random() -> None:
    model = network(NOISY)
    assert torch.equal(score(model, ROWS), score(model, ROWS))
    assert torch.equal(score(model, ROWS), score(network(TINY), ROWS))


@pytest.mark.parametrize("config", [TINY, NOISY])
def test_the_seed_decides_the_noise(config: AutoencoderConfig) -> None:
    model = network(config)
    assert torch.equal(score(model, ROWS, seed=1), score(model, ROWS, seed=1))
    assert (score(model, ROWS, seed=1) != score(model, ROWS, seed=2)).all()
    assert (score(model, ROWS, seed=1) != score(model, ROWS)).all()


def test_the_noise_vanishes_as_the_concentration_grows() -> None:
    model = network(replace(TINY, concentration=1e9))
    torch.testing.assert_close(score(model, ROWS, seed=3), score(model, ROWS), atol=1e-3, rtol=0)


def gradients(model: NoisyAutoencoder) -> dict[str, float]:
    """The largest gradient of each parameter."""
    model.zero_grad()
    generator = torch.Generator().manual_seed(0)
    torch.autograd.backward(-model.log_likelihood(*batch(ROWS), generator=generator).mean())
    parameters = dict(model.named_parameters()).items()
    return {
        name: float(each.grad.abs().max()) for name, each in parameters if each.grad is not None
    }


@pytest.mark.parametrize("config", [BARE, BAG_ONLY])
def test_with_lstms_or_a_bag_alone_gradients_reach_every_parameter(
    config: AutoencoderConfig,
) -> None:
    model = untrained(config)
    found = gradients(model)
    assert found.keys() == dict(model.named_parameters()).keys()
    assert [name for name, largest in found.items() if largest == 0] == []


def test_with_a_bag_gradients_reach_the_lstms_from_the_second_step_on() -> None:
    model = untrained(TINY)
    first = gradients(model)
    unreached = [name for name, largest in first.items() if largest == 0]
    assert unreached
    assert all(name.startswith("encoder.readers.") for name in unreached)
    torch.optim.Adam(model.parameters(), lr=1e-3).step()
    second = gradients(model)
    assert second.keys() == dict(model.named_parameters()).keys()
    assert [name for name, largest in second.items() if largest == 0] == []


def test_padding_learns_nothing() -> None:
    model = network(TINY)
    gradients(model)
    learned = model.encoder.embedding.weight.grad
    assert learned is not None
    assert not learned[0].any()


@settings(deadline=None, max_examples=30)
@given(st.lists(words, min_size=1, max_size=7), st.randoms(use_true_random=False))
def test_with_a_bag_the_order_of_words_does_not_matter_at_first(
    row: list[int], order: Random
) -> None:
    shuffled = order.sample(row, len(row))
    model = untrained(TINY)
    before, after = (encode(model, [*each, END], [5, END]) for each in (row, shuffled))
    torch.testing.assert_close(before, after, atol=1e-6, rtol=0)


@settings(deadline=None, max_examples=30)
@given(
    st.lists(words, min_size=1, max_size=5),
    st.lists(st.sampled_from([UNKNOWN, START, END]), min_size=1, max_size=4),
)
def test_with_a_bag_special_and_unknown_tokens_add_nothing_at_first(
    row: list[int], special: list[int]
) -> None:
    model = untrained(TINY)
    before, after = (encode(model, each, [END]) for each in ([*row, END], [*special, *row, END]))
    torch.testing.assert_close(before, after, atol=1e-6, rtol=0)


@pytest.mark.parametrize("config", [TINY, BARE, BAG_ONLY])
def test_an_input_without_a_known_word_has_a_direction_too(config: AutoencoderConfig) -> None:
    unknown: Row = ([UNKNOWN, END], [END], [START, 4, END])
    assert score(untrained(config), [unknown, ROWS[0]], seed=0).isfinite().all()


def test_an_encoder_without_lstms_and_bag_is_rejected() -> None:
    with pytest.raises(ConfigError, match="encoder_layers or bag_of_words"):
        replace(TINY, encoder_layers=0, bag_of_words=False)


def test_with_a_bag_another_word_matters_at_first() -> None:
    model = untrained(TINY)
    assert (encode(model, [4, 5, END], [END]) - encode(model, [4, 6, END], [END])).norm() > 0.1


def test_without_a_bag_the_order_of_words_matters_at_once() -> None:
    model = untrained(BARE)
    assert (encode(model, [4, 5, END], [END]) - encode(model, [5, 4, END], [END])).norm() > 1e-3


def test_fields_are_distinguished() -> None:
    for model in (untrained(TINY), untrained(BARE), untrained(BAG_ONLY)):
        swapped = encode(model, [END], [4, 5, END])
        assert (encode(model, [4, 5, END], [END]) - swapped).norm() > 1e-3


@pytest.mark.parametrize("config", [TINY, BARE, BAG_ONLY])
def test_sixty_steps_learn_a_handful_of_pairs(config: AutoencoderConfig) -> None:
    model = untrained(config)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    generator = torch.Generator().manual_seed(0)
    before = score(model, ROWS).mean()
    for _ in range(60):
        optimiser.zero_grad()
        torch.autograd.backward(-model.log_likelihood(*batch(ROWS), generator=generator).mean())
        optimiser.step()
    assert score(model, ROWS).mean() > 0.1 * before
