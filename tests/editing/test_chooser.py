"""The chooser: a conditional logit model, checked against its definition and a simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from redraft.editing.chooser import PENALTY, Chooser, Question, Weights


def simulated(seed: int, count: int = 300) -> tuple[list[Question], np.ndarray]:
    """Questions whose right alternative is drawn from a known model with a zero for none."""
    rng = np.random.default_rng(seed)
    true = np.array([1.5, -1.0])
    questions = []
    for _ in range(count):
        features = rng.normal(size=(rng.integers(1, 6), 2))
        scores = np.append(features @ true, 0.0)
        probs = np.exp(scores - logsumexp(scores))
        drawn = rng.choice(len(probs), p=probs)
        is_right = np.arange(len(features)) == drawn
        questions.append(Question(features, rng.uniform(size=1), is_right))
    return questions, true


def test_the_weights_of_a_simulation_are_recovered() -> None:
    questions, true = simulated(0, 2000)
    weights = Weights.fit(questions)
    assert weights.weight / weights.scale == pytest.approx(true, abs=0.15)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000))
def test_probabilities_and_that_of_none_sum_to_one(seed: int) -> None:
    questions, _ = simulated(seed, 20)
    weights = Weights.fit(questions)
    for question in questions:
        probs = weights.probabilities(question.proposals, question.context)
        scores = ((question.proposals - weights.mean) / weights.scale) @ weights.weight
        none = float(np.append(1.0, question.context) @ weights.none_weight)
        expected = np.exp(scores - logsumexp(np.append(scores, none)))
        assert probs == pytest.approx(expected)
        assert (probs > 0).all()
        assert probs.sum() < 1


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000))
def test_no_other_weights_are_likelier(seed: int) -> None:
    questions, _ = simulated(seed, 40)
    fitted = Weights.fit(questions)

    def loss(weights: Weights) -> float:
        values = np.append(weights.weight, weights.none_weight[1:])
        total = PENALTY / 2 * float(values @ values)
        for question in questions:
            probs = weights.probabilities(question.proposals, question.context)
            right = probs[question.is_right].sum() if question.is_right.any() else 1 - probs.sum()
            total -= float(np.log(right))
        return total

    rng = np.random.default_rng(seed)
    for _ in range(10):
        shifted = Weights(
            fitted.mean,
            fitted.scale,
            fitted.weight + 0.05 * rng.normal(size=fitted.weight.shape),
            fitted.none_weight + 0.05 * rng.normal(size=fitted.none_weight.shape),
        )
        assert loss(shifted) >= loss(fitted) - 1e-3


def test_a_proposer_that_is_better_on_held_out_questions_is_preferred() -> None:
    rng = np.random.default_rng(0)
    # the features say nothing; the first proposal is always right
    questions = [
        Question(rng.normal(size=(4, 2)), rng.uniform(size=1), np.arange(4) == 0) for _ in range(50)
    ]
    chooser = Chooser.fit(
        questions, features=("a", "b"), firsts={"first": [0] * 50, "last": [3] * 50}
    )
    assert chooser.preferred == "first"
    assert chooser.accuracy["first"] == 1.0
    assert chooser.accuracy["last"] == 0.0
    assert np.mean([right for _, right in chooser.confidence.held_out]) == 1.0
