"""Proposals of the chooser, of a network and of a language model, with the evidence of each.

A network and a language model propose outputs of their own, and tell how likely they find every
output, whoever proposed it. Knows neither of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from redraft.editing.chooser import log_odds
from redraft.editing.proposals import Proposal, Proposals, merge_key
from redraft.editing.templates import TemplateModel
from redraft.types import Candidate, Prototype

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


LM_FEATURES = (
    *COMBINED_FEATURES,  # all 0 of the network if there is none
    "is_lm",  # the answer of a language model
    "lm_posterior",  # log-odds of its probability, as far as it is known
)


@dataclass(frozen=True)
class Generated:
    """The candidates of a proposer, best first, and how it scores any outputs."""

    candidates: Sequence[Candidate]
    log_probs: Callable[[Sequence[str]], Sequence[float]]

    def posterior(self, outputs: Sequence[str]) -> list[float]:
        """Return the log-odds of each output's probability among `outputs`."""
        scores = np.array(self.log_probs(outputs), np.float64)
        return [log_odds(p) for p in np.exp(scores - np.logaddexp.reduce(scores)).tolist()]


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
    proposals: Proposals,
    probs: NDArray[np.float64],
    templates: TemplateModel,
    *,
    neural: Generated | None = None,
    lm: Generated | None = None,
) -> Pool:
    """Join the most probable proposals and the generated candidates, and compute their features.

    `probs` are the chooser's probabilities of all proposals. The features are `LM_FEATURES` if a
    language model takes part, otherwise `COMBINED_FEATURES`.
    """
    order = np.argsort(-probs, kind="stable")[:CHOSEN]
    pooled: dict[str, Proposal | Candidate] = {}
    odds: dict[str, float] = {}
    for row in order:
        key = merge_key(proposals.items[row].output)
        pooled[key], odds[key] = proposals.items[row], log_odds(float(probs[row]))
    ranks, lm_ranks = _join(neural, pooled), _join(lm, pooled)
    pool = list(pooled.values())
    outputs = [candidate.output for candidate in pool]
    posterior = neural.posterior(outputs) if neural else [0.0] * len(pool)
    lowest = min(odds.values(), default=0.0)
    rows = [
        [
            odds.get(key, lowest),
            key in odds,
            1 / (1 + ranks[key]) if key in ranks else 0.0,
            ranks.get(key) == 0,
            posterior[position],
            bool(proposals.invented(outputs[position], templates)),
        ]
        for position, key in enumerate(pooled)
    ]
    features: tuple[str, ...] = COMBINED_FEATURES
    if lm is not None:
        features = LM_FEATURES
        lm_posterior = lm.posterior(outputs)
        for position, key in enumerate(pooled):
            rows[position] += [lm_ranks.get(key) == 0, lm_posterior[position]]
    return Pool(pool, np.array(rows, np.float64).reshape(len(rows), len(features)))


def _join(generated: Generated | None, pooled: dict[str, Proposal | Candidate]) -> dict[str, int]:
    """Add candidates to `pooled`, and return the rank of each."""
    ranks: dict[str, int] = {}
    for rank, candidate in enumerate(generated.candidates if generated else ()):
        key = merge_key(candidate.output)
        pooled.setdefault(key, candidate)
        ranks.setdefault(key, rank)
    return ranks
