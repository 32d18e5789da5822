"""Fits the weights of an n-gram cache and of its gate on held-out outputs.

The position weights maximise the likelihood of the true tokens under the cache alone; the gate then
maximises it under the mixture with the editor, whose weights are frozen.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from redraft.editing.forced_decoding import follow
from redraft.editing.neural import NeuralEditor
from redraft.models.ngram_cache import KINDS, LONGEST, NgramCache, evidence_of
from redraft.types import Example, Prototype

FLOOR = 1e-4
"""Added to every probability, so that one unlikely token does not dominate the loss."""

STRENGTH = 1e-3
"""Weight of the L2 penalty towards the initial weights."""

_ITERATIONS = 100


def fit_cache(
    editor: NeuralEditor, examples: Sequence[Example], prototypes: Sequence[Sequence[Prototype]]
) -> NgramCache:
    """Fit and return an n-gram cache for `editor` on examples that it was not trained on."""
    cache = NgramCache()
    # Clones, as inference tensors cannot take part in autograd.
    counts = [count.clone() for count in _counts(editor.with_cache(cache), examples, prototypes)]
    minimise([cache.lengths, cache.ranks], lambda: _nll(cache, *counts))
    fit_gate(cache, [cache.shares, cache.evidence], editor, examples, prototypes)
    return cache


def fit_gate(
    cache: NgramCache,
    weights: Sequence[Tensor],
    editor: NeuralEditor,
    examples: Sequence[Example],
    prototypes: Sequence[Sequence[Prototype]],
) -> None:
    """Fit `weights` of the gate; the position weights stay fixed."""
    features = _gate_features(editor.with_cache(cache), cache, examples, prototypes)
    features = tuple(feature.clone() for feature in features)
    minimise(weights, lambda: _mixed_nll(cache, *features))


@torch.inference_mode()
def _counts(
    editor: NeuralEditor, examples: Sequence[Example], prototypes: Sequence[Sequence[Prototype]]
) -> tuple[Tensor, Tensor]:
    """Count cached positions per token, match length and rank bucket: (N, L, K) twice.

    The first counts the positions that hold the true token, the second all positions.
    """
    hits: list[Tensor] = []
    totals: list[Tensor] = []
    for step in follow(editor, examples, prototypes):
        cache = step.cache
        cells = cache.cells.long()
        is_hit = cache.ids == step.tokens[:, None]
        for counts, mask in ((hits, is_hit), (totals, cache.is_word)):
            table = torch.zeros(len(cells), (LONGEST + 1) * KINDS, device=cells.device)
            table.scatter_add_(1, cells, (mask & cache.is_word).float())
            counts.append(table.view(-1, LONGEST + 1, KINDS))
    return torch.cat(hits), torch.cat(totals)


def _nll(cache: NgramCache, hits: Tensor, totals: Tensor) -> Tensor:
    """Return the mean negative log-likelihood under the cache alone."""
    weights = cache.lengths.exp()[:, None] * cache.ranks.exp()
    hit, total = (hits * weights).sum((1, 2)), (totals * weights).sum((1, 2))
    return -(hit / total.clamp(min=1e-9) + FLOOR).log().mean()


@torch.inference_mode()
def _gate_features(
    editor: NeuralEditor,
    cache: NgramCache,
    examples: Sequence[Example],
    prototypes: Sequence[Sequence[Prototype]],
) -> tuple[Tensor, ...]:
    """Return per token p by the editor, p by the cache, the longest match and the evidence."""
    steps = []
    for step in follow(editor, examples, prototypes):
        predicted = cache(step.cache, step.expected.shape[1])
        tokens = step.tokens[:, None]
        steps.append(
            (
                step.expected.gather(1, tokens)[:, 0].exp(),
                predicted.probs.gather(1, tokens)[:, 0],
                predicted.longest,
                evidence_of(step.expected, predicted),
            )
        )
    return tuple(torch.cat(feature) for feature in zip(*steps, strict=True))


def _mixed_nll(
    cache: NgramCache, edited: Tensor, cached: Tensor, longest: Tensor, evidence: Tensor
) -> Tensor:
    """Return the mean negative log-likelihood under the mixture of editor and cache."""
    share = cache.gate(longest, evidence)
    return -((1 - share) * edited + share * cached + FLOOR).log().mean()


def minimise(parameters: Sequence[Tensor], nll: Callable[[], Tensor]) -> None:
    """Minimise `nll` over `parameters` in place, with an L2 penalty on their change."""
    initial = [parameter.detach().clone() for parameter in parameters]
    optimizer = torch.optim.LBFGS(parameters, max_iter=_ITERATIONS, line_search_fn="strong_wolfe")

    def closure() -> float:
        optimizer.zero_grad()
        pairs = zip(parameters, initial, strict=True)
        penalty = sum(((parameter - start) ** 2).sum() for parameter, start in pairs)
        loss = nll() + STRENGTH * penalty
        loss.backward()  # type: ignore[no-untyped-call]
        return float(loss.detach())

    optimizer.step(closure)  # type: ignore[no-untyped-call]
