"""The decoder-only baseline, as in a GPT: sources and output are one causal sequence.

The sources are embedded and nothing more; the decoder's layers attend to them as to tokens.
Positions count real tokens only, row by row, so padding changes nothing.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from redraft.models.attention import Attended, Attention
from redraft.models.config import ARCHITECTURE_NAMES, ENCODER_LAYERS, HEADS, EditNetworkConfig
from redraft.models.decoders import Decoder, DecoderState
from redraft.models.dropout import dropout
from redraft.models.edit_network import ARCHITECTURES, EditSizes
from redraft.models.encoders import Encoder
from redraft.models.memory import Memory, Sources
from redraft.models.transformer import FeedForward, causal_mask, initialise

DECODER_ONLY = "decoder-only"


class SourceEmbedding(Encoder):
    """In place of an encoder: each place knows its token and its source, and no other place."""

    packs = True

    def __init__(self, sizes: EditSizes, input_width: int, config: EditNetworkConfig) -> None:
        super().__init__()
        self.dropout_rate = config.dropout
        self.read = nn.Linear(input_width, config.width)
        self.source_ids = nn.Embedding(len(sizes.copyable), config.width)
        initialise(self)

    def forward(
        self, embedded: Tensor, sources: Sources, *, generator: torch.Generator | None
    ) -> Memory:
        """The embedded places (B, S, W), and their mean."""
        states = self.read(embedded) + self.source_ids(sources.source_ids)
        states = dropout(states, self.dropout_rate, generator=generator)
        real = sources.mask[:, :, None]
        return Memory(sources, states, (states * real).sum(1) / real.sum(1))


class CausalLayer(nn.Module):
    """Causal self-attention and a feed-forward layer."""

    def __init__(self, width: int, *, heads: int, dropout_rate: float) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.attention = Attention(width, width, heads=heads)
        self.feed_forward = FeedForward(width)
        self.dropout_rate = dropout_rate

    def forward(
        self,
        states: Tensor,
        earlier: Sequence[Attended],
        real: Tensor,
        *,
        generator: torch.Generator | None,
    ) -> tuple[Tensor, Attended]:
        """New states (B, T, D) of tokens after the earlier ones, and their own keys and values.

        The mask (B, S) is True at real tokens, the earlier ones and then these.
        """
        length, total = states.shape[1], real.shape[1]
        places = real.cumsum(1)[:, total - length :] - 1  # among the real tokens of a row
        visible, before = real[:, None, None], causal_mask(length, total, states)
        visible = visible if before is None else visible & before  # (B, 1, T or 1, S)
        normed = self.norms[0](states)
        own = self.attention.project(normed, places)
        read = self.attention(normed, Attended.join(*earlier, own), visible, places)
        states = states + dropout(read, self.dropout_rate, generator=generator)
        read = self.feed_forward(self.norms[1](states))
        return states + dropout(read, self.dropout_rate, generator=generator), own


class CausalDecoder(Decoder):
    """Causal layers over the sources, one after the other, and over the output behind them."""

    def __init__(self, sizes: EditSizes, input_width: int, config: EditNetworkConfig) -> None:
        super().__init__(sizes, input_width, config)
        # as deep as the others: one stack does what their encoder and their decoder do
        layers = ENCODER_LAYERS + config.decoder_layers
        self.layers = nn.ModuleList(
            CausalLayer(config.width, heads=HEADS, dropout_rate=config.dropout)
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(config.width)
        initialise(self)

    def start(self, memory: Memory, *, generator: torch.Generator | None) -> DecoderState:
        """The sources go through all layers; every layer's keys and values of them are cached."""
        real = memory.sources.mask
        states, attended = memory.states, list[Attended]()
        for layer in self.layers:
            states, own = layer(states, [], real, generator=generator)
            attended.append(own)
        return DecoderState.of(attended, [real], memory)

    def forward(
        self, embedded: Tensor, state: DecoderState, *, generator: torch.Generator | None
    ) -> tuple[Tensor, DecoderState]:
        """Keys and values of the tokens are cached for later tokens."""
        states = dropout(self.read(embedded), self.dropout_rate, generator=generator)
        read = state.cache[0].shape[2] if state.cache else 0
        owners = state.beam_index.owners
        sources = state.masks[0][owners]
        real = functional.pad(sources, (0, read + embedded.shape[1]), value=True)
        cache: list[Tensor] = []
        for at, (layer, attended) in enumerate(zip(self.layers, state.attended, strict=True)):
            output = [Attended(*state.cache[2 * at : 2 * at + 2])] if state.cache else []
            earlier = [attended.reorder(owners), *output]
            states, own = layer(states, earlier, real, generator=generator)
            seen = Attended.join(*output, own)
            cache += [seen.keys, seen.values]
        return self.norm(states), replace(state, cache=tuple(cache))


@contextmanager
def decoder_only() -> Iterator[None]:
    """Let editors be trained with the architecture `DECODER_ONLY` while the context lasts."""
    ARCHITECTURES[DECODER_ONLY] = SourceEmbedding, CausalDecoder
    ARCHITECTURE_NAMES.append(DECODER_ONLY)
    try:
        yield
    finally:
        del ARCHITECTURES[DECODER_ONLY]
        ARCHITECTURE_NAMES.remove(DECODER_ONLY)
