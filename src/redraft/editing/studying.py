"""The nearest examples studied before an answer: learned for it by a copy of the network."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from redraft.data.edit_numbers import EditNumbers

if TYPE_CHECKING:
    from redraft.editing.neural_editor import NeuralEditor

RATE = 5e-4
"""How fast is learned: a quarter of the highest rate by which editors are trained by default."""


def studied(editor: "NeuralEditor", examples: Sequence[EditNumbers]) -> "NeuralEditor":
    """The editor after its steps on some examples; the one that is given stays as it is."""
    steps = editor.decoding.studied
    if not (steps and examples):
        return editor
    with torch.inference_mode(False), torch.enable_grad():
        network = deepcopy(editor.network).requires_grad_(True)
        batch = editor.batch(examples)
        words = int(batch.target.lengths.sum()) - len(examples)
        optimiser = torch.optim.Adam(network.parameters(), lr=RATE)
        for _ in range(steps):
            optimiser.zero_grad(set_to_none=True)
            loss = -network.log_likelihoods(batch).sum() / words
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    return replace(editor, network=network.requires_grad_(False))
