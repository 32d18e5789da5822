"""The evaluation of a model on examples: answers, per-example rows and scores."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from redraft.metrics.bleu import bleu_yin
from redraft.metrics.exact_match import Language, is_exact
from redraft.metrics.scores import LABELS, Scores, score
from redraft.text.html import emphasized_html, prediction_html, table_html
from redraft.types import Candidate, Example

SHOWN_WRONG = 5
"""Wrong answers that a notebook shows."""


@dataclass(frozen=True)
class Baseline:
    """Scores of retrieval alone: the nearest stored outputs as answers, unedited."""

    right: int
    metrics: Mapping[str, float]

    @classmethod
    def of(
        cls, examples: Sequence[Example], outputs: Sequence[str | None], language: Language
    ) -> "Baseline":
        """Score the nearest stored output of each example."""
        pairs = [(example.y, output) for example, output in zip(examples, outputs, strict=True)]
        is_right = [is_exact(*pair, language) for pair in pairs]
        similarity = [bleu_yin(*pair) for pair in pairs]
        means = {
            "exact": 100 * float(np.mean(is_right)),
            "bleu_yin": 100 * float(np.mean(similarity)),
        }
        return cls(sum(is_right), means)


@dataclass(frozen=True)
class Evaluation:
    """Examples, the best candidate for each (or None), the scores, and those of retrieval alone."""

    examples: Sequence[Example]
    answers: Sequence[Candidate | None]
    scores: Scores
    retrieval: Baseline | None = None

    @classmethod
    def of(
        cls,
        examples: Sequence[Example],
        predictions: Sequence[Sequence[Candidate]],
        *,
        train_outputs: Collection[str] | None = None,
        language: Language | None = None,
        nearest: Sequence[str | None] | None = None,
    ) -> "Evaluation":
        """Evaluate the first candidate of each prediction.

        `nearest` are the stored outputs that retrieval alone would answer with.
        """
        answers = [ranked[0] if ranked else None for ranked in predictions]
        scores = score(
            [example.y for example in examples],
            [answer.output if answer else None for answer in answers],
            train_outputs=train_outputs,
            language=language,
        )
        if nearest is None:
            return cls(examples, answers, scores)
        baseline = Baseline.of(examples, nearest, scores.notes["language"])
        return cls(examples, answers, scores, baseline)

    def to_json(self) -> dict[str, Any]:
        """Return the scores, and those of retrieval alone, as one JSON object."""
        scores = self.scores.to_json()
        if self.retrieval is None:
            return scores
        metrics = {name: round(value, 4) for name, value in self.retrieval.metrics.items()}
        return {**scores, "retrieval": {"right": self.retrieval.right, **metrics}}

    def _repr_html_(self) -> str:
        """Return the count of right answers, the metrics and some wrong answers for a notebook."""
        scores, alone = self.scores, self.retrieval
        heading = f"{scores.right:,} of {scores.n:,} right"
        if alone is not None:
            heading += f"; retrieval alone: {alone.right:,}"
        metrics = [
            (label, f"{scores.metrics[name]:.1f}", "{:.1f} – {:.1f}".format(*scores.interval[name]))
            for name, label in LABELS.items()
            if name in scores.metrics
        ]
        is_right = scores.per_example["exact"]
        wrong = [row for row in range(scores.n) if not is_right[row]][:SHOWN_WRONG]
        cards = "".join(
            prediction_html(self.examples[row].x, [answer] if answer else [], abstains=False)
            for row in wrong
            for answer in [self.answers[row]]
        )
        more = f"<details><summary>wrong answers</summary>{cards}</details>" if cards else ""
        table = table_html(("in per cent", "score", "95 % interval"), metrics)
        return f"{emphasized_html(heading)}{table}{more}"

    def rows(self) -> list[dict[str, Any]]:
        """Return one JSON object per example: the pair, the answer with its prototype, scores."""
        rows = []
        per_example = self.scores.per_example
        for i, (example, answer) in enumerate(zip(self.examples, self.answers, strict=True)):
            scores = {name: round(values[i], 6) for name, values in per_example.items()}
            answered = answer.to_json() if answer else {"output": None, "prototype": None}
            rows.append({"row": i + 1, **example.to_json(), **answered, "scores": scores})
        return rows
