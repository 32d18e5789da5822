"""How well a source agrees, just before each of its places, with what was written last.

Where the last words of the output stand in a source, the next word is likely to be the one that
follows there. Attention can learn to see this; told, it need not.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from redraft.data.vocabulary import START_NUMBER
from redraft.models.memory import Sources

_UNREAD, _NOTHING = -2, -1
"""What was read before the start, and what stands before it in a source: equal to no token."""


class Matching(nn.Module):
    """A score for copying from a place: one weight for each word that agrees before it."""

    def __init__(self, roles: int, longest: int, *, agreement: float = 1.0) -> None:
        super().__init__()
        self.longest = longest
        self.weights = nn.Parameter(torch.full((roles, longest), agreement))

    def begin(self, rows: int, device: torch.device) -> Tensor:
        """What was read before anything was: (B, longest)."""
        return torch.full((rows, self.longest), _UNREAD, device=device)

    def forward(self, history: Tensor, sources: Sources) -> Tensor:
        """The score of each place (B, T, S) after the last T tokens of a history (B, longest+T)."""
        length = history.shape[1] - self.longest
        places = sources.places
        shape = (len(history), length, places.shape[1])
        agrees = torch.ones(shape, dtype=torch.bool, device=history.device)
        matched = torch.zeros(shape, dtype=torch.long, device=history.device)
        for back in range(self.longest):
            start = self.longest - back
            read = history[:, start : start + length, None]  # (B, T, 1)
            # the token that stands back + 1 places before each place of its own source
            before = sources.ids.roll(back + 1, dims=1)
            before = torch.where(places > back, before, _NOTHING)
            before = torch.where(places == back, START_NUMBER, before)
            agrees &= read == before[:, None]
            matched += agrees
        scores = functional.pad(self.weights.cumsum(1), (1, 0))  # (roles, longest + 1)
        return scores.view(-1)[matched + (sources.roles * (self.longest + 1))[:, None]]
