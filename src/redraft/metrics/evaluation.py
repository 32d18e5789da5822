"""The evaluation of a model on examples: answers, per-example rows and scores."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from redraft.metrics.bleu import bleu_yin
from redraft.metrics.exact_match import Language, is_exact
from redraft.metrics.scores import Scores, score
from redraft.types import Candidate, Example


@dataclass(frozen=True)
class Baseline:
    """What retrieval alone reaches, without an edit: the nearest stored outputs as answers."""

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

    def rows(self) -> list[dict[str, Any]]:
        """Return one JSON object per example: the pair, the answer with its prototype, scores."""
        rows = []
        per_example = self.scores.per_example
        for i, (example, answer) in enumerate(zip(self.examples, self.answers, strict=True)):
            scores = {name: round(values[i], 6) for name, values in per_example.items()}
            answered = answer.to_json() if answer else {"output": None, "prototype": None}
            rows.append({"row": i + 1, **example.to_json(), **answered, "scores": scores})
        return rows
