"""Tokens to states that attend to a memory: an LSTM or a Transformer, from any prefix on.

Reading a whole output, a prefix or a single token is one call: what was read is kept in the
state, so that nothing is computed twice.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor, nn

from redraft.models.attention import Attended, Attention
from redraft.models.dropout import dropout
from redraft.models.memory import Memory, Sharing
from redraft.models.recurrent import ResidualLSTM
from redraft.models.transformer import DecoderLayer, initialise


@dataclass(frozen=True)
class DecoderState:
    """What was read so far by each row, and the memories as the decoder attends to them."""

    attended: tuple[Attended, ...]  # of each memory
    masks: tuple[Tensor, ...]  # each (M, S)
    summary: Tensor  # (M, D)
    sharing: Sharing
    kept: tuple[Tensor, ...] = ()  # of each row, changes with every token

    @classmethod
    def of(
        cls, attended: Sequence[Attended], masks: Sequence[Tensor], memory: Memory
    ) -> "DecoderState":
        """Nothing was read yet, and every memory has one row."""
        sharing = Sharing.plain(len(memory.summary), memory.summary.device)
        return cls(tuple(attended), tuple(masks), memory.summary, sharing)

    def select(self, rows: Tensor) -> tuple["DecoderState", Tensor | None]:
        """The state of some rows, which may repeat, and the memories that it keeps if not all."""
        kept = tuple(each.index_select(0, rows) for each in self.kept)
        sharing, used = self.sharing.select(rows)
        state = replace(self, sharing=sharing, kept=kept)
        if used is None:
            return state, None
        attended = tuple(each.select(used) for each in self.attended)
        masks = tuple(each.index_select(0, used) for each in self.masks)
        summary = self.summary.index_select(0, used)
        return replace(state, attended=attended, masks=masks, summary=summary), used


class Decoder(nn.Module, ABC):
    """Reads embedded tokens after those it has read."""

    width: int

    @abstractmethod
    def start(self, memory: Memory, *, generator: torch.Generator | None) -> DecoderState:
        """The state before the first token."""

    @abstractmethod
    def forward(
        self, embedded: Tensor, state: DecoderState, *, generator: torch.Generator | None
    ) -> tuple[Tensor, DecoderState]:
        """The states of the tokens (B, T, D), and the decoder's own after them."""


class LSTMDecoder(Decoder):
    """The paper's: residual LSTM layers whose top states attend to every source."""

    def __init__(
        self,
        roles: int,
        input_width: int,
        memory_width: int,
        width: int,
        *,
        layers: int,
        dropout_rate: float,
    ) -> None:
        super().__init__()
        self.width = width
        self.read = nn.Linear(input_width, width)
        self.lstm = ResidualLSTM(width, memory_width, layers=layers, dropout_rate=dropout_rate)
        self.attentions = nn.ModuleList(
            Attention(width, memory_width, heads=1) for _ in range(roles)
        )
        self.combine = nn.Linear((roles + 1) * width, width)
        self.dropout_rate = dropout_rate

    def start(
        self,
        memory: Memory,
        *,
        generator: torch.Generator | None,  # noqa: ARG002
    ) -> DecoderState:
        """Every source with its own keys and values."""
        sources = memory.sources
        attended = [
            cast(Attention, attention).project(part)
            for attention, part in zip(self.attentions, sources.apart(memory.states), strict=True)
        ]
        return DecoderState.of(attended, sources.apart(sources.mask), memory)

    def forward(
        self, embedded: Tensor, state: DecoderState, *, generator: torch.Generator | None
    ) -> tuple[Tensor, DecoderState]:
        """The LSTM runs over all tokens first, then all of them attend at once."""
        sharing = state.sharing
        code = state.summary[sharing.owners]
        top, kept = self.lstm(self.read(embedded), code, state=state.kept, generator=generator)
        asking = sharing.gather(top)
        gathered = [
            sharing.spread(attention(asking, attended, mask[:, None, None]))
            for attention, attended, mask in zip(
                self.attentions, state.attended, state.masks, strict=True
            )
        ]
        states = torch.tanh(self.combine(torch.cat([top, *gathered], 2)))
        states = dropout(states, self.dropout_rate, generator=generator)
        return states, replace(state, kept=kept)


class TransformerDecoder(Decoder):
    """Layers that look at the tokens before, at the fields of x, and at the prototype."""

    def __init__(
        self,
        fields: int,
        roles: int,
        input_width: int,
        width: int,
        *,
        layers: int,
        heads: int,
        dropout_rate: float,
    ) -> None:
        super().__init__()
        self.fields = fields
        self.width = width
        self.read = nn.Linear(input_width, width)
        sides = 1 if roles == fields else 2
        self.layers = nn.ModuleList(
            DecoderLayer(width, sides=sides, heads=heads, dropout_rate=dropout_rate)
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.dropout_rate = dropout_rate
        initialise(self)

    def start(
        self,
        memory: Memory,
        *,
        generator: torch.Generator | None,  # noqa: ARG002
    ) -> DecoderState:
        """Keys and values of each side of the memory, for every layer its own."""
        sources = memory.sources
        states = sources.sides(memory.states, self.fields)
        attended = [
            cast(Attention, attention).project(side)
            for layer in self.layers
            for attention, side in zip(cast(DecoderLayer, layer).sides, states, strict=True)
        ]
        return DecoderState.of(attended, sources.sides(sources.mask, self.fields), memory)

    def forward(
        self, embedded: Tensor, state: DecoderState, *, generator: torch.Generator | None
    ) -> tuple[Tensor, DecoderState]:
        """Keys and values of the tokens are kept for those to come."""
        states = dropout(self.read(embedded), self.dropout_rate, generator=generator)
        kept: list[Tensor] = []
        sides = len(state.masks)
        for at, layer in enumerate(self.layers):
            attended = state.attended[at * sides : (at + 1) * sides]
            memory = list(zip(attended, state.masks, strict=True))
            earlier = Attended(*state.kept[2 * at : 2 * at + 2]) if state.kept else None
            states, seen = layer(states, earlier, memory, state.sharing, generator=generator)
            kept += [seen.keys, seen.values]
        return self.norm(states), replace(state, kept=tuple(kept))
