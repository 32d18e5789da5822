"""How well an editor foresees the next token of a known output, from the true ones before it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from redraft.data.example import Example
from redraft.data.vocabulary import END_NUMBER
from redraft.editing.known_outputs import batches, follow
from redraft.editing.neural_draft import BARRED
from redraft.editing.neural_editor import BATCH, NeuralEditor
from redraft.evaluation.completion import Ranks
from redraft.models.ngram_cache import NoCache
from redraft.retrieval.prototype import Prototype

NEVER = 1 << 30
"""The rank of a token that cannot come out."""

Seen = tuple[int, float, bool]
"""Of one token its rank, and of the first choice its log-probability and whether it ends a line."""


@dataclass(frozen=True)
class Foresight:
    """Of each token of an output, its end among them."""

    ranks: Ranks  # 0-based, of the true token
    first: NDArray[np.float64]  # the log-probability of the first choice
    ends: NDArray[np.bool_]  # whether the first choice was to end the line or the output


def first_choice_share(
    editor: NeuralEditor, examples: Sequence[Example], prototypes: Sequence[Sequence[Prototype]]
) -> float:
    """The share of output tokens, the ends among them, that the editor would have put first."""
    network, right, total = editor.network, 0, 0
    with torch.inference_mode():
        for asked in batches(editor, examples, prototypes, size=BATCH):
            batch = editor.batch([question.edits[0] for _, question in asked])
            state = network.encode(batch, generator=None)
            chosen = network.likeliest(*network.read(state, batch.target.ids[:, :-1]))
            mask = batch.target.mask[:, 1:]
            right += int(((chosen == batch.target.ids[:, 1:]) & mask).sum())
            total += int(mask.sum())
    return right / total


@torch.inference_mode()
def foresee(
    editor: NeuralEditor, examples: Sequence[Example], prototypes: Sequence[Sequence[Prototype]]
) -> list[Foresight]:
    """What the editor, its prototypes mixed and its cache looked up, expects of each output."""
    return foresee_by_caches(editor, [editor.cache or NoCache()], examples, prototypes)[0]


@torch.inference_mode()
def foresee_by_caches(
    editor: NeuralEditor,
    caches: Sequence[NoCache],
    examples: Sequence[Example],
    prototypes: Sequence[Sequence[Prototype]],
) -> list[list[Foresight]]:
    """The same with each of several caches in place of the editor's own, which reads for all."""
    seen: list[list[list[Seen]]] = [[[] for _ in examples] for _ in caches]
    stops = torch.tensor([END_NUMBER, editor.numbering.vocabulary.number("\n")])
    for step in follow(editor, examples, prototypes):
        for cache, own in zip(caches, seen, strict=True):
            log_probs = cache.mix(step.expected.clone(), step.cache)
            log_probs[:, list(BARRED)] = -torch.inf
            best = log_probs.max(1)
            is_stop = torch.isin(best.indices, stops.to(best.indices.device))
            figures = (step.rows, rank(log_probs, step.tokens), best.values, is_stop)
            for row, *found in zip(*(each.tolist() for each in figures), strict=True):
                own[row].append(tuple(found))
    return [[_foresight(each) for each in own] for own in seen]


def _foresight(seen: Sequence[Seen]) -> Foresight:
    ranks, first, ends = zip(*seen, strict=True)
    return Foresight(np.array(ranks, np.int64), np.array(first), np.array(ends, np.bool_))


def rank(log_probs: Tensor, tokens: Tensor) -> Tensor:
    """The rank of each row's token (R,) by its log-probabilities (R, W); equals in their order."""
    chosen = log_probs.gather(1, tokens[:, None])
    before = torch.arange(log_probs.shape[1], device=tokens.device) < tokens[:, None]
    ahead = (log_probs > chosen) | ((log_probs == chosen) & before)
    return torch.where(chosen[:, 0].isneginf(), NEVER, ahead.sum(1))
