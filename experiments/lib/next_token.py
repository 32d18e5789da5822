"""Ranks of the true tokens by an editor under teacher forcing."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from redraft.editing.forced_decoding import follow
from redraft.editing.neural import NeuralEditor
from redraft.editing.neural_session import SUPPRESSED
from redraft.metrics.completion import Ranks
from redraft.models.ngram_cache import NoCache
from redraft.text.vocabulary import EOS_ID
from redraft.types import Example, Prototype

NEVER = 1 << 30
"""The rank of a token with probability 0."""

TokenOutcome = tuple[int, float, bool]
"""Rank of the true token; log-probability of the first choice and whether it ends a line."""


@dataclass(frozen=True)
class TokenRanks:
    """Next-token results for each token of an output, including its end."""

    ranks: Ranks  # 0-based rank of the true token
    first: NDArray[np.float64]  # log-probability of the first choice
    ends: NDArray[np.bool_]  # True if the first choice ends the line or the output


@torch.inference_mode()
def predict(
    editor: NeuralEditor, examples: Sequence[Example], prototypes: Sequence[Sequence[Prototype]]
) -> list[TokenRanks]:
    """Return the token ranks of each output under the editor, with its cache if it has one."""
    return predict_by_caches(editor, [editor.cache or NoCache()], examples, prototypes)[0]


@torch.inference_mode()
def predict_by_caches(
    editor: NeuralEditor,
    caches: Sequence[NoCache],
    examples: Sequence[Example],
    prototypes: Sequence[Sequence[Prototype]],
) -> list[list[TokenRanks]]:
    """Return the token ranks with each of `caches` in place of the editor's own.

    The editor is run once for all caches.
    """
    outcomes: list[list[list[TokenOutcome]]] = [[[] for _ in examples] for _ in caches]
    eos_ids = torch.tensor([EOS_ID, editor.encoding.vocabulary.id_of("\n")])
    for step in follow(editor, examples, prototypes):
        for cache, by_row in zip(caches, outcomes, strict=True):
            log_probs = cache.mix(step.expected.clone(), step.cache)
            log_probs[:, list(SUPPRESSED)] = -torch.inf
            best = log_probs.max(1)
            is_stop = torch.isin(best.indices, eos_ids.to(best.indices.device))
            columns = (step.rows, rank(log_probs, step.tokens), best.values, is_stop)
            for row, *outcome in zip(*(column.tolist() for column in columns), strict=True):
                by_row[row].append(tuple(outcome))
    return [[_token_ranks(row) for row in by_row] for by_row in outcomes]


def _token_ranks(outcomes: Sequence[TokenOutcome]) -> TokenRanks:
    ranks, first, ends = zip(*outcomes, strict=True)
    return TokenRanks(np.array(ranks, np.int64), np.array(first), np.array(ends, np.bool_))


def rank(log_probs: Tensor, tokens: Tensor) -> Tensor:
    """Return the rank (R,) of each row's token by log-probabilities (R, V); ties rank by id."""
    chosen = log_probs.gather(1, tokens[:, None])
    before = torch.arange(log_probs.shape[1], device=tokens.device) < tokens[:, None]
    ahead = (log_probs > chosen) | ((log_probs == chosen) & before)
    return torch.where(chosen[:, 0].isneginf(), NEVER, ahead.sum(1))
