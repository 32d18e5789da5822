"""Compare the mixture of prototypes, step by step, with the sum over whole outputs."""

import itertools
from collections.abc import Sequence
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from redraft.editing.next_token import Mixture, MixtureState
from redraft.models.batch import CachePositions, EditBatch, Sequences
from redraft.models.config import EditNetworkConfig
from redraft.models.edit_network import ARCHITECTURES, EditNetwork, EditSizes, EditState
from redraft.models.ngram_cache import NoCache

UNKNOWN, START, END = 1, 2, 3
WRITTEN, KNOWN, WIDTH = 8, 10, 13
SIZES = EditSizes(KNOWN, WRITTEN, fields=1, copyable=(True, True))

Sources = tuple[list[int], list[int]]  # x and y'
PROTOTYPES: Sequence[Sequence[Sources]] = (
    (([4, 10, END], [5, 11, END]), ([4, 10, END], [12, 6, 5, END]), ([4, 10, END], [END])),
    (([9, END], [7, END]), ([9, END], [10, 10, END]), ([9, END], [10, 11, 12, END])),
)
TARGETS = torch.tensor([[START, 5, 10, 4, 6, END], [START, 9, 7, 9, 4, END]])
WEIGHTS = torch.tensor([[0.5, -1.0, -2.0], [-3.0, 0.0, -0.5]])

architectures = pytest.mark.parametrize("architecture", ARCHITECTURES)
quick = settings(deadline=None, max_examples=8)
tokens = st.integers(4, WRITTEN - 1)
weights = st.floats(-6, 3, width=32)


@cache
def network(architecture: str) -> EditNetwork:
    """Build a network with confident predictions, so that the weights change quickly."""
    torch.manual_seed(0)
    config = EditNetworkConfig(
        architecture=architecture,
        word_width=6,
        width=8,
        decoder_layers=1,
    )
    model = EditNetwork(SIZES, config).requires_grad_(False)
    for parameter in (*model.write.parameters(), *model.copying.parameters()):
        parameter.mul_(4)
    return model


def mixing(model: EditNetwork) -> Mixture:
    return Mixture(model, NoCache())


def encode(model: EditNetwork, inputs: Sequence[Sequence[Sources]]) -> EditState:
    rows = [row for prototypes in inputs for row in prototypes]
    sources = [Sequences.pad(column) for column in zip(*rows, strict=True)]
    target = Sequences.pad([[START]] * len(rows))
    return model.encode(EditBatch(sources, target, WIDTH), generator=None)


def start(
    model: EditNetwork, log_weights: Tensor, inputs: Sequence[Sequence[Sources]] = PROTOTYPES
) -> MixtureState:
    nothing = torch.zeros(len(inputs), 0, dtype=torch.long)
    return mixing(model).start(encode(model, inputs), log_weights, CachePositions(nothing, nothing))


def log_likelihood(
    model: EditNetwork, prototypes: Sequence[Sources], target: Tensor, log_weights: Tensor
) -> float:
    """Return log Σ w p(target) with each prototype read separately."""
    if len(target) == 1:
        return 0.0  # all outputs begin with BOS
    terms = []
    for sources, weight in zip(prototypes, log_weights.log_softmax(0), strict=True):
        states, after = model.read(encode(model, [[sources]]), target[None, :-1])
        expected = model.next_tokens(states, after)[0]  # (T, W)
        terms.append(weight + expected.gather(1, target[1:, None]).sum())
    return float(torch.stack(terms).logsumexp(0))


def next_tokens(model: EditNetwork, state: MixtureState, targets: Tensor, *, first: int) -> Tensor:
    """Add up the steps: the prefix in one, then one per token."""
    mixture = mixing(model)
    expected, state = mixture.step(state, targets[:, :first])
    total = torch.zeros(len(targets))
    for at in range(first, targets.shape[1]):
        token = targets[:, at : at + 1]
        total += expected.gather(1, token)[:, 0]
        expected, state = mixture.step(state, token)
    return total


