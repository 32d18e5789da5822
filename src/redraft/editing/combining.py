"""Proposals of the chooser and of a neural editor, side by side with the evidence of both.

The network proposes outputs of its own, and tells how likely it finds every output, whoever
proposed it. Knows the network by two methods only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from redraft.editing.chooser import log_odds
from redraft.editing.proposals import Proposal, Proposals, merge_key
from redraft.editing.templates import TemplateModel
from redraft.types import Candidate, Input, Prototype

CHOSEN = 8
"""Proposals of the chooser that take part, the most probable ones."""

GENERATED = 5
"""Candidates of the neural editor that take part."""

COMBINED_FEATURES = (
    "log_odds",  # by the chooser; the lowest of all for an output that no prototype proposes
    "is_proposed",
    "neural_rank",
    "is_neural_first",
    "posterior",  # log-odds of the network's probability among the outputs
    "invented",
)


class NeuralProposer(Protocol):
    """An editor that proposes outputs and scores any output."""

    def edit(
        self,
        inputs: Sequence[Input],
        prototypes: Sequence[Sequence[Prototype]],
        k: int = 1,
        *,
        generator: np.random.Generator | None = None,
    ) -> list[list[Candidate]]:
        """Return at most `k` candidates per input, best first."""

    def log_probs(
        self, x: Input, prototypes: Sequence[Prototype], outputs: Sequence[str]
    ) -> list[tuple[float, int]]:
        """Return the log-probability and the number of tokens of each output."""


@dataclass(frozen=True)
class Pool:
    """The outputs that take part, what they were made by, and their features."""

    candidates: list[Proposal | Candidate]
    features: NDArray[np.float64]

    @property
    def outputs(self) -> list[str]:
        """The outputs."""
        return [candidate.output for candidate in self.candidates]


def first_outputs(prototypes: Sequence[Prototype]) -> list[Prototype]:
    """Return the prototypes with different outputs, as the neural editor was trained on."""
    return list({prototype.example.y: prototype for prototype in reversed(prototypes)}.values())[
        ::-1
    ]


def pool_of(
    x: Input,
    proposals: Proposals,
    probs: NDArray[np.float64],
    generated: Sequence[Candidate],
    neural: NeuralProposer,
    templates: TemplateModel,
) -> Pool:
    """Join the most probable proposals and the generated candidates, and compute their features.

    `probs` are the chooser's probabilities of all proposals.
    """
    order = np.argsort(-probs, kind="stable")[:CHOSEN]
    pooled: dict[str, Proposal | Candidate] = {}
    odds: dict[str, float] = {}
    for row in order:
        key = merge_key(proposals.items[row].output)
        pooled[key], odds[key] = proposals.items[row], log_odds(float(probs[row]))
    ranks: dict[str, int] = {}
    for rank, candidate in enumerate(generated):
        key = merge_key(candidate.output)
        pooled.setdefault(key, candidate)
        ranks.setdefault(key, rank)
    pool = list(pooled.values())
    outputs = [candidate.output for candidate in pool]
    scored = neural.log_probs(x, first_outputs(proposals.prototypes), outputs)
    likelihoods = np.array([log_prob for log_prob, _ in scored])
    posterior = np.exp(likelihoods - np.logaddexp.reduce(likelihoods))
    lowest = min(odds.values(), default=0.0)
    rows = [
        [
            odds.get(key, lowest),
            key in odds,
            1 / (1 + ranks[key]) if key in ranks else 0.0,
            ranks.get(key) == 0,
            log_odds(float(posterior[position])),
            bool(proposals.invented(outputs[position], templates)),
        ]
        for position, key in enumerate(pooled)
    ]
    return Pool(pool, np.array(rows, np.float64).reshape(len(rows), len(COMBINED_FEATURES)))
