"""The weights of a state cache, learned from outputs that are held out.

They are few, and their prior is what other data taught: some outputs are enough.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from redraft.data.example import Example
from redraft.editing.known_outputs import batches
from redraft.editing.neural_editor import NeuralEditor
from redraft.editing.remembering import remember
from redraft.models.state_cache import StateCache
from redraft.retrieval.prototype import Prototype
from redraft.training.fit_cache import FLOOR, minimise

MOST = 60
"""Held-out outputs that are looked at."""

AT_ONCE = 4

_Seen = tuple[Tensor, ...]


def fit_state_cache(
    editor: NeuralEditor, examples: Sequence[Example], prototypes: Sequence[Sequence[Prototype]]
) -> StateCache:
    """The cache that helps an editor most with outputs it was not trained on."""
    cache = StateCache()
    remembering = editor.with_cache(None).with_state_cache(cache)
    found = _seen(remembering, examples[:MOST], prototypes[:MOST])
    seen = [tuple(each.clone() for each in parts) for parts in found]
    words = sum(len(edited) for edited, *_ in seen)

    def surprise() -> Tensor:
        return torch.stack([_surprise(cache, *each) for each in seen]).sum() / words

    if words:
        minimise([cache.sharpness, cache.rank, cache.share, cache.doubt], surprise)
    return cache.requires_grad_(False)


@torch.inference_mode()
def _seen(
    editor: NeuralEditor, examples: Sequence[Example], prototypes: Sequence[Sequence[Prototype]]
) -> list[_Seen]:
    """Of each output: its words' chances by the editor, how sure that is, and what is remembered.

    That is the likeness (T, S) of its states to those of the remembered words, which of these
    are the words that came (T, S), their numbers and their ranks (S,). An output for which
    nothing is remembered says nothing of the cache.
    """
    seen: list[_Seen] = []
    for asked in batches(editor, examples, prototypes, size=AT_ONCE):
        questions = [question for _, question in asked if question.remembered]
        if not questions:
            continue
        batch = editor.batch([question.edits[0] for question in questions])
        remembered = remember(editor, questions)
        encoded = editor.network.encode(batch, generator=None)
        read, after = editor.network.read(encoded, batch.target.ids[:, :-1])
        log_probs, likeness = (
            editor.network.next_tokens(read, after),
            remembered.likeness(read.states),
        )
        for row, length in enumerate((batch.target.lengths - 1).tolist()):
            expected = batch.target.ids[row, 1 : length + 1, None]
            ids = remembered.ids[row]
            parts = (
                log_probs[row, :length].gather(1, expected)[:, 0].exp(),
                log_probs[row, :length].amax(1),
                likeness[row, :length],
                ids == expected,
                ids,
                remembered.ranks[row],
            )
            seen.append(parts)
    return seen


def _surprise(
    cache: StateCache,
    edited: Tensor,
    surest: Tensor,
    likeness: Tensor,
    hits: Tensor,
    ids: Tensor,
    ranks: Tensor,
) -> Tensor:
    share = cache.gate(surest)
    foreseen = (cache.weights(likeness, ids, ranks) * hits).sum(1)
    return -((1 - share) * edited + share * foreseen + FLOOR).log().sum()
