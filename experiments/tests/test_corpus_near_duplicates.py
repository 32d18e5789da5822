"""MinHash estimates the true similarity, finds what is alike, and is the same everywhere."""

import random
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.corpus.near_duplicates import (
    BUCKET,
    candidates,
    near_duplicates,
    nearest_similarities,
    signatures,
    similarity,
)

bodies = st.lists(st.sampled_from(["return", "self", *".x()=+y[]01"]), max_size=30)


def words(count: int, *, seed: int) -> list[str]:
    return [f"w{random.Random(f'{seed} {at}').randrange(10**6)}" for at in range(count)]


def changed(tokens: list[str], count: int, *, seed: int) -> list[str]:
    """The tokens with some of them replaced."""
    places = random.Random(seed).sample(range(len(tokens)), count)
    return [f"new{at}" if at in places else token for at, token in enumerate(tokens)]


def pairs_of(tokens: list[str]) -> set[tuple[str, str]]:
    return set(pairwise(["", *tokens, "\n"]))


def jaccard(left: list[str], right: list[str]) -> float:
    one, other = pairs_of(left), pairs_of(right)
    return len(one & other) / len(one | other)


@given(left=bodies, right=bodies)
def test_the_estimate_is_near_the_true_jaccard_similarity(
    left: list[str], right: list[str]
) -> None:
    one, other = signatures([left, right], permutations=1024)
    # six standard deviations of a share of 1,024
    assert abs(np.mean(one == other) - jaccard(left, right)) < 6 * 0.5 / 1024**0.5


@given(rows=st.lists(bodies, max_size=6))
def test_a_signature_depends_on_its_own_tokens_alone(rows: list[list[str]]) -> None:
    together = signatures(rows)
    assert together.shape == (len(rows), 128)
    for row, tokens in enumerate(rows):
        assert (signatures([tokens])[0] == together[row]).all()


def test_another_process_gives_the_same_signatures() -> None:
    code = (
        "from experiments.corpus.near_duplicates import signatures\n"
        "print(signatures([['return', 'größe'], []]).tobytes().hex())"
    )
    runs = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
        for _ in range(2)
    }
    assert runs == {signatures([["return", "größe"], []]).tobytes().hex().encode() + b"\n"}


def test_bodies_of_similarity_nine_tenths_are_found_with_high_probability() -> None:
    originals = [words(40, seed=seed) for seed in range(300)]
    near = [changed(tokens, 4, seed=seed) for seed, tokens in enumerate(originals)]
    assert all(similarity(*pair) == 0.9 for pair in zip(originals, near, strict=True))
    found = candidates(signatures(near), signatures(originals), rows=4)
    hit = np.unique(found.left[found.left == found.right])
    assert len(hit) >= 290
    assert len(found.left) == len(hit)  # and nothing else is


def test_bodies_of_similarity_seven_tenths_are_found_by_narrow_bands() -> None:
    originals = [words(40, seed=seed) for seed in range(300)]
    near = [changed(tokens, 12, seed=seed) for seed, tokens in enumerate(originals)]
    best = nearest_similarities(near, originals, least=0.7)
    assert sum(found == pytest.approx(0.7) for found in best) >= 290


@given(rows=st.lists(bodies, min_size=1, max_size=12))
@settings(max_examples=50)
def test_equal_rows_are_always_candidates_and_each_pair_comes_once(rows: list[list[str]]) -> None:
    signed = signatures(rows)
    found = candidates(signed, signed, rows=4)
    pairs = list(zip(found.left.tolist(), found.right.tolist(), strict=True))
    assert len(pairs) == len(set(pairs))
    for left, tokens in enumerate(rows):
        for right, others in enumerate(rows):
            if tokens == others:
                assert (left, right) in pairs


def test_a_crowded_bucket_is_paired_with_its_first_rows() -> None:
    signed = signatures([["same", "body"]] * (BUCKET + 50))
    found = candidates(signed, signed, rows=4)
    assert set(found.right.tolist()) == set(range(BUCKET))
    assert set(found.left.tolist()) == set(range(BUCKET + 50))


def test_no_rows_have_no_candidates() -> None:
    none, one = signatures([]), signatures([["a"]])
    for left, right in [(none, none), (none, one), (one, none)]:
        assert len(candidates(left, right, rows=4).left) == 0


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("a b c d", "a b c d", 1.0),
        ("a b c d", "a x c d", 0.75),
        ("a b c d", "d c b a", 0.25),
        ("a b", "a b c d", 2 * 2 / 6),
        ("a", "b", 0.0),
    ],
)
def test_similarity_is_the_share_of_tokens_in_common_order(
    left: str, right: str, expected: float
) -> None:
    assert similarity(left.split(), right.split()) == pytest.approx(expected)


def test_near_duplicates_leave_one_of_each_kind() -> None:
    kinds = [words(40, seed=seed) for seed in range(5)]
    rows = [changed(tokens, count, seed=count) for count in range(3) for tokens in kinds]
    assert near_duplicates(rows, threshold=0.9) == set(range(5, 15))
    assert near_duplicates(rows, threshold=1.0) == set()
    assert near_duplicates([], threshold=0.9) == set()


@given(rows=st.lists(bodies, max_size=12))
@settings(max_examples=50)
def test_every_dropped_row_resembles_a_kept_one(rows: list[list[str]]) -> None:
    dropped = near_duplicates(rows, threshold=0.9)
    kept = set(range(len(rows))) - dropped
    for row in dropped:
        assert any(similarity(rows[row], rows[k]) >= 0.9 for k in kept if k < row)


def test_the_nearest_is_found_and_what_is_far_counts_as_nothing() -> None:
    known = [words(40, seed=seed) for seed in range(20)]
    asked = [changed(known[3], 2, seed=0), known[7], words(40, seed=99)]
    assert nearest_similarities(asked, known, least=0.7) == [0.95, 1.0, 0.0]
    assert nearest_similarities(asked, [], least=0.7) == [0.0, 0.0, 0.0]
    assert nearest_similarities([], known, least=0.7) == []
