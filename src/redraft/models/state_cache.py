"""What was written in a like state: the editor's own states over the nearest examples.

The editor reads each remembered example as if it wrote its output. Every word of that output then
has a state that it followed. Where the editor is in a like state now, the word is foreseen, and
mixed with what the editor expects (Khandelwal et al. 2020, here over what was retrieved alone). An
example that was added after training counts as any other does: nothing is trained. Knows no text.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import normalize
from torch.nn.utils.rnn import pad_sequence

from redraft.data.vocabulary import PAD_NUMBER
from redraft.models.copying import NEVER
from redraft.models.memory import Sharing


@dataclass(frozen=True)
class Remembered:
    """The words of remembered outputs, and the states that they followed, for each question."""

    states: Tensor  # (M, S, D), each of length 1
    ids: Tensor  # (M, S), padded with 0
    ranks: Tensor  # (M, S), of the example that a word is of, from 0
    sharing: Sharing  # which question each row of a search is of

    @classmethod
    def nothing(cls, rows: int, device: torch.device) -> Self:
        """No word for any of so many rows."""
        ids = torch.zeros(rows, 0, dtype=torch.long, device=device)
        return cls(torch.zeros(rows, 0, 0, device=device), ids, ids, Sharing.plain(rows, device))

    @classmethod
    def of(cls, states: Sequence[Tensor], ids: Sequence[Tensor], ranks: Sequence[Tensor]) -> Self:
        """Those of each question: the states (S, D), the words and their ranks (S,)."""
        padded = [pad_sequence(list(each), batch_first=True) for each in (states, ids, ranks)]
        directions = normalize(padded[0], dim=2)
        return cls(directions, padded[1], padded[2], Sharing.plain(len(ids), directions.device))

    def select(self, rows: Tensor) -> "Remembered":
        """Those of some rows, which may repeat."""
        sharing, used = self.sharing.select(rows)
        if used is None:
            return replace(self, sharing=sharing)
        states, ids, ranks = (
            each.index_select(0, used) for each in (self.states, self.ids, self.ranks)
        )
        return Remembered(states, ids, ranks, sharing)

    def of_rows(self, values: Tensor) -> Tensor:
        """Values of questions (M, …) as those of rows (R, …)."""
        return values.index_select(0, self.sharing.owners)

    def likeness(self, states: Tensor) -> Tensor:
        """The cosine of states (R, T, D) and of those of all words: (R, T, S)."""
        asked = self.sharing.gather(normalize(states, dim=2))
        return self.sharing.spread(asked @ self.states.transpose(1, 2))


@dataclass(frozen=True)
class StateCache:
    """How much likeness counts, and when the cache is heard beside the editor.

    The values are what held-out cards and queries taught. Fitted anew to what is held out of other
    data they made it likelier, and its answers no better.
    """

    sharpness: float = 12.7
    share: float = -1.3
    doubt: float = 0.5

    def mix(self, log_probs: Tensor, states: Tensor, remembered: Remembered) -> Tensor:
        """An editor's log-probabilities (R, T, W) of the next word, mixed with those foreseen."""
        if not remembered.ids.shape[1]:
            return log_probs
        foreseen = self.foresee(log_probs, states, remembered)
        words = remembered.of_rows(remembered.ids)[:, None].expand_as(foreseen)
        # the sum of what is foreseen is rounded, and may come out as more than 1
        edited = log_probs.exp() * (1 - foreseen.sum(2, keepdim=True)).clamp(min=0)
        return edited.scatter_add_(2, words, foreseen).log()

    def foresee(self, log_probs: Tensor, states: Tensor, remembered: Remembered) -> Tensor:
        """The chance that each remembered word comes next, and by the cache: (R, T, S)."""
        is_word = remembered.of_rows(remembered.ids)[:, None] != PAD_NUMBER
        scores = self.sharpness * remembered.likeness(states)
        weights = scores.masked_fill(~is_word, NEVER).softmax(-1) * is_word
        return weights * self.gate(log_probs.amax(2))[:, :, None]

    def gate(self, surest: Tensor) -> Tensor:
        """The weight of the cache, from the log-probability of the editor's first choice."""
        return torch.sigmoid(self.share - self.doubt * surest)
