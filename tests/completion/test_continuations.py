"""Occurrences in similar functions, found in all of them at once."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from redraft.completion.context_tables import END, START
from redraft.completion.continuations import Occurrences, Stream, in_similar

TOKENS = st.lists(st.integers(2, 4), max_size=40)


def stream(tokens: list[int]) -> Stream:
    ids = np.asarray([START, *tokens, END], np.int32)
    return Stream(ids, np.arange(len(ids), dtype=np.int16))


@given(st.lists(TOKENS, min_size=1, max_size=5), TOKENS)
def test_similar_functions_together_match_like_each_alone(
    functions: list[list[int]], context: list[int]
) -> None:
    streams = [stream(tokens) for tokens in functions]
    probabilities = [1 / (1 + rank) for rank in range(len(streams))]
    alone = []
    for rank, (one, probability) in enumerate(zip(streams, probabilities, strict=True)):
        for found in in_similar([one], [probability], context):
            found.rank[:] = rank
            alone.append(found)
    together = in_similar(streams, probabilities, context)
    assert len(together) == bool(alone)
    for found in together:
        expected = Occurrences.join(alone)
        for name in Occurrences.__dataclass_fields__:
            assert np.array_equal(getattr(found, name), getattr(expected, name)), name


@given(TOKENS.filter(bool), TOKENS)
def test_a_match_is_as_long_as_the_equal_tokens_before_it(
    function: list[int], context: list[int]
) -> None:
    before = [START, *context][-16:]
    lengths = []
    for position in range(1, len(function) + 2):
        above = [START, *function][:position]
        equal = 0
        while equal < min(len(above), len(before)) and above[-1 - equal] == before[-1 - equal]:
            equal += 1
        lengths.append(equal)
    found = in_similar([stream(function)], [1.0], context)
    assert [one.level.tolist() for one in found] == (
        [[float(max(lengths))]] if max(lengths) else []
    )
