"""The nearest examples as the editor would write them: its states, and what they say of a token."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from redraft.data.edit_numbers import EditBatch, EditNumbers
from redraft.editing.question import Question
from redraft.models.state_cache import Remembered

if TYPE_CHECKING:
    from redraft.editing.neural_editor import NeuralEditor

AT_ONCE = 32
"""Examples that are read side by side."""


def remember(editor: "NeuralEditor", questions: Sequence[Question]) -> Remembered:
    """The words of the remembered examples of each question, and the states they followed."""
    examples = [each for question in questions for each in question.edits[0].remembered]
    if not examples:
        return Remembered.nothing(len(questions), editor.network.device)
    states, ids = _read(editor, examples)
    per_question, start = [], 0
    for question in questions:
        end = start + len(question.edits[0].remembered)
        per_question.append(_joined(states[start:end], ids[start:end], like=states[0]))
        start = end
    return Remembered.of(*zip(*per_question, strict=True))


def _read(
    editor: "NeuralEditor", examples: Sequence[EditNumbers]
) -> tuple[list[Tensor], list[Tensor]]:
    """Of each example the states (T, D), and the words that followed them (T,)."""
    states: list[Tensor] = [torch.empty(0)] * len(examples)
    ids = list(states)
    order = sorted(range(len(examples)), key=lambda at: len(examples[at].target))
    for start in range(0, len(order), AT_ONCE):
        rows = order[start : start + AT_ONCE]
        batch = editor.batch([examples[at] for at in rows])
        encoded = editor.network.encode(batch, generator=None)
        read, _ = editor.network.read(encoded, batch.target.ids[:, :-1])
        for at, own, target in zip(rows, read.states, batch.target.ids, strict=True):
            length = len(examples[at].target) - 1
            states[at], ids[at] = own[:length], target[1 : length + 1]
    return states, ids


def _joined(
    states: Sequence[Tensor], ids: Sequence[Tensor], *, like: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The examples of a question one after the other, each word with the rank of its example."""
    none = torch.zeros(0, dtype=torch.long, device=like.device)
    ranks = [torch.full_like(each, rank) for rank, each in enumerate(ids)]
    return torch.cat([like[:0], *states]), torch.cat([none, *ids]), torch.cat([none, *ranks])


@dataclass(frozen=True)
class Trace:
    """What of an output was remembered."""

    chances: Tensor  # (R, T, N), that a token came by each remembered example
    share: Tensor  # (R, T), the weight of all that is remembered


def trace(editor: "NeuralEditor", batch: EditBatch, remembered: Remembered) -> Trace:
    """What of the targets of a batch was remembered; a row of what is remembered for each."""
    expected = batch.target.ids[:, 1:]
    if not remembered.ids.shape[1]:
        nothing = torch.zeros(expected.shape, device=expected.device)
        return Trace(nothing[:, :, None], nothing)
    encoded = editor.network.encode(batch, generator=None)
    read, after = editor.network.read(encoded, batch.target.ids[:, :-1])
    log_probs = editor.network.next_tokens(read, after)
    foreseen = editor.state_cache.foresee(log_probs, read.states, remembered)
    words, ranks = remembered.of_rows(remembered.ids), remembered.of_rows(remembered.ranks)
    came = foreseen * (words[:, None] == expected[:, :, None]) * batch.target.mask[:, 1:, None]
    chances = came.new_zeros(*expected.shape, int(ranks.max()) + 1)
    chances.scatter_add_(2, ranks[:, None].expand_as(came), came)
    return Trace(chances, foreseen.sum(2).clamp(max=1))
