"""Reliability against SciPy and against plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from redraft.metrics.calibration import ANSWERS_A_BIN, MAX_BINS, Abstention, Calibration, Share
from redraft.metrics.evaluation import Evaluation
from redraft.types import Candidate, Example
from tests.reports import evaluation_of, rated

Pairs = list[tuple[float, bool]]

pairs_lists = st.lists(
    st.tuples(st.floats(0.001, 0.999) | st.sampled_from([0.2, 0.5, 0.9]), st.booleans()),
    min_size=1,
    max_size=150,
)


def calibration_of(pairs: Pairs, *, examples: int | None = None) -> Calibration:
    pairs = sorted(pairs, key=lambda pair: pair[0])
    confidences, is_right = zip(*pairs, strict=True)
    return Calibration(
        np.array(confidences, np.float64), np.array(is_right, np.bool_), examples or len(pairs)
    )


def honest(size: int, seed: int = 0) -> Calibration:
    """Answers that are right just as often as their confidences say."""
    generator = np.random.default_rng(seed)
    confidences = generator.random(size)
    is_right = generator.random(size) < confidences
    return calibration_of(list(zip(confidences.tolist(), is_right.tolist(), strict=True)))


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_is_wilsons(counts: tuple[int, int]) -> None:
    share = Share(*counts)
    expected = binomtest(*counts).proportion_ci(method="wilson")
    assert share.interval == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert 0 <= share.interval[0] <= share.rate <= share.interval[1] <= 1


@given(pairs_lists)
@settings(deadline=None)
def test_the_bins_hold_every_answer_once_and_ties_together(pairs: Pairs) -> None:
    calibration = calibration_of(pairs)
    bins = calibration.bins
    assert sum(each.share.n for each in bins) == len(pairs)
    assert sum(each.share.right for each in bins) == sum(right for _, right in pairs)
    assert 1 <= len(bins) <= MAX_BINS
    assert len(bins) == 1 or min(each.share.n for each in bins) >= ANSWERS_A_BIN
    ends = np.cumsum([each.share.n for each in bins])[:-1]
    below, above = calibration.confidences[ends - 1], calibration.confidences[ends]
    assert (below < above).all()
    means = [each.confidence for each in bins]
    assert means == sorted(means)


@pytest.mark.parametrize("size", [1, 9, 10, 19, 20, 57, 100, 393])
def test_without_ties_the_bins_have_about_equal_counts(size: int) -> None:
    counts = [each.share.n for each in honest(size).bins]
    assert len(counts) == min(MAX_BINS, max(1, size // ANSWERS_A_BIN))
    assert max(counts) - min(counts) <= 1


def test_figures_known_from_a_calculation_by_hand() -> None:
    pairs = [(0.2, False)] * 9 + [(0.2, True)] + [(0.8, True)] * 9 + [(0.8, False)]
    calibration = calibration_of(pairs, examples=40)
    assert [(round(each.confidence, 9), each.share) for each in calibration.bins] == [
        (0.2, Share(1, 10)),
        (0.8, Share(9, 10)),
    ]
    assert calibration.expected_error == pytest.approx(0.1)
    assert calibration.brier == pytest.approx((9 * 0.04 + 0.64) / 10)
    assert calibration.brier_of_rate == pytest.approx(0.25)
    assert calibration.curve == (
        Abstention(0.2, 0.5, Share(10, 20)),
        Abstention(0.8, 0.25, Share(9, 10)),
    )


@given(pairs_lists)
@settings(deadline=None)
def test_the_error_is_the_mean_gap_of_the_bins(pairs: Pairs) -> None:
    calibration = calibration_of(pairs)
    gaps = [abs(each.confidence - each.share.rate) * each.share.n for each in calibration.bins]
    assert calibration.expected_error == pytest.approx(sum(gaps) / len(pairs))
    assert 0 <= calibration.brier <= 1


def test_honest_confidences_have_the_error_of_chance_and_dishonest_ones_more() -> None:
    errors = [honest(300, seed).expected_error for seed in range(30)]
    assert np.mean(errors) == pytest.approx(honest(300).chance_error, rel=0.15)
    truth = honest(300)
    boasting = Calibration(np.sqrt(truth.confidences), truth.is_right, 300)
    assert boasting.expected_error > 3 * boasting.chance_error
    assert boasting.brier > truth.brier
    assert honest(20_000).expected_error < 0.01


@given(pairs_lists, st.floats(0, 1))
@settings(deadline=None)
def test_abstaining_keeps_the_answers_at_or_above_the_threshold(
    pairs: Pairs, threshold: float
) -> None:
    calibration = calibration_of(pairs, examples=200)
    kept = [right for confidence, right in pairs if confidence >= threshold]
    left = calibration.at(threshold)
    if not kept:
        assert left is None
        return
    expected = Abstention(threshold, len(kept) / 200, Share(sum(kept), len(kept)))
    assert left == expected
    for step in calibration.curve:
        assert calibration.at(step.threshold) == step
    assert len(calibration.curve) == len({confidence for confidence, _ in pairs})
    covered = [step.coverage for step in calibration.curve]
    assert covered == sorted(covered, reverse=True)


def test_only_answers_with_a_confidence_are_judged() -> None:
    evaluation = rated([0.9, None, 0.3, 0.6], [True, True, False, True])
    calibration = Calibration.of(evaluation)
    assert calibration is not None
    assert calibration.confidences.tolist() == [0.3, 0.6, 0.9]
    assert calibration.is_right.tolist() == [False, True, True]
    assert (calibration.n, calibration.examples) == (3, 4)
    assert calibration.curve[0].coverage == 0.75


def test_without_a_confidence_there_is_no_calibration() -> None:
    assert Calibration.of(evaluation_of(5)) is None
    unanswered = Evaluation.of([Example({"text": "x"}, "y")] * 2, [[], [Candidate("y", 0, None)]])
    assert Calibration.of(unanswered) is None
