"""The weights of an n-gram cache and of its gate, learned from outputs that are held out.

First the places' weights, by the likelihood that the cache alone gives the true words; then the
gate, by that of the mixture with an editor whose weights stay.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from redraft.data.example import Example
from redraft.editing.known_outputs import follow
from redraft.editing.neural_editor import NeuralEditor
from redraft.models.ngram_cache import KINDS, LONGEST, NgramCache, evidence_of
from redraft.retrieval.prototype import Prototype

FLOOR = 1e-4
"""Of the probability that any word gets, so that one surprise does not outweigh all else."""

STRENGTH = 1e-3
"""Of the pull towards the weights that the fit begins with."""

_ITERATIONS = 100


def fit_cache(
    editor: NeuralEditor, examples: Sequence[Example], prototypes: Sequence[Sequence[Prototype]]
) -> NgramCache:
    """The cache that helps an editor most with outputs it was not trained on."""
    cache = NgramCache()
    counted = _counts(editor.with_cache(cache), examples, prototypes)
    counts = [each.clone() for each in counted]
    minimise([cache.lengths, cache.ranks], lambda: _surprise(cache, *counts))
    fit_gate(cache, [cache.shares, cache.evidence], editor, examples, prototypes)
    return cache


def fit_gate(
    cache: NgramCache,
    weights: Sequence[Tensor],
    editor: NeuralEditor,
    examples: Sequence[Example],
    prototypes: Sequence[Sequence[Prototype]],
) -> None:
    """Fit these weights of the gate; those of the places stay."""
    seen = [each.clone() for each in _seen(editor.with_cache(cache), cache, examples, prototypes)]
    minimise(weights, lambda: _mixed_surprise(cache, *seen))


@torch.inference_mode()
def _counts(
    editor: NeuralEditor, examples: Sequence[Example], prototypes: Sequence[Sequence[Prototype]]
) -> tuple[Tensor, Tensor]:
    """For each word the places of each weight: those that foresaw it, and all: (N, L, K) twice."""
    hits: list[Tensor] = []
    totals: list[Tensor] = []
    for step in follow(editor, examples, prototypes):
        cache = step.cache
        cells = cache.cells.long()
        for counts, counted in ((hits, cache.ids == step.tokens[:, None]), (totals, cache.is_word)):
            table = torch.zeros(len(cells), (LONGEST + 1) * KINDS, device=cells.device)
            table.scatter_add_(1, cells, (counted & cache.is_word).float())
            counts.append(table.view(-1, LONGEST + 1, KINDS))
    return torch.cat(hits), torch.cat(totals)


def _surprise(cache: NgramCache, hits: Tensor, totals: Tensor) -> Tensor:
    weights = cache.lengths.exp()[:, None] * cache.ranks.exp()
    found, total = (hits * weights).sum((1, 2)), (totals * weights).sum((1, 2))
    return -(found / total.clamp(min=1e-9) + FLOOR).log().mean()


@torch.inference_mode()
def _seen(
    editor: NeuralEditor,
    cache: NgramCache,
    examples: Sequence[Example],
    prototypes: Sequence[Sequence[Prototype]],
) -> tuple[Tensor, ...]:
    """Of each word its chance by the editor and by the cache, the longest match, the evidence."""
    parts = []
    for step in follow(editor, examples, prototypes):
        foreseen = cache(step.cache, step.expected.shape[1])
        tokens = step.tokens[:, None]
        parts.append(
            (
                step.expected.gather(1, tokens)[:, 0].exp(),
                foreseen.chances.gather(1, tokens)[:, 0],
                foreseen.longest,
                evidence_of(step.expected, foreseen),
            )
        )
    return tuple(torch.cat(each) for each in zip(*parts, strict=True))


def _mixed_surprise(
    cache: NgramCache, edited: Tensor, chance: Tensor, longest: Tensor, evidence: Tensor
) -> Tensor:
    share = cache.gate(longest, evidence)
    return -((1 - share) * edited + share * chance + FLOOR).log().mean()


def minimise(parameters: Sequence[Tensor], surprise: Callable[[], Tensor]) -> None:
    """Change the parameters so that the surprise is least, near to what they are."""
    begun = [each.detach().clone() for each in parameters]
    optimizer = torch.optim.LBFGS(parameters, max_iter=_ITERATIONS, line_search_fn="strong_wolfe")

    def closure() -> float:
        optimizer.zero_grad()
        pull = sum(((now - then) ** 2).sum() for now, then in zip(parameters, begun, strict=True))
        loss = surprise() + STRENGTH * pull
        loss.backward()  # type: ignore[no-untyped-call]
        return float(loss.detach())

    optimizer.step(closure)  # type: ignore[no-untyped-call]
