"""The nearest examples studied before an answer: learned for it by some steps, then forgotten."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from redraft.data.edit_numbers import EditNumbers

if TYPE_CHECKING:
    from redraft.editing.neural_editor import NeuralEditor

RATE = 5e-4
"""How fast is learned: a quarter of the highest rate of training."""


@contextmanager
def studied(editor: "NeuralEditor", examples: Sequence[EditNumbers]) -> Iterator[None]:
    """Within it the editor has taken its steps on some examples; then it is as it was before."""
    steps = editor.decoding.studied if examples else 0
    weights = [each for each in editor.network.parameters() if steps]
    before = [(each.detach().clone(), each.requires_grad) for each in weights]
    try:
        with torch.inference_mode(False), torch.enable_grad():
            _study(editor, examples, steps)
        yield
    finally:
        for weight, (value, learns) in zip(weights, before, strict=True):
            weight.detach().copy_(value)
            weight.requires_grad_(learns).grad = None


def _study(editor: "NeuralEditor", examples: Sequence[EditNumbers], steps: int) -> None:
    if not steps:
        return
    network = editor.network.requires_grad_(True)
    batch = editor.batch(examples)
    words = int(batch.target.lengths.sum()) - len(examples)
    optimiser = torch.optim.Adam(network.parameters(), lr=RATE)
    for _ in range(steps):
        optimiser.zero_grad(set_to_none=True)
        loss = -network.log_likelihoods(batch).sum() / words
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
