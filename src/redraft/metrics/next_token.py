"""Next-token accuracy of an editor under teacher forcing."""

from collections.abc import Sequence

import torch

from redraft.editing.forced_decoding import batches
from redraft.editing.neural import BATCH, NeuralEditor
from redraft.types import Example, Prototype


def first_choice_share(
    editor: NeuralEditor, examples: Sequence[Example], prototypes: Sequence[Sequence[Prototype]]
) -> float:
    """Return the next-token accuracy on the outputs, end tokens included."""
    network, right, total = editor.network, 0, 0
    with torch.inference_mode():
        for items in batches(editor, examples, prototypes, size=BATCH):
            batch = editor.batch([editor_input.edits[0] for _, editor_input in items])
            state = network.encode(batch, generator=None)
            chosen = network.likeliest(*network.read(state, batch.target.ids[:, :-1]))
            mask = batch.target.mask[:, 1:]
            right += int(((chosen == batch.target.ids[:, 1:]) & mask).sum())
            total += int(mask.sum())
    return right / total
