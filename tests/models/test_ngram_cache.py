"""The n-gram cache against counting by hand: matches, predictions and the mixture."""

import math
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from redraft.models.batch import CachePositions, Sequences
from redraft.models.ngram_cache import (
    EVIDENCE,
    KINDS,
    LONGEST,
    OWN,
    RANKS,
    CacheState,
    NgramCache,
    NoCache,
    evidence_of,
)
from redraft.text.vocabulary import BOS_ID, EOS_ID

WIDTH = 8
FIRST = EOS_ID + 1

words = st.integers(FIRST, FIRST + 2)  # few, so that much agrees
outputs = st.lists(words, max_size=8)
rows = st.lists(st.lists(outputs, max_size=4), min_size=1, max_size=3)
quick = settings(deadline=None, max_examples=50)

Row = Sequence[Sequence[int]]  # the cached outputs, nearest first, without their ends


def make_cache(seed: int = 0) -> NgramCache:
    """A cache whose weights differ from one another."""
    cache = NgramCache().requires_grad_(False)
    generator = torch.Generator().manual_seed(seed)
    for each in cache.parameters():
        each.copy_(torch.randn(each.shape, generator=generator))
    return cache


def places(batch: Sequence[Row]) -> CachePositions:
    ids = [[number for y in row for number in (BOS_ID, *y, EOS_ID)] for row in batch]
    ranks = [[rank for rank, y in enumerate(row) for _ in range(len(y) + 2)] for row in batch]
    return CachePositions(Sequences.pad(ids).ids, Sequences.pad(ranks).ids)


def read(cache: NgramCache, batch: Sequence[Row], written: Sequence[Sequence[int]]) -> CacheState:
    tokens = torch.tensor([[BOS_ID, *each] for each in written])
    return cache.read(cache.begin(places(batch)), tokens)


def agreeing(before: Sequence[int], said: Sequence[int]) -> int:
    """Return the length of the common suffix."""
    count = 0
    while count < min(len(before), len(said), LONGEST) and before[-1 - count] == said[-1 - count]:
        count += 1
    return count


