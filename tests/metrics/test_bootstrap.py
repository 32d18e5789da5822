"""Intervals behave as intervals, and agree with SciPy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from redraft.metrics.bootstrap import bootstrap, mean_interval

VALUES = np.random.default_rng(7).beta(2, 5, size=66)


def test_the_interval_of_a_mean_agrees_with_scipy() -> None:
    expected = stats.bootstrap(
        (VALUES,), np.mean, method="percentile", n_resamples=20_000, random_state=1
    ).confidence_interval
    assert mean_interval(VALUES) == pytest.approx((expected.low, expected.high), abs=0.005)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_an_interval_holds_within_the_values(values: list[float]) -> None:
    low, high = mean_interval(values)
    assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9


def test_the_same_values_give_the_same_interval() -> None:
    assert mean_interval(VALUES) == mean_interval(VALUES)


def test_more_examples_give_a_narrower_interval() -> None:
    narrow, wide = mean_interval(np.tile(VALUES, 4)), mean_interval(VALUES)
    assert narrow[1] - narrow[0] < 0.7 * (wide[1] - wide[0])


def test_a_large_set_is_resampled_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = bootstrap(VALUES[:, None], lambda sums: sums[:, 0])
    monkeypatch.setattr("redraft.metrics.bootstrap._CELLS", 500)
    assert bootstrap(VALUES[:, None], lambda sums: sums[:, 0]) == pytest.approx(whole)
