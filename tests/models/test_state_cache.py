"""The state cache against a plain computation: what like states foresee, and how it is mixed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from redraft.data.vocabulary import END_NUMBER, PAD_NUMBER
from redraft.models.state_cache import Remembered, StateCache

WIDTH, SIZE, LENGTH = 8, 3, 2

words = st.integers(END_NUMBER, WIDTH - 1)  # few, so that several states foresee the same
examples = st.lists(st.lists(words, min_size=1, max_size=4), max_size=3)
rows = st.lists(examples, min_size=1, max_size=4)
seeds = st.integers(0, 20)
quick = settings(deadline=None, max_examples=50)

Row = Sequence[Sequence[int]]  # the words of the remembered examples, nearest first


@dataclass(frozen=True)
class Case:
    """What an editor expects in its states, and what is remembered for each of them."""

    log_probs: Tensor  # (R, T, W)
    states: Tensor  # (R, T, D)
    remembered: Remembered
    parts: Sequence[tuple[Tensor, Tensor, Tensor]]  # of each row states, words and ranks


def make_cache(seed: int = 0, *, pull: float = 0.0) -> StateCache:
    """A cache with other weights than the usual ones; the pull is towards it."""
    sharper, share, doubt = torch.randn(3, generator=torch.Generator().manual_seed(seed)).tolist()
    usual = StateCache()
    return StateCache(
        usual.sharpness * math.exp(sharper), usual.share + share + pull, usual.doubt + doubt
    )


def make_case(batch: Sequence[Row], seed: int) -> Case:
    """States by chance, and an editor that thinks some words impossible."""
    generator = torch.Generator().manual_seed(seed)
    parts = []
    for row in batch:
        ids = [number for example in row for number in example]
        ranks = [rank for rank, example in enumerate(row) for _ in example]
        states = torch.randn(len(ids), SIZE, generator=generator)
        parts.append((states, torch.tensor(ids, dtype=torch.long), torch.tensor(ranks).long()))
    scores = 3 * torch.randn(len(batch), LENGTH, WIDTH, generator=generator)
    impossible = torch.rand(scores.shape, generator=generator) < 0.3
    impossible[:, :, END_NUMBER] = False
    return Case(
        scores.masked_fill(impossible, -torch.inf).log_softmax(2),
        torch.randn(len(batch), LENGTH, SIZE, generator=generator),
        Remembered.of(*zip(*parts, strict=True)),
        parts,
    )


def by_hand(cache: StateCache, case: Case, row: int, at: int) -> Tensor:
    """The chances of all words in one state: a softmax of cosines beside the editor's."""
    edited = case.log_probs[row, at].double().exp().numpy()
    states, ids, _ = (each.numpy() for each in case.parts[row])
    if not len(ids):
        return torch.tensor(edited).float()
    here = case.states[row, at].double().numpy()
    cosines = states @ here / (np.linalg.norm(states, axis=1) * np.linalg.norm(here))
    weights = np.exp(cache.sharpness * cosines)
    weights /= weights.sum()
    foreseen = np.bincount(ids, weights=weights, minlength=WIDTH)
    heard = 1 / (1 + np.exp(cache.doubt * np.log(edited.max()) - cache.share))
    return torch.tensor((1 - heard) * edited + heard * foreseen).float()


@quick
@given(rows, seeds, st.sampled_from([0.0, -50.0, 50.0, 500.0]))
def test_what_is_mixed_is_a_distribution(batch: list[Row], seed: int, pull: float) -> None:
    case = make_case(batch, seed)
    mixed = make_cache(seed, pull=pull).mix(case.log_probs, case.states, case.remembered).exp()
    assert mixed.shape == case.log_probs.shape
    assert (mixed >= 0).all()
    torch.testing.assert_close(mixed.sum(2), torch.ones(mixed.shape[:2]), atol=1e-5, rtol=0)


@pytest.mark.parametrize("seed", range(20))
def test_it_is_one_also_where_the_cache_alone_is_heard_and_foresees_much(seed: int) -> None:
    case = make_case([[[4, 5, 6, 7] * 10] * 2], seed)
    # many weights, the sum of which is rounded
    cache = replace(make_cache(seed, pull=50.0), sharpness=1.0)
    mixed = cache.mix(case.log_probs, case.states, case.remembered).exp()
    torch.testing.assert_close(mixed.sum(2), torch.ones(mixed.shape[:2]), atol=1e-5, rtol=0)


@quick
@given(rows, seeds)
def test_it_is_that_of_nearest_neighbours_computed_one_by_one(batch: list[Row], seed: int) -> None:
    cache, case = make_cache(seed), make_case(batch, seed)
    mixed = cache.mix(case.log_probs, case.states, case.remembered).exp()
    for row in range(len(batch)):
        for at in range(LENGTH):
            expected = by_hand(cache, case, row, at)
            torch.testing.assert_close(mixed[row, at], expected, atol=1e-5, rtol=0)


@quick
@given(rows, seeds)
def test_rows_for_which_nothing_is_remembered_are_left_as_they_were(
    batch: list[Row], seed: int
) -> None:
    case = make_case([*batch, []], seed)
    mixed = make_cache(seed).mix(case.log_probs, case.states, case.remembered)
    for row, examples_of_row in enumerate([*batch, []]):
        if not examples_of_row:
            torch.testing.assert_close(mixed[row], case.log_probs[row])
    foreseen = make_cache(seed).foresee(case.log_probs, case.states, case.remembered)
    assert foreseen[-1].sum() == 0


@pytest.mark.parametrize("count", [1, 3])
def test_where_nothing_at_all_is_remembered_the_editor_is_not_touched(count: int) -> None:
    case = make_case([[]] * count, 0)
    nothing = Remembered.nothing(count, case.states.device)
    for remembered in (nothing, nothing.select(torch.zeros(count).long()), case.remembered):
        assert make_cache().mix(case.log_probs, case.states, remembered) is case.log_probs