def expected_places(row: Row, written: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return token, rank bucket and match length of each cached position."""
    said = [BOS_ID, *written]
    found = []
    for rank, y in enumerate(row):
        whole = [BOS_ID, *y, EOS_ID]
        kind = sum(rank >= bound for bound in RANKS)
        found += [(whole[at], kind, agreeing(whole[:at], said)) for at in range(1, len(whole))]
    return found + [(said[at], OWN, agreeing(said[:at], said)) for at in range(1, len(said))]


def found_places(state: CacheState, row: int) -> list[tuple[int, int, int]]:
    columns = (state.ids[row], state.kinds[row], state.matches[row])
    every = zip(*(each.tolist() for each in columns), strict=True)
    return [each for each in every if each[0] > BOS_ID]


def same_length(batch: Sequence[Row]) -> st.SearchStrategy[list[list[int]]]:
    """Draw prefixes, one per row, that may continue like the cached outputs."""
    every = [y for row in batch for y in row if y] or [[FIRST]]
    length = st.shared(st.integers(0, 8), key="length")
    copied = st.sampled_from([[*y, *y, *y, *y, *y, *y, *y, *y][:8] for y in every])
    one = st.one_of(copied, st.lists(words, min_size=8, max_size=8))
    return st.tuples(length, st.lists(one, min_size=len(batch), max_size=len(batch))).map(
        lambda drawn: [each[: drawn[0]] for each in drawn[1]]
    )


cases = rows.flatmap(lambda batch: st.tuples(st.just(batch), same_length(batch)))
Case = tuple[list[list[list[int]]], list[list[int]]]


@quick
@given(cases)
def test_matches_are_common_suffixes_of_context_and_prefix(case: Case) -> None:
    batch, written = case
    state = read(make_cache(), batch, written)
    for at, (row, own) in enumerate(zip(batch, written, strict=True)):
        assert found_places(state, at) == expected_places(row, own)


@pytest.mark.parametrize("length", [LONGEST - 1, LONGEST, LONGEST + 1, 3 * LONGEST])
def test_matches_are_capped_at_the_longest_length(length: int) -> None:
    run = list(range(FIRST, FIRST + length))
    cache = make_cache()
    state = read(cache, [[[*run, 99]]], [run])
    assert int(state.matches[0][state.ids[0] == 99]) == min(length + 1, LONGEST)
    assert int(cache(state, 100).longest) == min(length + 1, LONGEST)


@quick
@given(cases, st.integers(0, 9))
def test_reading_word_by_word_is_reading_all_at_once(case: Case, cut: int) -> None:
    batch, written = case
    cache = make_cache()
    at_once = read(cache, batch, written)
    tokens = torch.tensor([[BOS_ID, *each] for each in written])
    bit_by_bit = cache.begin(places(batch))
    for piece in (tokens[:, :cut], *torch.split(tokens[:, cut:], 1, 1)):
        bit_by_bit = cache.read(bit_by_bit, piece)
    for name in ("ids", "kinds", "matches"):
        assert torch.equal(getattr(at_once, name), getattr(bit_by_bit, name))


@quick
@given(cases, st.integers(0, 5))
def test_probabilities_are_normalised_position_weights(case: Case, seed: int) -> None:
    batch, written = case
    cache = make_cache(seed)
    predicted = cache(read(cache, batch, written), WIDTH)
    for at, (row, own) in enumerate(zip(batch, written, strict=True)):
        expected = [0.0] * WIDTH
        known = expected_places(row, own)
        for word, kind, matches in known:
            expected[word] += math.exp(float(cache.lengths[matches] + cache.ranks[kind]))
        total = math.fsum(expected)
        assert (total > 0) == bool(row or own)
        probs = [each / (total or 1) for each in expected]
        torch.testing.assert_close(predicted.probs[at], torch.tensor(probs))
        assert float(predicted.probs[at].sum()) == pytest.approx(float(total > 0), abs=1e-5)
        assert int(predicted.longest[at]) == max((each[2] for each in known), default=0)


def test_ranks_beyond_the_last_bound_weigh_alike() -> None:
    state = NgramCache().begin(places([[[FIRST]] * 50]))
    kinds = state.kinds[0].view(50, 3)[:, 1].tolist()
    counts = [kinds.count(kind) for kind in range(KINDS)]
    assert counts == [1, 2, 7, 20, 20, 0]  # the last is that of the output so far
    assert kinds == sorted(kinds)


@quick
@given(cases, st.data())
def test_reordered_rows_continue_as_they_would_alone(case: Case, data: st.DataObject) -> None:
    batch, written = case
    cache = make_cache()
    chosen = data.draw(st.lists(st.integers(0, len(batch) - 1), min_size=1, max_size=4))
    selected = read(cache, batch, written).reorder(torch.tensor(chosen))
    later = torch.full((len(chosen), 1), FIRST)
    anew = read(cache, [batch[at] for at in chosen], [written[at] for at in chosen])
    for one, other in ((selected, anew), (cache.read(selected, later), cache.read(anew, later))):
        torch.testing.assert_close(cache(one, WIDTH).probs, cache(other, WIDTH).probs)
        assert torch.equal(cache(one, WIDTH).longest, cache(other, WIDTH).longest)


def expectations(count: int, seed: int) -> Tensor:
    """Return log-probabilities of an editor, some of them -inf: (R, W)."""
    generator = torch.Generator().manual_seed(seed)
    scores = 3 * torch.randn(count, WIDTH, generator=generator)
    impossible = torch.rand(count, WIDTH, generator=generator) < 0.3
    impossible[:, 0] = False
    return scores.masked_fill(impossible, -torch.inf).log_softmax(1)


@quick
@given(cases, st.integers(0, 5), st.sampled_from([0.0, -50.0, 50.0, 500.0]))
def test_the_mixture_is_a_distribution_between_the_two(case: Case, seed: int, pull: float) -> None:
    batch, written = case
    cache = make_cache(seed)
    cache.shares.add_(pull)
    state, log_probs = read(cache, batch, written), expectations(len(batch), seed)
    mixed, predicted = cache.mix(log_probs, state).exp(), cache(state, WIDTH)
    torch.testing.assert_close(mixed.sum(1), torch.ones(len(batch)), atol=1e-5, rtol=0)
    share = cache.share(predicted, evidence_of(log_probs, predicted))[:, None]
    expected = (1 - share) * log_probs.exp() + share * predicted.probs
    torch.testing.assert_close(mixed, expected, atol=1e-5, rtol=0)
    is_empty = torch.tensor([not (row or own) for row, own in zip(batch, written, strict=True)])
    # up to rounding, since the mixture is a logarithm
    torch.testing.assert_close(mixed[is_empty], log_probs[is_empty].exp(), atol=1e-6, rtol=1e-5)


@quick
@given(cases)
def test_the_rows_of_a_batch_do_not_influence_each_other(case: Case) -> None:
    batch, written = case
    cache = make_cache()
    log_probs = expectations(len(batch), 0)
    together = cache.mix(log_probs, read(cache, batch, written))
    for at in range(len(batch)):
        alone = read(cache, batch[at : at + 1], written[at : at + 1])
        expected = cache.mix(log_probs[at : at + 1], alone)
        torch.testing.assert_close(together[at : at + 1].exp(), expected.exp())


def test_a_word_outside_the_output_vocabulary_is_predicted_once_it_is_in_the_prefix() -> None:
    cache, word = make_cache(), WIDTH - 1
    log_probs = expectations(1, 0)
    log_probs[:, word] = -torch.inf
    before = cache.mix(log_probs, read(cache, [[]], [[FIRST, FIRST + 1]]))
    after = cache.mix(log_probs, read(cache, [[]], [[FIRST, word, FIRST]]))
    assert before[0, word] == -torch.inf
    assert after[0, word] > -torch.inf


def test_longer_matches_weigh_more_before_training() -> None:
    cache = NgramCache().requires_grad_(False)
    a, b, c, d = range(FIRST, FIRST + 4)
    predicted = cache(read(cache, [[[a, b, c], [b, d]]], [[a, b]]), WIDTH)
    assert predicted.probs[0, c] > predicted.probs[0, d] > predicted.probs[0, a]
    evidence = torch.zeros(LONGEST + 1, len(EVIDENCE))
    assert torch.equal(cache.gate(torch.arange(LONGEST + 1), evidence), torch.full((17,), 0.5))


def test_the_null_cache_leaves_the_editor_unchanged() -> None:
    cache, log_probs = NoCache(), expectations(2, 0)
    state = cache.begin(places([[[FIRST]], []]))
    assert cache.read(state, torch.tensor([[BOS_ID], [BOS_ID]])) is state
    assert cache.mix(log_probs, state) is log_probs
