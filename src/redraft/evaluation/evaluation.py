"""A model's answers to examples with known outputs: one row each, and the scores of all."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from redraft.data.example import Example
from redraft.editing.candidate import Candidate
from redraft.evaluation.exact_match import Language
from redraft.evaluation.scores import Scores, score


@dataclass(frozen=True)
class Evaluation:
    """Examples, the best candidate for each (or none), and the scores."""

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
        """The evaluation of ranked predictions by their first candidates."""
        answers = [ranked[0] if ranked else None for ranked in predictions]
        scores = score(
            [example.y for example in examples],
            [answer.output if answer else None for answer in answers],
            train_outputs=train_outputs,
            language=language,
        )
        return cls(examples, answers, scores)

    def rows(self) -> list[dict[str, Any]]:
        """One JSON object an example: the pair, the answer with its prototype, the scores."""
        rows = []
        for at, (example, answer) in enumerate(zip(self.examples, self.answers, strict=True)):
            each = {name: round(values[at], 6) for name, values in self.scores.per_example.items()}
            answered = answer.to_json() if answer else {"output": None, "prototype": None}
            rows.append({"row": at + 1, **example.to_json(), **answered, "scores": each})
        return rows
