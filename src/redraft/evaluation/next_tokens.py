"""How well an editor foresees the next token of a known output, from the true ones before it."""

from collections.abc import Sequence

import torch

from redraft.data.example import Example
from redraft.editing.neural_editor import BATCH, NeuralEditor
from redraft.retrieval.prototype import Prototype


@torch.inference_mode()
def first_choice_share(
    editor: NeuralEditor,
    examples: Sequence[Example],
    prototypes: Sequence[Sequence[Prototype]],
) -> float:
    """The share of output tokens, the ends among them, that the editor would have put first."""
    numbering, network = editor.numbering, editor.network
    rows = []
    for example, found in zip(examples, prototypes, strict=True):
        tokens = numbering.tokenize(example)
        prototype = numbering.tokenize(found[0].example) if found else None
        rows.append(numbering.number(tokens.fields, [prototype], tokens.output)[0])
    rows.sort(key=lambda row: len(row.target))
    right, total = 0, 0
    for start in range(0, len(rows), BATCH):
        batch = editor.batch(rows[start : start + BATCH])
        state = network.encode(batch, generator=None)
        chosen = network.likeliest(*network.read(state, batch.target.ids[:, :-1]))
        mask = batch.target.mask[:, 1:]
        right += int(((chosen == batch.target.ids[:, 1:]) & mask).sum())
        total += int(mask.sum())
    return right / total