@quick
@given(rows, seeds, st.integers(1, 5))
def test_padding_counts_for_nothing(batch: list[Row], seed: int, more: int) -> None:
    cache, case = make_cache(seed), make_case(batch, seed)
    known = case.remembered
    padded = Remembered(
        torch.cat([known.states, torch.ones(len(batch), more, SIZE)], 1),
        torch.cat([known.ids, torch.full((len(batch), more), PAD_NUMBER)], 1),
        torch.cat([known.ranks, torch.zeros(len(batch), more).long()], 1),
        known.sharing,
    )
    found = cache.mix(case.log_probs, case.states, padded).exp()
    expected = cache.mix(case.log_probs, case.states, known).exp()
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)
    foreseen = cache.foresee(case.log_probs, case.states, padded)
    assert foreseen[:, :, known.ids.shape[1] :].sum() == 0


@quick
@given(rows, seeds, st.data())
def test_chosen_rows_give_what_each_gives_alone(
    batch: list[Row], seed: int, data: st.DataObject
) -> None:
    cache, case = make_cache(seed), make_case(batch, seed)
    chosen = st.lists(st.integers(0, len(batch) - 1), min_size=1, max_size=6)
    first = torch.tensor(data.draw(chosen))
    again = torch.tensor(data.draw(st.lists(st.integers(0, len(first) - 1), min_size=1)))
    for picked, remembered in (
        (first, case.remembered.select(first)),
        (first[again], case.remembered.select(first).select(again)),
    ):
        mixed = cache.mix(case.log_probs[picked], case.states[picked], remembered).exp()
        for row, owner in zip(mixed, picked.tolist(), strict=True):
            states, ids, ranks = case.parts[owner]
            own = slice(owner, owner + 1)
            alone = Remembered.of([states], [ids], [ranks])
            expected = cache.mix(case.log_probs[own], case.states[own], alone)[0].exp()
            torch.testing.assert_close(row, expected, atol=1e-6, rtol=0)
        numbers = remembered.of_rows(remembered.ids)
        assert torch.equal(numbers, case.remembered.ids[picked])


@quick
@given(seeds)
def test_rows_may_be_in_other_states_than_those_that_share_what_they_remember(seed: int) -> None:
    cache, case = make_cache(seed), make_case([[[4, 5], [6]]], seed)
    shared = case.remembered.select(torch.zeros(3).long())
    several = make_case([[]] * 3, seed + 1)
    mixed = cache.mix(several.log_probs, several.states, shared).exp()
    for at in range(3):
        one = slice(at, at + 1)
        alone = cache.mix(several.log_probs[one], several.states[one], case.remembered).exp()
        torch.testing.assert_close(mixed[one], alone, atol=1e-6, rtol=0)


@quick
@given(st.lists(st.floats(-12, 0), min_size=2, max_size=5, unique=True))
def test_the_surer_the_editor_the_less_the_cache_is_heard(surest: list[float]) -> None:
    shares = StateCache().gate(torch.tensor(sorted(surest)))
    assert (shares.diff() <= 0).all()
    assert shares[0] >= StateCache().gate(torch.tensor(0.0)) > 0


@quick
@given(seeds, st.floats(0.05, 3.0), st.floats(0.05, 3.0))
def test_the_nearer_state_wins_as_the_sharpness_grows(seed: int, near: float, far: float) -> None:
    case = make_case([[[4], [5]]], seed)
    here = case.states[:, :1]
    aside = torch.linalg.cross(here[0, 0], torch.tensor([0.3, -0.5, 0.8]))
    states = torch.stack([here[0, 0] + (near + far) * aside, here[0, 0] + near * aside])
    remembered = Remembered.of([states], [torch.tensor([4, 5])], [torch.tensor([0, 1])])
    nearer = []
    for sharpness in (0.0, 1.0, 10.0, 1e3, 1e6):
        cache = StateCache(sharpness=sharpness)
        foreseen = cache.foresee(case.log_probs[:, :1], here, remembered)[0, 0]
        nearer.append(float(foreseen[1] / foreseen.sum()))
    assert nearer[0] == pytest.approx(0.5)
    assert nearer == sorted(nearer)
    assert nearer[-1] == pytest.approx(1, abs=1e-3)


def test_examples_in_the_same_state_weigh_the_same() -> None:
    case = make_case([[[4], [5], [6]]], 0)
    same = Remembered.of([torch.ones(3, SIZE)], [case.parts[0][1]], [case.parts[0][2]])
    equal = StateCache().foresee(case.log_probs, case.states, same)
    torch.testing.assert_close(equal, equal[:, :, :1].expand_as(equal))


def test_how_long_a_state_is_does_not_matter() -> None:
    cache, case = make_cache(), make_case([[[4, 5], [6]]], 0)
    states, ids, ranks = case.parts[0]
    longer = Remembered.of([7 * states], [ids], [ranks])
    one = cache.mix(case.log_probs, case.states, case.remembered)
    other = cache.mix(case.log_probs, 0.1 * case.states, longer)
    torch.testing.assert_close(one.exp(), other.exp(), atol=1e-6, rtol=0)


def test_a_word_that_the_editor_cannot_write_comes_out_if_it_is_remembered() -> None:
    cache, case, word = make_cache(), make_case([[[4, WIDTH - 1]], [[4]]], 0), WIDTH - 1
    case.log_probs[:, :, word] = -torch.inf
    mixed = cache.mix(case.log_probs, case.states, case.remembered)
    assert (mixed[0, :, word] > -torch.inf).all()
    assert (mixed[1, :, word] == -torch.inf).all()