@architectures
@pytest.mark.parametrize("first", [1, 2, 4])
def test_the_steps_add_up_to_the_mixture_of_whole_outputs(architecture: str, first: int) -> None:
    model = network(architecture)
    found = next_tokens(model, start(model, WEIGHTS), TARGETS, first=first)
    for row, prototypes in enumerate(PROTOTYPES):
        target = TARGETS[row]
        expected = log_likelihood(model, prototypes, target, WEIGHTS[row])
        given_first = log_likelihood(model, prototypes, target[:first], WEIGHTS[row])
        assert float(found[row]) == pytest.approx(expected - given_first, abs=1e-4)


@architectures
@quick
@given(
    output=st.lists(tokens, min_size=1, max_size=5),
    log_weights=st.tuples(weights, weights, weights),
    data=st.data(),
)
def test_the_steps_add_up_for_any_output_any_weights_and_any_prefix(
    architecture: str,
    output: list[int],
    log_weights: tuple[float, float, float],
    data: st.DataObject,
) -> None:
    model, prototypes = network(architecture), PROTOTYPES[0]
    target, weighed = torch.tensor([START, *output, END]), torch.tensor(log_weights)
    first = data.draw(st.integers(1, len(output) + 1))
    found = next_tokens(model, start(model, weighed[None], [prototypes]), target[None], first=first)
    expected = log_likelihood(model, prototypes, target, weighed)
    given_first = log_likelihood(model, prototypes, target[:first], weighed)
    assert float(found) == pytest.approx(expected - given_first, abs=1e-4)


@architectures
@quick
@given(pieces=st.lists(st.integers(1, 3), min_size=1, max_size=3))
def test_reading_in_chunks_equals_reading_all_at_once(architecture: str, pieces: list[int]) -> None:
    model = network(architecture)
    mixture, state = mixing(model), start(model, WEIGHTS)
    whole = torch.cat([TARGETS, TARGETS[:, 1:]], 1)[:, : sum(pieces)]
    for piece in torch.split(whole, pieces, 1):
        expected, state = mixture.step(state, piece)
    at_once, after = mixture.step(start(model, WEIGHTS), whole)
    torch.testing.assert_close(expected.exp(), at_once.exp(), atol=1e-5, rtol=0)
    torch.testing.assert_close(state.weights, after.weights, atol=1e-4, rtol=0)


@architectures
def test_every_step_is_a_distribution(architecture: str) -> None:
    model = network(architecture)
    mixture, state = mixing(model), start(model, WEIGHTS)
    for token in TARGETS.T:
        expected, state = mixture.step(state, token[:, None])
        assert expected.shape == (2, WIDTH)
        torch.testing.assert_close(expected.exp().sum(1), torch.ones(2))
        torch.testing.assert_close(state.weights.exp().sum(1), torch.ones(2))


@architectures
def test_the_weights_after_a_prefix_are_the_posterior_of_the_prototypes(architecture: str) -> None:
    model = network(architecture)
    _, state = mixing(model).step(start(model, WEIGHTS), TARGETS[:, :4])
    prior = WEIGHTS.log_softmax(1)
    for row, prototypes in enumerate(PROTOTYPES):
        alone = [
            log_likelihood(model, [sources], TARGETS[row, :4], torch.zeros(1))
            for sources in prototypes
        ]
        posterior = (prior[row] + torch.tensor(alone)).log_softmax(0)
        torch.testing.assert_close(state.weights[row], posterior, atol=1e-4, rtol=0)


@architectures
def test_the_mixture_of_one_prototype_is_the_network_itself(architecture: str) -> None:
    model = network(architecture)
    inputs = [prototypes[:1] for prototypes in PROTOTYPES]
    mixture, state = mixing(model), start(model, torch.tensor([[-2.0], [0.5]]), inputs)
    alone = encode(model, inputs)
    for piece in torch.split(TARGETS, [2, 1, 3], 1):
        expected, state = mixture.step(state, piece)
        states, alone = model.read(alone, piece)
        assert torch.equal(expected, model.next_tokens(states[:, -1:], alone)[:, 0])


@architectures
def test_a_duplicate_prototype_changes_nothing(architecture: str) -> None:
    model = network(architecture)
    once, twice = ([[row] * count for row, *_ in PROTOTYPES] for count in (1, 2))
    single = next_tokens(model, start(model, torch.zeros(2, 1), once), TARGETS, first=1)
    double = next_tokens(
        model, start(model, torch.tensor([[1.0, 0], [0, 3]]), twice), TARGETS, first=1
    )
    torch.testing.assert_close(single, double, atol=1e-4, rtol=0)


