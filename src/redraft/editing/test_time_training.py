"""Test-time training on nearest neighbours (Hardt & Sun 2024).

Before an answer, a copy of the network takes a few gradient steps on the examples that were
retrieved for the input. Knows no retriever and no search.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from redraft.editing.cancellation import check_cancelled
from redraft.text.edit_encoder import EncodedEdit
from redraft.types import Prototype

if TYPE_CHECKING:
    from redraft.editing.neural import NeuralEditor

NEIGHBOURS = 16
"""The number of retrieved examples in the batch that every step trains on."""

LEARNING_RATE = 5e-4
"""The learning rate of Adam: a quarter of the default peak rate of editor training."""


def edit_examples(neighbours: Sequence[Prototype], prototypes: int) -> list[list[Prototype]]:
    """Pair each neighbour with prototypes from the other neighbours, as in training.

    Returns one list per neighbour: the neighbour, then the `prototypes` first of the others.
    """
    return [
        [neighbour, *[*neighbours[:rank], *neighbours[rank + 1 :]][:prototypes]]
        for rank, neighbour in enumerate(neighbours)
    ]


def adapt(editor: "NeuralEditor", examples: Sequence[EncodedEdit]) -> "NeuralEditor":
    """Train a copy of the editor's network on `examples` for `decoding.ttt_steps` steps.

    Returns an editor with the trained copy, or `editor` itself if there are no steps or examples;
    the weights of `editor` do not change.
    """
    steps = editor.decoding.ttt_steps
    if not (steps and examples):
        return editor
    with torch.inference_mode(False), torch.enable_grad():
        network = deepcopy(editor.network).requires_grad_(True)
        batch = editor.batch(examples)
        tokens = int(batch.target.lengths.sum()) - len(examples)
        optimiser = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE)
        for _ in range(steps):
            check_cancelled()
            optimiser.zero_grad(set_to_none=True)
            loss = -network.log_likelihoods(batch).sum() / tokens
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    return replace(editor, network=network.requires_grad_(False))
