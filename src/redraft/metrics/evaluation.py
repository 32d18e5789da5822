"""The evaluation of a model on examples: answers, per-example rows and scores."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from redraft.metrics.exact_match import Language
from redraft.metrics.scores import Scores, score
from redraft.types import Candidate, Example


@dataclass(frozen=True)
class Evaluation:
    """Examples, the best candidate for each (or None), and the scores."""

    examples: Sequence[Example]
    answers: Sequence[Candidate | None]
    scores: Scores

    @classmethod
    def of(
        cls,
        examples: Sequence[Example],
        predictions: Sequence[Sequence[Candidate]],
        *,
        train_outputs: Collection[str] | None = None,
        language: Language | None = None,
    ) -> "Evaluation":
        """Evaluate the first candidate of each prediction."""
        answers = [ranked[0] if ranked else None for ranked in predictions]
        scores = score(
            [example.y for example in examples],
            [answer.output if answer else None for answer in answers],
            train_outputs=train_outputs,
            language=language,
        )
        return cls(examples, answers, scores)

    def rows(self) -> list[dict[str, Any]]:
        """Return one JSON object per example: the pair, the answer with its prototype, scores."""
        rows = []
        per_example = self.scores.per_example
        for i, (example, answer) in enumerate(zip(self.examples, self.answers, strict=True)):
            scores = {name: round(values[i], 6) for name, values in per_example.items()}
            answered = answer.to_json() if answer else {"output": None, "prototype": None}
            rows.append({"row": i + 1, **example.to_json(), **answered, "scores": scores})
        return rows
