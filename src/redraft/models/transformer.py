"""Pre-norm Transformer layers: an encoder layer, and a decoder layer with a key-value cache."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from redraft.models.attention import Attended, Attention
from redraft.models.dropout import dropout
from redraft.models.memory import BeamIndex


def initialise(layers: nn.Module) -> None:
    """Initialise with Xavier; PyTorch's smaller default makes the layers learn late."""
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
        """Return new states of the same shape."""
        output: Tensor = self.narrow(functional.relu(self.widen(states)))
        return output


class EncoderLayer(nn.Module):
    """Self-attention over all positions, followed by a feed-forward layer."""

    def __init__(self, width: int, *, heads: int, dropout_rate: float) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.attention = Attention(width, width, heads=heads)
        self.feed_forward = FeedForward(width)
        self.dropout_rate = dropout_rate

    def forward(
        self, states: Tensor, mask: Tensor, positions: Tensor, *, generator: torch.Generator | None
    ) -> Tensor:
        """Return new states (B, S, D); `mask` (B, S) is True at real tokens."""
        normed = self.norms[0](states)
        attended = self.attention.project(normed, positions)
        update = self.attention(normed, attended, mask[:, None, None], positions)
        states = states + dropout(update, self.dropout_rate, generator=generator)
        update = self.feed_forward(self.norms[1](states))
        return states + dropout(update, self.dropout_rate, generator=generator)


class DecoderLayer(nn.Module):
    """Causal self-attention, attention to each memory segment, and a feed-forward layer.

    The segments have separate attentions: with a joint one, a long prototype would dominate x.
    """

    def __init__(self, width: int, *, segments: int, heads: int, dropout_rate: float) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.before = Attention(width, width, heads=heads)
        self.segments = nn.ModuleList(Attention(width, width, heads=heads) for _ in range(segments))
        self.feed_forward = FeedForward(width)
        self.dropout_rate = dropout_rate

    def forward(
        self,
        states: Tensor,
        prefix: Attended | None,
        memory: Sequence[tuple[Attended, Tensor]],
        beam_index: BeamIndex,
        *,
        generator: torch.Generator | None,
    ) -> tuple[Tensor, Attended]:
        """Return new states (B, T, D), and the keys and values of the prefix with these tokens.

        `memory` has keys, values and a mask (M, S) per segment; `beam_index` maps rows to memories.
        """
        rate = self.dropout_rate
        normed = self.norms[0](states)
        start = 0 if prefix is None else prefix.keys.shape[2]
        positions = torch.arange(start, start + states.shape[1], device=states.device)
        new = self.before.project(normed, positions)
        prefix = new if prefix is None else prefix.join(new)
        is_visible = causal_mask(states.shape[1], prefix.keys.shape[2], states)
        update = self.before(normed, prefix, is_visible, positions)
        states = states + dropout(update, rate, generator=generator)
        queries = beam_index.fold(self.norms[1](states))
        for attention, (attended, mask) in zip(self.segments, memory, strict=True):
            update = beam_index.expand(attention(queries, attended, mask[:, None, None]))
            states = states + dropout(update, rate, generator=generator)
        update = self.feed_forward(self.norms[2](states))
        return states + dropout(update, rate, generator=generator), prefix


def causal_mask(new: int, total: int, like: Tensor) -> Tensor | None:
    """Return the causal mask (T, S) of the last `new` of `total` tokens; None for one token."""
    if new == 1:
        return None
    ones = torch.ones(new, total, dtype=torch.bool, device=like.device)
    return ones.tril(total - new)
