"""Nonsense inputs: many, of many kinds, and none that the index knows."""

import re
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.messy.nonsense import KINDS, nonsense
from experiments.messy.support_pairs import stored_rows
from redraft.types import input_text

KNOWN = [input_text(row.x) for row in stored_rows(0)]


def texts(seed: int, count: int, known: list[str]) -> list[str]:
    return [input_text(example.x) for example in nonsense(seed, count, known)]


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), count=st.integers(200, 400))
def test_inputs_are_distinct_and_of_every_kind(seed: int, count: int) -> None:
    examples = nonsense(seed, count, KNOWN)
    assert len({input_text(example.x).lower() for example in examples}) == len(examples) == count
    kinds = Counter(example.meta["kind"] for example in examples)
    assert set(kinds) == set(KINDS)
    assert min(kinds.values()) >= 20


def test_inputs_are_a_function_of_the_seed() -> None:
    assert texts(1, 200, KNOWN) == texts(1, 200, KNOWN) != texts(2, 200, KNOWN)


def test_no_known_input_is_taken() -> None:
    known = texts(0, 200, [])
    others = texts(0, 200, known)
    assert not {text.lower() for text in known} & {text.lower() for text in others}


def test_neighbours_of_known_inputs_are_left_out() -> None:
    question = re.compile(r"what's the weather in \w+\?")
    seeds = range(8)
    assert any(question.fullmatch(text) for seed in seeds for text in texts(seed, 200, []))
    known = ["what's the weather in Madrid?"]
    assert not any(question.fullmatch(text) for seed in seeds for text in texts(seed, 200, known))


def test_lengths_go_from_one_character_to_a_page() -> None:
    lengths = [len(text) for text in texts(0, 240, KNOWN)]
    assert min(lengths) <= 3
    assert max(lengths) > 800


def test_some_inputs_have_words_of_the_domain() -> None:
    mixed = [
        example for example in nonsense(0, 240, KNOWN) if example.meta["kind"] == "mixed words"
    ]
    words = {word for text in KNOWN for word in text.lower().split()}
    assert sum(bool(words & set(input_text(example.x).split())) for example in mixed) > 10
