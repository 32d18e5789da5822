"""Compare the fitted curve with an optimiser, and thresholds with brute force."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize

from redraft import Example
from redraft.editing.confidence import FEATURES, Confidence, features_of_candidate
from redraft.editing.logistic import PENALTY, Curve, smoothed_targets
from redraft.errors import ModelError
from redraft.types import Candidate, Prototype, TracedToken

Rows = NDArray[np.float64]
Verdicts = NDArray[np.bool_]

seeds = st.integers(0, 10_000)


def answers(seed: int, size: int) -> tuple[Rows, Verdicts]:
    """Draw answers that are right with a probability logistic in their features."""
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(size, len(FEATURES))) * [5, 0.5, 1, 0.2] + [-8, -1, 2, 0.6]
    return rows, generator.random(size) < probability(rows)


def probability(rows: Rows) -> Rows:
    logits = (rows - [-8, -1, 2, 0.6]) @ [0.3, 1.2, -0.5, 4.0] - 0.4
    probs: Rows = 1 / (1 + np.exp(-logits))
    return probs


def test_features_have_the_values_of_their_names_and_are_finite() -> None:
    near = Prototype(Example({"text": "x"}, "y"), 0.25)
    traced = (TracedToken("a", "input"), TracedToken("b", "generated"))
    best = Candidate("ab", -6.0, near, log_prob=-6.0, provenance=traced)
    assert features_of_candidate(best) == pytest.approx([-6.0, -2.0, math.log(3), 0.8])
    without = features_of_candidate(replace(best, prototype=None))
    assert without == features_of_candidate(
        replace(best, prototype=replace(near, distance=math.inf))
    )
    assert features_of_candidate(Candidate("", 0.0, None)) == [0.0] * len(FEATURES)


@given(seeds, st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_a_confidence_is_above_0_and_below_1_for_any_features(seed: int, size: int) -> None:
    rows, is_right = answers(seed, size)
    confidence = Confidence.fit(rows, is_right)
    far = np.concatenate([rows, rows * 1e6, -rows * 1e6])
    for values in (confidence.of(far), np.array([each for each, _ in confidence.held_out])):
        assert ((values > 0) & (values < 1)).all()
    assert [right for _, right in confidence.held_out] == is_right.tolist()


@given(seeds, st.lists(st.floats(0.01, 100), min_size=8, max_size=8))
@settings(max_examples=40, deadline=None)
def test_units_and_origins_of_the_features_do_not_matter(seed: int, moved: list[float]) -> None:
    rows, is_right = answers(seed, 40)
    other = rows * moved[:4] + moved[4:]
    confidence, same = Confidence.fit(rows, is_right), Confidence.fit(other, is_right)
    np.testing.assert_allclose(same.of(other), confidence.of(rows), atol=1e-8)
    pairs = zip(same.held_out, confidence.held_out, strict=True)
    assert all(abs(one - two) < 1e-8 for (one, _), (two, _) in pairs)


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_the_order_of_the_answers_does_not_matter(seed: int) -> None:
    rows, is_right = answers(seed, 50)
    order = np.random.default_rng(seed).permutation(50)
    confidence, same = (
        Confidence.fit(rows, is_right),
        Confidence.fit(rows[order], is_right[order]),
    )
    np.testing.assert_allclose(same.of(rows), confidence.of(rows), atol=1e-9)
    held_out, other = (np.array([each for each, _ in fit.held_out]) for fit in (confidence, same))
    np.testing.assert_allclose(other, held_out[order], atol=1e-9)


@pytest.mark.parametrize("size", [5, 30, 400])
def test_the_curve_is_the_optimum_that_bfgs_finds(size: int) -> None:
    rows, is_right = answers(size, size)
    right, wrong = is_right.sum(), (~is_right).sum()
    goal = [(right + 1) / (right + 2) if each else 1 / (wrong + 2) for each in is_right]
    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0)

    def penalised(values: Rows) -> float:
        probs = 1 / (1 + np.exp(-(scaled @ values[1:] + values[0])))
        likelihood = sum(
            t * math.log(p) + (1 - t) * math.log(1 - p) for t, p in zip(goal, probs, strict=True)
        )
        return PENALTY / 2 * float(sum(values[1:] ** 2)) - float(likelihood)

    found = minimize(penalised, np.zeros(5), method="BFGS", options={"gtol": 1e-4})
    curve = Curve.fit(rows, is_right)
    np.testing.assert_allclose([curve.bias, *curve.weights], found.x, atol=1e-3)
    assert penalised(np.array([curve.bias, *curve.weights])) <= found.fun + 1e-9


@pytest.mark.parametrize("seed", range(8))
def test_rare_right_answers_far_from_the_others_are_fitted_too(seed: int) -> None:
    rows = np.random.default_rng(seed).standard_t(1, size=(2_000, 4))
    is_right = rows[:, 0] >= np.sort(rows[:, 0])[-4]
    # where the likelihood is highest, the mean confidence is the mean of the targets
    expected = smoothed_targets(is_right).mean()
    assert Confidence.fit(rows, is_right).of(rows).mean() == pytest.approx(expected, rel=1e-6)


def test_confidence_is_calibrated_on_new_answers() -> None:
    confidence = Confidence.fit(*answers(1, 2_000))
    rows, is_right = answers(2, 20_000)
    values = confidence.of(rows)
    assert np.abs(values - probability(rows)).mean() < 0.02
    parts = np.array_split(np.argsort(values), 15)
    gaps = [abs(values[part].mean() - is_right[part].mean()) for part in parts]
    assert np.mean(gaps) < 0.02
    held_out = np.array([each for each, _ in confidence.held_out])
    verdicts = np.array([right for _, right in confidence.held_out])
    assert held_out.mean() == pytest.approx(verdicts.mean(), abs=0.01)


@pytest.mark.parametrize("size", [1, 2, 30])
@pytest.mark.parametrize("verdict", [True, False])
def test_answers_that_are_all_right_or_all_wrong_give_laplaces_rate(
    size: int, *, verdict: bool
) -> None:
    rows, _ = answers(0, size)
    confidence = Confidence.fit(rows, np.full(size, verdict))
    rate = (size * verdict + 1) / (size + 2)
    np.testing.assert_allclose(confidence.of(answers(3, 10)[0]), rate, atol=1e-9)
    assert (confidence.threshold(1.0) is None) == (not verdict)


def test_separable_features_do_not_make_the_confidence_extreme() -> None:
    rows, _ = answers(0, 30)
    is_right = rows[:, 0] > -8
    values = Confidence.fit(rows, is_right).of(rows)
    assert values[is_right].min() > values[~is_right].max()
    assert values.min() > 0.001
    assert values.max() < 0.999


def test_a_constant_feature_has_weight_0() -> None:
    rows, is_right = answers(0, 60)
    rows[:, 3] = 0.1
    confidence = Confidence.fit(rows, is_right)
    assert confidence.curve.weights[3] == 0
    moved = rows + np.array([0, 0, 0, 5])
    np.testing.assert_array_equal(confidence.of(moved), confidence.of(rows))
    alike = Confidence.fit(np.ones((10, 4)), np.arange(10) < 7)
    assert alike.of(np.ones((1, 4)))[0] == pytest.approx(0.7, abs=0.05)


def test_held_out_confidence_does_not_overfit_noise() -> None:
    """Held-out confidences come from curves fitted without these answers."""
    right = 0.0
    for seed in range(40):
        generator = np.random.default_rng(seed)
        rows, is_right = generator.normal(size=(30, 4)), generator.random(30) < 0.5
        pairs = Confidence.fit(rows, is_right).held_out
        best = sorted(pairs, reverse=True)[:10]
        right += sum(verdict for _, verdict in best) / 400
    assert right < 0.56


@given(
    st.lists(st.tuples(st.sampled_from([0.1, 0.3, 0.5, 0.7, 0.9]), st.booleans()), min_size=1),
    st.one_of(st.floats(0, 1), st.sampled_from([0.5, 0.7, 0.9, 1.0])),
)
def test_the_threshold_is_the_lowest_that_reaches_the_precision(
    pairs: list[tuple[float, bool]], precision: float
) -> None:
    curve = Curve((0.0,) * 4, (1.0,) * 4, (0.0,) * 4, 0.0)
    reaching = []
    for threshold, _ in pairs:
        kept = [right for confidence, right in pairs if confidence >= threshold]
        if sum(kept) / len(kept) >= precision:
            reaching.append(threshold)
    expected = min(reaching, default=None)
    assert Confidence(curve, tuple(pairs)).threshold(precision) == expected


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_a_higher_precision_has_no_lower_threshold(seed: int) -> None:
    confidence = Confidence.fit(*answers(seed, 50))
    found = [confidence.threshold(precision) for precision in np.linspace(0, 1, 11)]
    reached = [each for each in found if each is not None]
    assert reached == sorted(reached)
    assert found[0] == min(each for each, _ in confidence.held_out)
    assert None not in found[: len(reached)]


def test_saving_and_loading_is_exact(tmp_path: Path) -> None:
    rows, is_right = answers(0, 50)
    confidence = Confidence.fit(rows, is_right)
    path = tmp_path / "confidence.json"
    confidence.save(path)
    loaded = Confidence.load(path)
    assert loaded == confidence
    np.testing.assert_array_equal(loaded.of(rows), confidence.of(rows))
    assert json.loads(path.read_text())["features"].keys() == {*FEATURES}


DAMAGE = (
    ('"bias":', '"was":'),
    ('"bias": ', '"bias": NaN, "was": '),
    ('"mean": ', '"mean": "x", "was": '),
    ('"scale": ', '"scale": 0.0, "was": '),
    ('"confidence": [', '"confidence": [1.5,'),
    ('"confidence": [', '"confidence": [0.5,'),
    ('"is_right": [', '"is_right": ["yes",'),
    ("{", "["),
)


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage[1])
def test_a_damaged_file_says_what_to_do(damage: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "confidence.json"
    Confidence.fit(*answers(0, 8)).save(path)
    path.write_text(path.read_text().replace(*damage, 1))
    with pytest.raises(ModelError) as caught:
        Confidence.load(path)
    advice = "no confidence can be read from it; copy or fit the model again"
    assert str(caught.value) == f"{path}: {advice}"


def test_a_missing_file_and_bytes_say_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "confidence.json"
    with pytest.raises(ModelError, match="copy or fit the model again"):
        Confidence.load(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelError, match="copy or fit the model again"):
        Confidence.load(path)


def test_a_confidence_over_other_features_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "confidence.json"
    Confidence.fit(*answers(0, 8)).save(path)
    path.write_text(path.read_text().replace('"nearness"', '"colour"'))
    with pytest.raises(ModelError, match=r"log_length, colour, where .*; fit the model again"):
        Confidence.load(path)


def test_features_of_the_wrong_shape_are_refused() -> None:
    rows, is_right = answers(0, 8)
    confidence = Confidence.fit(rows, is_right)
    assert confidence.of([]).shape == (0,)
    for wrong in (rows[0], rows[:, :3], rows * math.nan):
        with pytest.raises(ValueError, match="rows of 4 finite features expected"):
            confidence.of(wrong)
    for verdicts in (is_right[:7], is_right[:, None]):
        with pytest.raises(ValueError, match="do not fit"):
            Confidence.fit(rows, verdicts)
    with pytest.raises(ValueError, match="do not fit"):
        Confidence.fit([], [])
    with pytest.raises(ValueError, match="between 0 and 1, not 90"):
        confidence.threshold(90)
