"""How well a source agrees, just before each of its places, with what was written last.

Where the last words of the output stand in a source, the next word is likely to be the one that
follows there. Attention can learn to see this; told, it need not.
"""

import torch
from torch import Tensor, nn

from redraft.models.memory import Sources

_START = 2
"""The number of the start token: it stands before the first place of every source."""

_UNREAD, _NOTHING = -2, -1
"""What was read before the start, and what stands before it in a source: equal to no token."""


class Matching(nn.Module):
    """A score for copying from a place: one weight for each word that agrees before it."""

    def __init__(self, roles: int, longest: int) -> None:
        super().__init__()
        self.longest = longest
        self.weights = nn.Parameter(torch.ones(roles, longest))

    def begin(self, rows: int, device: torch.device) -> Tensor:
        """What was read before anything was: (B, longest)."""
        return torch.full((rows, self.longest), _UNREAD, device=device)

    def forward(self, history: Tensor, sources: Sources) -> Tensor:
        """The score of each place (B, T, S) after the last T tokens of a history (B, longest+T)."""
        length = history.shape[1] - self.longest
        roles, places = sources.columns()
        score = torch.zeros(1, device=history.device)
        agrees: Tensor | None = None
        for back in range(self.longest):
            start = self.longest - back
            read = history[:, start : start + length, None]  # (B, T, 1)
            # the token that stands back + 1 places before each place of its own source
            before = sources.ids.roll(back + 1, dims=1)
            before = torch.where(places > back, before, _NOTHING)
            before = torch.where(places == back, _START, before)
            same = read == before[:, None]
            agrees = same if agrees is None else agrees & same
            score = score + agrees * self.weights[roles, back]
        return score
