"""The default editor: several editors propose, a chooser picks, and nothing retrieved is lost.

Equation 1 of the paper sums over prototypes and edits; proposing makes that sum tractable. Stored
outputs, substitutions and, if there is one, the neural editor propose. An input that is stored gets
its stored output. Values that come from nowhere are marked, and lower the confidence.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from redraft.editing.base import Editor
from redraft.editing.chooser import Chooser, answer_features
from redraft.editing.confidence import Confidence
from redraft.editing.proposals import FEATURES, Proposals, features_of, propose
from redraft.editing.session import CompletionSession, VerbatimSession
from redraft.editing.templates import TemplateModel
from redraft.editing.value_table import ValueTable
from redraft.storage.artifact import Artifact
from redraft.types import Candidate, Input, Prototype, TracedToken, normal_input

PROTOTYPES = 30
"""Prototypes that propose outputs."""

STORED_CONFIDENCE = 0.99
"""The confidence of a stored output, shared among the different outputs of equal inputs."""

INVENTED_CONFIDENCE = 0.5
"""No output with an invented value has a higher confidence."""

UNFAMILIAR_CONFIDENCE = 0.01
"""Nor any output for an input that is like no example."""

CONTEXT = ("familiarity", "certainty", "predicted")
"""Features of an input: the similarity of its nearest prototype times the share of its words that
are known, how well the prototypes agree, and the output that they agree on best."""

TABLE, TEMPLATES, CHOOSER, CONFIDENCE = (
    "values.json",
    "templates.json",
    "chooser.json",
    "confidence.json",
)


@dataclass(frozen=True)
class Ranking:
    """Proposals with their features, before anything is chosen."""

    proposals: Proposals
    features: NDArray[np.float64]

    @property
    def context(self) -> NDArray[np.float64]:
        """The features of the input, in the order of `CONTEXT`."""
        comparison = self.proposals.comparison
        return np.array(
            [
                comparison.cosine.max(initial=0.0) * self.proposals.known_share,
                comparison.certainty,
                comparison.predicted.max(initial=0.0),
            ]
        )


class ChoosingEditor(Editor):
    """Proposes the outputs of all prototypes, edited or not, and chooses among them.

    Without a chooser, for fewer pairs than can be held out, the outputs are ranked by how alike
    their templates are, and have no confidence.
    """

    name = "choosing"
    distinct_outputs = False

    def __init__(self, templates: TemplateModel, chooser: Chooser | None = None) -> None:
        self.templates = templates
        self.chooser = chooser

    @property
    def confidence(self) -> Confidence | None:
        """The calibration of the chooser; None without a chooser."""
        return None if self.chooser is None else self.chooser.confidence

    def wants(self, k: int) -> int:
        """Return the number of prototypes that propose."""
        return max(PROTOTYPES, k)

    def edit(
        self,
        inputs: Sequence[Input],
        prototypes: Sequence[Sequence[Prototype]],
        k: int = 1,
        *,
        generator: np.random.Generator | None = None,
    ) -> list[list[Candidate]]:
        """Return the candidates with the highest probability; sample them with a `generator`."""
        return [
            self._edit_one(x, retrieved, k, generator)
            for x, retrieved in zip(inputs, prototypes, strict=True)
        ]

    def rank(self, x: Input, prototypes: Sequence[Prototype]) -> Ranking:
        """Propose outputs for `x` and compute their features."""
        proposals = propose(x, prototypes, self.templates)
        return Ranking(proposals, features_of(proposals))

    def _edit_one(
        self,
        x: Input,
        prototypes: Sequence[Prototype],
        k: int,
        generator: np.random.Generator | None,
    ) -> list[Candidate]:
        stored = stored_candidates(x, prototypes) if generator is None else []
        if len(stored) >= k or not prototypes:
            return stored[:k]
        ranking = self.rank(x, prototypes)
        outputs = {candidate.output for candidate in stored}
        chosen = [
            candidate
            for candidate in self._chosen(ranking, generator)
            if candidate.output not in outputs
        ]
        return [*stored, *chosen][:k]

    def _chosen(self, ranking: Ranking, generator: np.random.Generator | None) -> list[Candidate]:
        """Return the candidates of a ranking, best first."""
        proposals, chooser = ranking.proposals, self.chooser
        if chooser is None:
            column = FEATURES.index("predicted"), FEATURES.index("cosine"), FEATURES.index("stale")
            scores = ranking.features[:, column] @ np.array([1.0, 1.0, -1.0])
            order = np.argsort(-scores, kind="stable")
            return [self._candidate(ranking, row, float(scores[row]), None) for row in order]
        probs = chooser.weights.probabilities(ranking.features, ranking.context)
        order = np.argsort(-probs, kind="stable")
        if generator is not None:  # Gumbel top-k: a sample without replacement
            noise = generator.gumbel(size=len(probs))
            order = np.argsort(-(np.log(probs + 1e-12) + noise), kind="stable")
        elif chooser.preferred is not None:
            first = proposals.first_of(chooser.preferred)
            order = np.array([first, *(row for row in order if row != first and row >= 0)])
        features = [answer_features(probs, row, ranking.context) for row in order]
        confidences = chooser.confidence.of(features)
        return [
            self._candidate(ranking, row, float(np.log(probs[row] + 1e-12)), float(confidence))
            for row, confidence in zip(order, confidences, strict=True)
        ]

    def _candidate(
        self, ranking: Ranking, row: int, score: float, confidence: float | None
    ) -> Candidate:
        """Return a proposal as a candidate, marked and with a bounded confidence."""
        proposals = ranking.proposals
        candidate = proposals.candidate(proposals.items[row])
        invented = proposals.invented(candidate.output, self.templates)
        is_familiar = self.chooser is None or bool(ranking.context[0] >= self.chooser.floor)
        if confidence is not None:
            if invented:
                confidence = min(confidence, INVENTED_CONFIDENCE)
            if not is_familiar:
                confidence = min(confidence, UNFAMILIAR_CONFIDENCE)
        return replace(
            candidate,
            score=score,
            confidence=confidence,
            invented=invented,
            is_familiar=is_familiar,
        )

    def start_session(self, x: Input, prototypes: Sequence[Prototype]) -> CompletionSession:  # noqa: ARG002
        """Return a session that completes from the aligned prototypes."""
        return VerbatimSession(prototypes)

    def save(self, folder: Path) -> None:
        """Write the values, the counts of templates, and the chooser."""
        self.templates.table.save(folder / TABLE)
        self.templates.save(folder / TEMPLATES)
        if self.chooser is not None:
            self.chooser.save(folder / CHOOSER, folder / CONFIDENCE)

    @classmethod
    def load(cls, artifact: Artifact) -> "ChoosingEditor":
        """Load the editor that `save` wrote."""
        table = ValueTable.load(artifact.path(TABLE))
        templates = TemplateModel.load(artifact.path(TEMPLATES), table)
        chooser = None
        if CHOOSER in artifact.files:
            paths = artifact.path(CHOOSER), artifact.path(CONFIDENCE)
            chooser = Chooser.load(*paths, features=FEATURES, context=len(CONTEXT))
        return cls(templates, chooser)


def stored_candidates(x: Input, prototypes: Sequence[Prototype]) -> list[Candidate]:
    """Return the stored outputs of inputs equal to `x`, newest first as they were retrieved."""
    own = normal_input(x)
    stored: dict[str, Prototype] = {}
    for prototype in prototypes:
        if normal_input(prototype.example.x) == own:
            stored.setdefault(prototype.example.y, prototype)
    return [
        Candidate(
            output,
            0.0,
            prototype,
            confidence=STORED_CONFIDENCE / len(stored),
            provenance=(TracedToken(output, "prototype"),),
        )
        for output, prototype in stored.items()
    ]
