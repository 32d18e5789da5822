"""Augmentation of edit examples: swapped numbers and masked words."""

import random
import re

from hypothesis import given
from hypothesis import strategies as st

from redraft.text.edit_encoder import Tokens
from redraft.training.augmentation import numbers_in, shared_numbers, swap_numbers, words_to_mask

words = st.sampled_from(["1", "2", "12", "x2", "7y13", "card", "draw", "("])
examples = st.builds(
    Tokens,
    st.lists(st.lists(words, max_size=5), min_size=1, max_size=2),
    st.lists(words, max_size=8),
)
pools = st.lists(st.sampled_from(["1", "2", "5", "12", "13", "99"]), unique=True)


def flat(example: Tokens) -> list[str]:
    return [token for field in [*example.fields, example.output] for token in field]


def pattern(example: Tokens) -> list[str]:
    """The tokens with every number named by where it first stands."""
    names: dict[str, str] = {}
    return [
        re.sub(r"\d+", lambda found: names.setdefault(found[0], f"#{len(names)}"), token)
        for token in flat(example)
    ]


@given(examples, pools, st.integers(0, 99))
def test_numbers_are_swapped_consistently_and_stay_distinct(
    example: Tokens, pool: list[str], seed: int
) -> None:
    changed = swap_numbers(example, pool, random.Random(seed))
    assert pattern(changed) == pattern(example)
    assert [len(field) for field in changed.fields] == [len(field) for field in example.fields]
    assert numbers_in(flat(changed)) <= numbers_in(flat(example)) | set(pool)


@given(examples, pools, st.integers(0, 99))
def test_only_numbers_shared_by_input_and_output_are_swapped(
    example: Tokens, pool: list[str], seed: int
) -> None:
    changed = swap_numbers(example, pool, random.Random(seed))
    kept = numbers_in(flat(example)) - shared_numbers(example)
    assert kept <= numbers_in(flat(changed))
    if not shared_numbers(example):
        assert changed == example


def test_a_pool_that_is_too_small_changes_nothing() -> None:
    example = Tokens([["1", "2"]], ["1", "2"])
    assert swap_numbers(example, ["9"], random.Random(0)) == example


def test_numbers_within_words_are_swapped() -> None:
    example = Tokens([["deal", "3"]], ["x3", "=", "3"])
    assert swap_numbers(example, ["8"], random.Random(0)) == Tokens(
        [["deal", "8"]], ["x8", "=", "8"]
    )


@given(examples, st.sets(words), st.integers(0, 99))
def test_only_rare_words_shared_by_input_and_output_are_masked(
    example: Tokens, rare: set[str], seed: int
) -> None:
    shared = {token for field in example.fields for token in field} & set(example.output)
    assert words_to_mask(example, rare, 0.0, random.Random(seed)) == set()
    assert words_to_mask(example, rare, 1.0, random.Random(seed)) == shared & rare
    assert words_to_mask(example, rare, 0.5, random.Random(seed)) <= shared & rare
