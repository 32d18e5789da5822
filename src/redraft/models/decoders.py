"""Decoders that attend to a memory: an LSTM and a Transformer.

Decoding is incremental: a whole output, a prefix or a single token is one call, and the state
caches all computation over the prefix.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from redraft.models.attention import Attended, Attention
from redraft.models.config import HEADS, EditNetworkConfig
from redraft.models.dropout import dropout
from redraft.models.lstm import ResidualLSTM
from redraft.models.memory import BeamIndex, Memory
from redraft.models.transformer import DecoderLayer, initialise

if TYPE_CHECKING:
    from redraft.models.edit_network import EditSizes


@dataclass(frozen=True)
class DecoderState:
    """The cached prefix of each row, and the projected memories."""

    attended: tuple[Attended, ...]  # one row per memory
    masks: tuple[Tensor, ...]  # each (M, S)
    summary: Tensor  # (M, D)
    beam_index: BeamIndex
    cache: tuple[Tensor, ...] = ()  # recurrent states, or keys and values, of each row

    @classmethod
    def of(
        cls, attended: Sequence[Attended], masks: Sequence[Tensor], memory: Memory
    ) -> "DecoderState":
        """Return the state before the first token, with one row per memory."""
        beam_index = BeamIndex.one_row_each(len(memory.summary), memory.summary.device)
        return cls(tuple(attended), tuple(masks), memory.summary, beam_index)

    def reorder(self, rows: Tensor) -> tuple["DecoderState", Tensor | None]:
        """Select `rows`, which may repeat.

        The second value is the index of the memories that remain, or None if all do.
        """
        cache = tuple(tensor.index_select(0, rows) for tensor in self.cache)
        beam_index, used = self.beam_index.reorder(rows)
        state = replace(self, beam_index=beam_index, cache=cache)
        if used is None:
            return state, None
        attended = tuple(memory.reorder(used) for memory in self.attended)
        masks = tuple(mask.index_select(0, used) for mask in self.masks)
        summary = self.summary.index_select(0, used)
        return replace(state, attended=attended, masks=masks, summary=summary), used


class Decoder(nn.Module, ABC):
    """Decodes embedded tokens after a cached prefix."""

    def __init__(self, sizes: "EditSizes", input_width: int, config: EditNetworkConfig) -> None:
        super().__init__()
        self.fields, self.dropout_rate = sizes.fields, config.dropout
        self.read = nn.Linear(input_width, config.width)

    @abstractmethod
    def start(self, memory: Memory, *, generator: torch.Generator | None) -> DecoderState:
        """Return the state before the first token."""

    @abstractmethod
    def forward(
        self, embedded: Tensor, state: DecoderState, *, generator: torch.Generator | None
    ) -> tuple[Tensor, DecoderState]:
        """Return the states of the tokens (B, T, D) and the decoder state after them."""


class LSTMDecoder(Decoder):
    """The paper's decoder: residual LSTM layers whose top states attend to every source."""

    def __init__(self, sizes: "EditSizes", input_width: int, config: EditNetworkConfig) -> None:
        super().__init__(sizes, input_width, config)
        width, layers = config.width, config.decoder_layers
        self.lstm = ResidualLSTM(width, width, layers=layers, dropout_rate=config.dropout)
        self.attentions = nn.ModuleList(Attention(width, width, heads=1) for _ in sizes.copyable)
        self.combine = nn.Linear((len(self.attentions) + 1) * width, width)

    def start(self, memory: Memory, *, generator: torch.Generator | None) -> DecoderState:  # noqa: ARG002
        """Project each source to its own keys and values."""
        sources = memory.sources
        attended = [
            cast(Attention, attention).project(part)
            for attention, part in zip(self.attentions, sources.apart(memory.states), strict=True)
        ]
        return DecoderState.of(attended, sources.apart(sources.mask), memory)

    def forward(
        self, embedded: Tensor, state: DecoderState, *, generator: torch.Generator | None
    ) -> tuple[Tensor, DecoderState]:
        """Run the LSTM over all tokens, then attend from all of them at once."""
        beam_index = state.beam_index
        code = state.summary[beam_index.owners]
        top, cache = self.lstm(self.read(embedded), code, state=state.cache, generator=generator)
        queries = beam_index.fold(top)
        contexts = [
            beam_index.expand(attention(queries, attended, mask[:, None, None]))
            for attention, attended, mask in zip(
                self.attentions, state.attended, state.masks, strict=True
            )
        ]
        states = torch.tanh(self.combine(torch.cat([top, *contexts], 2)))
        states = dropout(states, self.dropout_rate, generator=generator)
        return states, replace(state, cache=cache)


class TransformerDecoder(Decoder):
    """Layers that attend to the prefix, to the fields of x and to the prototype."""

    def __init__(self, sizes: "EditSizes", input_width: int, config: EditNetworkConfig) -> None:
        super().__init__(sizes, input_width, config)
        width, rate = config.width, config.dropout
        segments = 1 if len(sizes.copyable) == sizes.fields else 2
        self.layers = nn.ModuleList(
            DecoderLayer(width, segments=segments, heads=HEADS, dropout_rate=rate)
            for _ in range(config.decoder_layers)
        )
        self.norm = nn.LayerNorm(width)
        initialise(self)

    def start(self, memory: Memory, *, generator: torch.Generator | None) -> DecoderState:  # noqa: ARG002
        """Project each segment of the memory to keys and values, per layer."""
        sources = memory.sources
        states = sources.segments(memory.states, self.fields)
        attended = [
            cast(Attention, attention).project(segment)
            for layer in self.layers
            for attention, segment in zip(cast(DecoderLayer, layer).segments, states, strict=True)
        ]
        return DecoderState.of(attended, sources.segments(sources.mask, self.fields), memory)

    def forward(
        self, embedded: Tensor, state: DecoderState, *, generator: torch.Generator | None
    ) -> tuple[Tensor, DecoderState]:
        """Decode the tokens and append their keys and values to the cache."""
        states = dropout(self.read(embedded), self.dropout_rate, generator=generator)
        cache: list[Tensor] = []
        segments = len(state.masks)
        for i, layer in enumerate(self.layers):
            attended = state.attended[i * segments : (i + 1) * segments]
            memory = list(zip(attended, state.masks, strict=True))
            prefix = Attended(*state.cache[2 * i : 2 * i + 2]) if state.cache else None
            states, prefix = layer(states, prefix, memory, state.beam_index, generator=generator)
            cache += [prefix.keys, prefix.values]
        return self.norm(states), replace(state, cache=tuple(cache))
