"""Teacher forcing: next-token probabilities along given outputs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from redraft.editing.editor_input import EditorInput
from redraft.editing.neural import NeuralEditor
from redraft.models.ngram_cache import CacheState
from redraft.types import Example, Prototype

BATCH = 16
"""The number of outputs per batch."""

Row = tuple[int, EditorInput]
"""The index of an example, and its editor input with the target output."""


@dataclass(frozen=True)
class Step:
    """One position of several outputs."""

    rows: Tensor  # (R,), the indices of the examples
    expected: Tensor  # (R, W), next-token log-probabilities of the editor without its cache
    cache: CacheState
    tokens: Tensor  # (R,), the true next tokens


def batches(
    editor: NeuralEditor,
    examples: Sequence[Example],
    prototypes: Sequence[Sequence[Prototype]],
    *,
    size: int = BATCH,
) -> Iterator[list[Row]]:
    """Yield the encoded examples in batches of `size` with outputs of similar length."""
    tokenize = editor.encoding.tokenize_output
    lengths = [len(tokenize(example.y)) for example in examples]
    order = sorted(range(len(examples)), key=lambda i: lengths[i])
    for start in range(0, len(order), size):
        yield [
            (i, editor.editor_input(examples[i].x, prototypes[i], tokenize(examples[i].y)))
            for i in order[start : start + size]
        ]


@torch.inference_mode()
def follow(
    editor: NeuralEditor, examples: Sequence[Example], prototypes: Sequence[Sequence[Prototype]]
) -> Iterator[Step]:
    """Yield the predictions for every token of every output, the end token included.

    Each prediction is conditioned on the true tokens before it.
    """
    for batch in batches(editor, examples, prototypes):
        editor_inputs = [editor_input for _, editor_input in batch]
        target = editor.batch([editor_input.edits[0] for editor_input in editor_inputs]).target
        rows = torch.tensor([i for i, _ in batch])
        next_tokens, state = editor.start_decoding(editor_inputs)
        predictions = next_tokens.follow(state, target.ids[:, :-1])
        for position, (expected, cache) in enumerate(predictions, start=1):
            live = target.mask[:, position].nonzero()[:, 0]  # the outputs that have not ended
            yield Step(
                rows[live.cpu()], expected[live], cache.reorder(live), target.ids[live, position]
            )
