"""All metrics together, and the rows of an evaluation."""

import numpy as np
import pytest

from redraft.errors import PairsError
from redraft.metrics.evaluation import Evaluation
from redraft.metrics.scores import score, score_completions
from redraft.types import Candidate, Example, Prototype

REFERENCES = ["x = f(1, 2)", "y = g(a, b)", "return [z]"]


def test_perfect_outputs_score_a_hundred() -> None:
    scores = score(REFERENCES, REFERENCES)
    names = ("bleu_yin", "bleu_paper", "bleu_corpus", "exact", "exact_paper", "parses")
    assert [scores.metrics[name] for name in names] == pytest.approx([100] * 6)
    assert scores.notes["language"] == "python"


def test_missing_outputs_score_zero_and_count() -> None:
    scores = score(REFERENCES, [*REFERENCES[:2], None])
    assert scores.metrics["exact"] == pytest.approx(200 / 3)
    assert scores.n == 3


def test_exact_match_is_also_given_on_what_is_not_in_train() -> None:
    scores = score(REFERENCES, [*REFERENCES[:2], "wrong"], train_outputs={REFERENCES[0]})
    assert scores.metrics["exact_unseen"] == pytest.approx(50)
    assert scores.notes["n_unseen"] == 2
    assert scores.notes["share_in_train"] == pytest.approx(100 / 3)


def test_without_an_unseen_output_there_is_no_exact_unseen_score() -> None:
    assert "exact_unseen" not in score(REFERENCES, REFERENCES, train_outputs=REFERENCES).metrics


def test_text_has_no_parses_metric() -> None:
    scores = score(["SELECT a FROM b"], ["SELECT a FROM b"])
    assert "parses" not in scores.metrics
    assert scores.metrics["exact"] == 100


def test_every_metric_lies_in_its_interval() -> None:
    scores = score(REFERENCES, [REFERENCES[0], REFERENCES[0], None], train_outputs=set())
    assert set(scores.interval) == set(scores.metrics)
    for name, (low, high) in scores.interval.items():
        assert low <= scores.metrics[name] <= high


def test_unequal_numbers_are_an_error() -> None:
    with pytest.raises(PairsError, match="1 outputs for 3 references"):
        score(REFERENCES, ["x"])
    with pytest.raises(PairsError, match="nothing to score"):
        score([], [])


def test_completions_are_scored_in_both_readings() -> None:
    scores = score_completions([np.array([0, 0, 7]), np.array([1, 0])])
    assert scores.metrics["avg_1"] == pytest.approx((1 + 0.5) / 2)
    assert scores.metrics["longest_10"] == pytest.approx(2.5)
    assert {"avg_1_paper", "longest_5_paper"} < set(scores.metrics)
    with pytest.raises(PairsError, match="at least one function"):
        score_completions([])


def test_an_evaluation_has_a_row_for_every_example() -> None:
    examples = [Example({"text": "a"}, "f(1)"), Example({"text": "b"}, "g(2)", {"file": "m.py"})]
    prototype = Prototype(Example({"text": "aa"}, "f(1)"), 0.25)
    evaluation = Evaluation.of(examples, [[Candidate("f(1)", -0.25, prototype)], []])
    first, second = evaluation.rows()
    assert first["x"] == "a"
    assert first["prototype"] == {"distance": 0.25, "x": "aa", "y": "f(1)"}
    assert first["scores"]["exact"] == 1
    assert second["output"] is None
    assert second["meta"] == {"file": "m.py"}
    assert second["scores"]["bleu_yin"] == 0
