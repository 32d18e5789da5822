"""Pre-norm Transformer layers, for an encoder and, with a cache, for a decoder."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from redraft.models.attention import Attended, Attention
from redraft.models.dropout import dropout
from redraft.models.memory import Sharing


def initialise(layers: nn.Module) -> None:
    """Larger weights than PyTorch's own: with those, layers begin as bystanders and learn late."""
    for name, weight in layers.named_parameters():
        if weight.dim() == 2:
            nn.init.xavier_uniform_(weight)
        elif name.endswith("bias"):
            nn.init.zeros_(weight)


class FeedForward(nn.Module):
    """Two linear maps with a nonlinearity between them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.widen = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, states: Tensor) -> Tensor:
        """New states of the same shape."""
        narrowed: Tensor = self.narrow(functional.relu(self.widen(states)))
        return narrowed


class EncoderLayer(nn.Module):
    """Every place looks at every other, then thinks."""

    def __init__(self, width: int, *, heads: int, dropout_rate: float) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.attention = Attention(width, width, heads=heads)
        self.feed_forward = FeedForward(width)
        self.dropout_rate = dropout_rate

    def forward(
        self, states: Tensor, mask: Tensor, places: Tensor, *, generator: torch.Generator | None
    ) -> Tensor:
        """New states (B, S, D); the mask (B, S) is True at real tokens, which stand at places."""
        normed = self.norms[0](states)
        seen = self.attention.project(normed, places)
        read = self.attention(normed, seen, mask[:, None, None], places)
        states = states + dropout(read, self.dropout_rate, generator=generator)
        read = self.feed_forward(self.norms[1](states))
        return states + dropout(read, self.dropout_rate, generator=generator)


class DecoderLayer(nn.Module):
    """Every token looks at those before it, at each side of the memory, then thinks.

    Each side has an attention of its own: with one for both, a long prototype would drown x.
    """

    def __init__(self, width: int, *, sides: int, heads: int, dropout_rate: float) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.before = Attention(width, width, heads=heads)
        self.sides = nn.ModuleList(Attention(width, width, heads=heads) for _ in range(sides))
        self.feed_forward = FeedForward(width)
        self.dropout_rate = dropout_rate

    def forward(
        self,
        states: Tensor,
        earlier: Attended | None,
        memory: Sequence[tuple[Attended, Tensor]],
        sharing: Sharing,
        *,
        generator: torch.Generator | None,
    ) -> tuple[Tensor, Attended]:
        """New states (B, T, D) of tokens after the earlier ones, and the earlier ones with them.

        The memory has keys, values and a mask (M, S) for each side; rows may share it.
        """
        rate = self.dropout_rate
        normed = self.norms[0](states)
        start = 0 if earlier is None else earlier.keys.shape[2]
        places = torch.arange(start, start + states.shape[1], device=states.device)
        own = self.before.project(normed, places)
        seen = own if earlier is None else earlier.join(own)
        before = causal_mask(states.shape[1], seen.keys.shape[2], states)
        read = self.before(normed, seen, before, places)
        states = states + dropout(read, rate, generator=generator)
        asking = sharing.gather(self.norms[1](states))
        for side, (attended, mask) in zip(self.sides, memory, strict=True):
            read = sharing.spread(side(asking, attended, mask[:, None, None]))
            states = states + dropout(read, rate, generator=generator)
        read = self.feed_forward(self.norms[2](states))
        return states + dropout(read, rate, generator=generator), seen


def causal_mask(new: int, seen: int, like: Tensor) -> Tensor | None:
    """Which of the seen places each new token may look at (T, S); a single one looks at all."""
    if new == 1:
        return None
    ones = torch.ones(new, seen, dtype=torch.bool, device=like.device)
    return ones.tril(seen - new)
