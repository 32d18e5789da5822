"""Completion lengths, checked against the definition read out loud."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from redraft.metrics.completion import (
    completion_lengths,
    completion_metrics,
    completion_metrics_paper,
)


def length_from(hits: list[bool], position: int) -> int:
    """The number of successive hits from a position on, counted one by one."""
    count = 0
    while position + count < len(hits) and hits[position + count]:
        count += 1
    return count


@given(st.lists(st.booleans(), max_size=40))
def test_a_length_is_the_number_of_successive_hits_from_its_position(hits: list[bool]) -> None:
    found = completion_lengths(np.array(hits, np.bool_))
    assert found.tolist() == [length_from(hits, position) for position in range(len(hits))]


def test_average_and_longest_at_every_list_size() -> None:
    ranks = np.array([0, 4, 0, 99, 9])
    found = completion_metrics([ranks])
    assert found["avg_1"] == [(1 + 0 + 1 + 0 + 0) / 5]
    assert found["avg_5"] == [(3 + 2 + 1 + 0 + 0) / 5]
    assert found["avg_10"] == [(3 + 2 + 1 + 0 + 1) / 5]
    assert [found[f"longest_{k}"][0] for k in (1, 5, 10)] == [1, 3, 3]


def test_the_paper_counts_one_rank_more_and_averages_over_hits() -> None:
    ranks = np.array([1, 2, 0, 99, 10])
    found = completion_metrics_paper([ranks])
    assert found["avg_1_paper"] == [1]  # hits at 0 and 2, each of length 1
    assert found["avg_10_paper"] == [(3 + 2 + 1 + 1) / 4]
    assert found["longest_10_paper"] == [3]


def test_the_paper_takes_the_first_five_hundred_functions() -> None:
    assert len(completion_metrics_paper([np.array([0])] * 501)["avg_1_paper"]) == 500
    assert len(completion_metrics([np.array([0])] * 501)["avg_1"]) == 501


def test_a_function_without_hits_or_tokens_counts_as_nothing() -> None:
    functions = [np.array([99, 99]), np.array([], np.int64)]
    for found in (completion_metrics(functions), completion_metrics_paper(functions)):
        assert all(values == [0, 0] for values in found.values())
