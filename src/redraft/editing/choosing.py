"""The default editor: several editors propose, a chooser picks, and nothing retrieved is lost.

Equation 1 of the paper sums over prototypes and edits; proposing makes that sum tractable. Stored
outputs, substitutions and, if there is one, a network and a language model propose. An input that
is stored gets its stored output. Values from nowhere are marked, and lower the confidence.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from redraft.editing.base import Editor
from redraft.editing.chooser import Chooser
from redraft.editing.combining import (
    COMBINED_FEATURES,
    GENERATED,
    LM_FEATURES,
    Generated,
    Pool,
    first_outputs,
    pool_of,
)
from redraft.editing.confidence import Confidence
from redraft.editing.lm_editor import LmEditor, likelihoods
from redraft.editing.proposals import (
    FEATURES,
    Proposal,
    Proposals,
    features_of,
    propose,
    stored_candidates,
)
from redraft.editing.reranker import Reranker
from redraft.editing.session import CompletionSession, VerbatimSession
from redraft.editing.templates import TemplateModel
from redraft.editing.value_table import ValueTable
from redraft.lm.settings import LmSettings
from redraft.storage.artifact import Artifact
from redraft.storage.checks import damaged
from redraft.types import Candidate, Input, Prototype

if TYPE_CHECKING:
    from redraft.editing.neural import NeuralEditor
    from redraft.editing.sketch_editor import SketchEditor
    from redraft.lm.client import LmClient

PROTOTYPES = 30
"""Prototypes that propose outputs."""

INVENTED_CONFIDENCE = 0.5
"""No output with an invented value has a higher confidence."""

UNFAMILIAR_CONFIDENCE = 0.01
"""Nor any output for an input that is like no example."""

CONTEXT = ("familiarity", "certainty", "predicted")
"""Features of an input: the similarity of its nearest prototype times the share of its words that
are known, how well the prototypes agree, and the output that they agree on best."""

TABLE, TEMPLATES = "values.json", "templates.json"
CHOOSER, CONFIDENCE = "chooser.json", "confidence.json"
RERANKER = "reranker.json"
COMBINED, COMBINED_CONFIDENCE = "combined.json", "combined_confidence.json"
LM_CHOOSER, LM_CONFIDENCE = "lm_chooser.json", "lm_confidence.json"
NEURAL, LM = "neural", "lm"


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

    Without a chooser and its re-ranker, for fewer pairs than can be held out, the outputs are
    ranked by how alike their templates are, and have no confidence. With a neural editor a second
    chooser, `combined`, takes the first one's proposals and the network's. With a language model,
    `lm_chooser` takes those and its answer; if it does not answer, the others do without it.
    """

    name = "choosing"
    distinct_outputs = False

    def __init__(
        self,
        templates: TemplateModel,
        chooser: Chooser | None = None,
        *,
        reranker: Reranker | None = None,
        neural: "NeuralEditor | SketchEditor | None" = None,
        combined: Chooser | None = None,
        lm: LmEditor | None = None,
        lm_chooser: Chooser | None = None,
    ) -> None:
        self.templates = templates
        self.chooser = chooser
        self.reranker = reranker
        self.neural = neural
        self.combined = combined
        self.lm = lm
        self.lm_chooser = lm_chooser

    @property
    def confidence(self) -> Confidence | None:
        """The calibrated confidence of the answers; None without a chooser."""
        is_asked = self.lm is not None and self.lm.client is not None
        chooser = (self.lm_chooser if is_asked else None) or self.combined or self.chooser
        return chooser.confidence if chooser else None

    def with_neural(
        self, neural: "NeuralEditor | SketchEditor | None", combined: Chooser | None = None
    ) -> "ChoosingEditor":
        """Return an editor with a network, and with the chooser of its pools if it was judged."""
        return ChoosingEditor(
            self.templates, self.chooser, reranker=self.reranker, neural=neural, combined=combined
        )

    def with_lm(self, lm: LmEditor, lm_chooser: Chooser | None = None) -> "ChoosingEditor":
        """Return an editor whose pools have the answers of a language model."""
        return ChoosingEditor(
            self.templates,
            self.chooser,
            reranker=self.reranker,
            neural=self.neural,
            combined=self.combined,
            lm=lm,
            lm_chooser=lm_chooser,
        )

    @property
    def lm_settings(self) -> LmSettings | None:
        """The settings of the language model; None if none takes part."""
        return self.lm.settings if self.lm is not None else None

    def with_client(self, client: "LmClient | None") -> "ChoosingEditor":
        """Return an editor that asks its language model through `client`; None asks nowhere."""
        assert self.lm is not None
        return self.with_lm(self.lm.with_client(client), self.lm_chooser)

    def wants(self, k: int) -> int:
        """Return the number of prototypes that propose."""
        return max(PROTOTYPES, k, self.neural.wants(k) if self.neural else 0)

    def edit(
        self,
        inputs: Sequence[Input],
        prototypes: Sequence[Sequence[Prototype]],
        k: int = 1,
        *,
        generator: np.random.Generator | None = None,
    ) -> list[list[Candidate]]:
        """Return the candidates with the highest probability; sample them with a `generator`."""
        stored = [
            [] if generator is not None else stored_candidates(x, retrieved)
            for x, retrieved in zip(inputs, prototypes, strict=True)
        ]
        asked = [i for i, known in enumerate(stored) if len(known) < k and len(prototypes[i])]
        generated: dict[int, list[Candidate]] = {}
        if self.neural is not None and asked:
            candidates = self.neural.edit(
                [inputs[i] for i in asked],
                [first_outputs(prototypes[i]) for i in asked],
                GENERATED,
            )
            generated = dict(zip(asked, candidates, strict=True))
        for i in asked:
            outputs = {candidate.output for candidate in stored[i]}
            chosen = self.choose(inputs[i], prototypes[i], generated.get(i, []), generator)
            others = (answer for answer in chosen if answer.output not in outputs)
            stored[i] += islice(others, k - len(stored[i]))
        return [candidates[:k] for candidates in stored]

    def rank(self, x: Input, prototypes: Sequence[Prototype]) -> Ranking:
        """Propose outputs for `x` and compute their features."""
        proposals = propose(x, prototypes, self.templates)
        transfer = np.zeros(len(prototypes))
        if self.reranker is not None:
            transfer = self.reranker.score(proposals.differences)
        return Ranking(proposals, features_of(proposals, transfer))

    def pool(
        self,
        x: Input,
        ranking: Ranking,
        generated: Sequence[Candidate],
        answered: Sequence[Candidate] = (),
    ) -> Pool:
        """Join the best proposals, the network's candidates, and what a language model answered."""
        assert self.chooser is not None
        proposals = ranking.proposals
        probs = self.chooser.weights.probabilities(ranking.features, ranking.context)
        neural = lm = None
        if self.neural is not None:
            prototypes, scorer = first_outputs(proposals.prototypes), self.neural
            neural = Generated(
                generated, lambda ys: [score for score, _ in scorer.log_probs(x, prototypes, ys)]
            )
        if answered:
            lm = Generated(answered, partial(likelihoods, generated=answered))
        return pool_of(proposals, probs, self.templates, neural=neural, lm=lm)

    def choose(
        self,
        x: Input,
        prototypes: Sequence[Prototype],
        generated: Sequence[Candidate],
        generator: np.random.Generator | None = None,
    ) -> Iterator[Candidate]:
        """Yield the candidates for an input, best first; `generated` are those of the network."""
        ranking = self.rank(x, prototypes)
        proposals = ranking.proposals
        if self.chooser is None:
            columns = [FEATURES.index(name) for name in ("predicted", "cosine", "stale")]
            scores = ranking.features[:, columns] @ np.array([1.0, 1.0, -1.0])
            order = np.argsort(-scores, kind="stable")
            for row in order:
                candidate = proposals.candidate(proposals.items[row])
                yield self._marked(candidate, ranking, scores[row], None)
            return
        answered: Sequence[Candidate] = ()
        if self.lm is not None and self.lm_chooser is not None:
            answered = self.lm.propose(x, prototypes)
        candidates: Sequence[Proposal | Candidate] = proposals.items
        chooser, column = self.combined, COMBINED_FEATURES.index("is_neural_first")
        if answered:
            chooser, column = self.lm_chooser, LM_FEATURES.index("is_lm")
        if chooser is not None:
            pool = self.pool(x, ranking, generated, answered)
            candidates = pool.candidates
            first = int(pool.features[:, column].argmax())
            answers = chooser.ranked(pool.features, ranking.context, first, generator)
        else:
            first = proposals.first_of(self.chooser.preferred or "")
            answers = self.chooser.ranked(ranking.features, ranking.context, first, generator)
        for row, score, confidence in answers:
            made = candidates[row]
            candidate = proposals.candidate(made) if isinstance(made, Proposal) else made
            yield self._marked(candidate, ranking, score, confidence)

    def _marked(
        self, candidate: Candidate, ranking: Ranking, score: float, confidence: float | None
    ) -> Candidate:
        """Return a candidate with its marks and a confidence that they bound."""
        invented = ranking.proposals.invented(candidate.output, self.templates)
        is_familiar = self.chooser is None or bool(ranking.context[0] >= self.chooser.floor)
        if confidence is not None:
            if invented:
                confidence = min(confidence, INVENTED_CONFIDENCE)
            if not is_familiar:
                confidence = min(confidence, UNFAMILIAR_CONFIDENCE)
        return replace(
            candidate,
            score=float(score),
            confidence=confidence,
            invented=invented,
            is_familiar=is_familiar,
        )

    @property
    def completes(self) -> bool:
        """True if the network completes."""
        return self.neural is not None and self.neural.completes

    def start_session(self, x: Input, prototypes: Sequence[Prototype]) -> CompletionSession:
        """Return a session of the neural editor, or one that completes from the prototypes."""
        if self.neural is not None:
            return self.neural.start_session(x, first_outputs(prototypes))
        return VerbatimSession(first_outputs(prototypes))

    def save(self, folder: Path) -> None:
        """Write the values, the counts of templates, and the chooser."""
        self.templates.table.save(folder / TABLE)
        self.templates.save(folder / TEMPLATES)
        if self.chooser is not None:
            self.chooser.save(folder / CHOOSER, folder / CONFIDENCE)
        if self.reranker is not None:
            self.reranker.save(folder / RERANKER)
        if self.neural is not None:
            (folder / NEURAL).mkdir()
            self.neural.save(folder / NEURAL)
        if self.combined is not None:
            self.combined.save(folder / COMBINED, folder / COMBINED_CONFIDENCE)
        if self.lm is not None and self.lm_chooser is not None:
            (folder / LM).mkdir()
            self.lm.save(folder / LM)
            self.lm_chooser.save(folder / LM_CHOOSER, folder / LM_CONFIDENCE)

    @classmethod
    def load(cls, artifact: Artifact) -> "ChoosingEditor":
        """Load the editor that `save` wrote."""
        table = ValueTable.load(artifact.path(TABLE))
        templates = TemplateModel.load(artifact.path(TEMPLATES), table)
        chooser = reranker = None
        if CHOOSER in artifact.files:
            paths = artifact.path(CHOOSER), artifact.path(CONFIDENCE)
            chooser = Chooser.load(*paths, features=FEATURES, context=len(CONTEXT))
            reranker = Reranker.load(artifact.path(RERANKER))
        combined = _load_combined(artifact, COMBINED, COMBINED_CONFIDENCE, COMBINED_FEATURES)
        lm_chooser = _load_combined(artifact, LM_CHOOSER, LM_CONFIDENCE, LM_FEATURES)
        return cls(
            templates,
            chooser,
            reranker=reranker,
            neural=_load_network(artifact.part(NEURAL), table) if combined else None,
            combined=combined,
            lm=LmEditor.load(artifact.part(LM)) if lm_chooser else None,
            lm_chooser=lm_chooser,
        )


def _load_combined(
    artifact: Artifact, name: str, confidence: str, features: tuple[str, ...]
) -> Chooser | None:
    """Load a chooser over the proposals of the first one and others; None if there is none."""
    if name not in artifact.files:
        return None
    if CHOOSER not in artifact.files:
        raise damaged(artifact.path(name), f"it needs {CHOOSER}")
    paths = artifact.path(name), artifact.path(confidence)
    return Chooser.load(*paths, features=features, context=len(CONTEXT))


def _load_network(part: Artifact, table: ValueTable) -> "NeuralEditor | SketchEditor":
    """Load a network over sketches, or one over the pairs themselves."""
    from redraft.editing.neural import NeuralEditor
    from redraft.editing.sketch_editor import SKETCH, SketchEditor

    return SketchEditor.load(part, table) if SKETCH in part.files else NeuralEditor.load(part)
