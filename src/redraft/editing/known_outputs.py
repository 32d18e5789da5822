"""Outputs that are known, read by an editor word by word: what it expects, and what comes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from redraft.data.example import Example
from redraft.editing.neural_editor import NeuralEditor
from redraft.editing.question import Question
from redraft.editing.remembering import remember
from redraft.models.ngram_cache import CacheState
from redraft.retrieval.prototype import Prototype

AT_ONCE = 16
"""Outputs that are read side by side."""

Asked = tuple[int, Question]
"""The row of an example, and its question with the output in it."""


@dataclass(frozen=True)
class Step:
    """The next word of several outputs."""

    rows: Tensor  # (R,), the examples' numbers
    expected: Tensor  # (R, W), the log-probabilities by the editor without its cache
    cache: CacheState
    tokens: Tensor  # (R,), what comes


def batches(
    editor: NeuralEditor,
    examples: Sequence[Example],
    prototypes: Sequence[Sequence[Prototype]],
    *,
    size: int = AT_ONCE,
) -> Iterator[list[Asked]]:
    """The examples as questions, in batches of like lengths."""
    tokenize = editor.numbering.tokenize_output
    lengths = [len(tokenize(example.y)) for example in examples]
    order = sorted(range(len(examples)), key=lambda row: lengths[row])
    for start in range(0, len(order), size):
        yield [
            (row, editor.question(examples[row].x, prototypes[row], tokenize(examples[row].y)))
            for row in order[start : start + size]
        ]


@torch.inference_mode()
def follow(
    editor: NeuralEditor, examples: Sequence[Example], prototypes: Sequence[Sequence[Prototype]]
) -> Iterator[Step]:
    """Every word of every output, its end among them, from the true ones before it."""
    for asked in batches(editor, examples, prototypes):
        questions = [question for _, question in asked]
        target = editor.batch([question.edits[0] for question in questions]).target
        rows = torch.tensor([row for row, _ in asked])
        walk, state = editor.start_walk(questions, remember(editor, questions))
        for at, (expected, cache) in enumerate(walk.follow(state, target.ids[:, :-1])):
            there = target.mask[:, at + 1].nonzero()[:, 0]
            yield Step(
                rows[there.cpu()], expected[there], cache.select(there), target.ids[there, at + 1]
            )