@architectures
def test_a_prototype_without_weight_changes_nothing(architecture: str) -> None:
    model = network(architecture)
    masked = WEIGHTS.clone()
    masked[:, 2] = -1e9
    found = next_tokens(model, start(model, masked), TARGETS, first=1)
    two = [prototypes[:2] for prototypes in PROTOTYPES]
    expected = next_tokens(model, start(model, WEIGHTS[:, :2], two), TARGETS, first=1)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)


@architectures
def test_a_word_that_only_one_prototype_has_rules_the_others_out(architecture: str) -> None:
    model = network(architecture)
    mixture, state = mixing(model), start(model, WEIGHTS)
    # token 12 occurs in the second prototype of the first input and in the third of the other
    read = torch.tensor([[START, 12], [START, 12]])
    expected, state = mixture.step(state, read)
    assert state.weights.argmax(1).tolist() == [1, 2]
    torch.testing.assert_close(state.weights.amax(1), torch.zeros(2))
    for row, best in enumerate((1, 2)):
        states, after = model.read(encode(model, [[PROTOTYPES[row][best]]]), read[row : row + 1])
        alone = model.next_tokens(states[:, -1:], after)[0, 0]
        torch.testing.assert_close(expected[row].exp(), alone.exp(), atol=1e-5, rtol=0)


@architectures
def test_a_word_that_no_prototype_has_leaves_all_of_them_in_the_mixture(architecture: str) -> None:
    model = network(architecture)
    two = [[row, row] for row, *_ in PROTOTYPES]
    mixture, state = mixing(model), start(model, torch.zeros(2, 2), two)
    expected, state = mixture.step(state, torch.tensor([[START, 12, 4], [START, 11, 4]]))
    torch.testing.assert_close(state.weights.exp(), torch.full((2, 2), 0.5))
    torch.testing.assert_close(expected.exp().sum(1), torch.ones(2))


@architectures
def test_a_word_that_no_prototype_has_counts_as_the_unknown_token(architecture: str) -> None:
    model = network(architecture)
    two = [prototypes[:2] for prototypes in PROTOTYPES]
    read = torch.tensor([[START, 5, WRITTEN], [START, 9, WRITTEN]])  # the last is in no source
    mixture = mixing(model)
    _, before = mixture.step(start(model, WEIGHTS[:, :2], two), read[:, :2])
    expected = (before.weights + before.predictions[:, :, UNKNOWN]).log_softmax(1)
    for pieces in ([3], [2, 1], [1, 1, 1]):
        state = start(model, WEIGHTS[:, :2], two)
        for piece in torch.split(read, pieces, 1):
            _, state = mixture.step(state, piece)
        torch.testing.assert_close(state.weights, expected, atol=1e-4, rtol=0)


@architectures
@pytest.mark.parametrize("count", [1, 3])
def test_reordered_rows_continue_as_they_would_alone(architecture: str, count: int) -> None:
    model = network(architecture)
    mixture = mixing(model)
    inputs, log_weights = [each[:count] for each in PROTOTYPES], WEIGHTS[:, :count]
    _, state = mixture.step(start(model, log_weights, inputs), TARGETS[:, :3])
    for rows in itertools.product([0, 1], repeat=3):
        chosen = torch.tensor(rows)
        later = TARGETS[chosen, 3:]
        found, after = mixture.step(mixture.reorder(state, chosen), later)
        alone = start(model, log_weights[chosen], [inputs[row] for row in rows])
        expected, end = mixture.step(alone, TARGETS[chosen])
        torch.testing.assert_close(found.exp(), expected.exp(), atol=1e-5, rtol=0)
        torch.testing.assert_close(after.weights, end.weights, atol=1e-4, rtol=0)


@architectures
def test_rows_can_be_reordered_before_the_first_step(architecture: str) -> None:
    model = network(architecture)
    mixture, chosen = mixing(model), torch.tensor([1, 1, 0])
    found, _ = mixture.step(mixture.reorder(start(model, WEIGHTS), chosen), TARGETS[chosen, :2])
    expected, _ = mixture.step(start(model, WEIGHTS), TARGETS[:, :2])
    torch.testing.assert_close(found.exp(), expected[chosen].exp(), atol=1e-5, rtol=0)
