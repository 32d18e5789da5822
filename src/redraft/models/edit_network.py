"""The editor network p_edit(y | x, (x', y')): an encoder-decoder that generates or copies tokens.

The encoder reads the sources and the decoder attends to them. One softmax covers the output
vocabulary and the copyable source positions; the probability of a token is the sum over generating
it and over every position that holds it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from redraft.models.batch import EditBatch
from redraft.models.config import EditNetworkConfig
from redraft.models.copying import NEVER, Copying, NoCopying, PointerCopying, PositionalCopying
from redraft.models.decoders import Decoder, DecoderState, LSTMDecoder, TransformerDecoder
from redraft.models.dropout import drop_tokens
from redraft.models.encoders import Encoder, LSTMEncoder, TransformerEncoder
from redraft.models.fused_cross_entropy import selected_logits
from redraft.models.memory import Sources
from redraft.text.vocabulary import UNK_ID


@dataclass(frozen=True)
class EditSizes:
    """Sizes that depend on the data."""

    vocab_size: int
    output_vocab_size: int  # the first ids can be generated
    fields: int  # fields of x
    copyable: tuple[bool, ...]  # per source; the fields of x come first, y' last


@dataclass(frozen=True)
class EditState:
    """The state between two tokens of incremental decoding."""

    sources: Sources  # per row
    prepared: Tensor  # per memory, from `Copying.prepare`
    decoder: DecoderState
    width: int  # extended vocabulary size: the vocabulary and the OOVs of the sources


@dataclass(frozen=True)
class _Probs:
    """Log-probabilities of the ways to produce each target token."""

    written: Tensor  # (B, T), generated
    copied: Tensor  # (B, T, S), copied from each position that holds the token
    source_ids: Tensor  # (B, S)
    unknown: Tensor  # (B, T), UNK generated


class EditNetwork(nn.Module):
    """Encoder, decoder and copy mechanism with one output distribution."""

    def __init__(self, sizes: EditSizes, config: EditNetworkConfig) -> None:
        super().__init__()
        self.sizes = sizes
        self.config = config
        self.copyable = copyable_sources(sizes, config.copying)
        slot_width = SLOT_WIDTHS[config.copying]
        embedded_width = config.word_width + slot_width
        encoder, decoder = ARCHITECTURES[config.architecture]
        self.encoder = encoder(sizes, embedded_width, config)
        self.decoder = decoder(sizes, embedded_width, config)
        self.copying = COPYINGS[config.copying](sizes, config)
        self.words = nn.Embedding(sizes.vocab_size, config.word_width, padding_idx=0)
        self.slots = nn.Embedding(self.copying.slots + 1, slot_width, padding_idx=0)
        self.write = nn.Linear(config.width, sizes.output_vocab_size)

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.words.weight.device

    def encode(self, batch: EditBatch, *, generator: torch.Generator | None) -> EditState:
        """Encode the sources and return the state before the first token."""
        sources = Sources.join(batch.sources, self.copyable)
        if self.encoder.packs:
            sources = sources.packed(self.sizes.fields)
        embedded = self._embed(sources.ids, sources, generator=generator)
        memory = self.encoder(embedded, sources, generator=generator)
        prepared = self.copying.prepare(memory)
        decoder = self.decoder.start(memory, generator=generator)
        return EditState(sources, prepared, decoder, batch.width)

    def _embed(self, ids: Tensor, sources: Sources, *, generator: torch.Generator | None) -> Tensor:
        """Embed each token as [word ; slot]; OOVs differ only in the slot: (B, T, E)."""
        word_ids = torch.where(ids < self.sizes.vocab_size, ids, UNK_ID)
        word_ids = drop_tokens(word_ids, self.config.word_dropout, generator=generator)
        slots = self.copying.slots_of(ids, sources)
        return torch.cat([self.words(word_ids), self.slots(slots)], 2)

    def read(
        self, state: EditState, tokens: Tensor, *, generator: torch.Generator | None = None
    ) -> tuple[Tensor, EditState]:
        """Feed `tokens` (B, T) to the decoder after the prefix; return their states (B, T, D).

        The second value is the state after them.
        """
        embedded = self._embed(tokens, state.sources, generator=generator)
        states, decoder = self.decoder(embedded, state.decoder, generator=generator)
        return states, replace(state, decoder=decoder)

    def scores(self, states: Tensor, state: EditState) -> tuple[Tensor, Tensor]:
        """Return the log-probabilities of the next token after `states` (B, T, D).

        Returns those of generating each word (B, T, V) and of copying each position (B, T, S).
        """
        written, copied = self.write(states), self._copied(states, state)
        total = torch.logaddexp(written.logsumexp(2), copied.logsumexp(2))[:, :, None]
        return written - total, copied - total

    def _copied(self, states: Tensor, state: EditState) -> Tensor:
        """Return the logits of copying from each position (B, T, S)."""
        beam_index = state.decoder.beam_index
        copied = beam_index.expand(self.copying(beam_index.fold(states), state.prepared))
        return copied.masked_fill(~state.sources.copyable[:, None], NEVER)

    def next_tokens(self, states: Tensor, state: EditState) -> Tensor:
        """Return log-probabilities of the next token after `states` (B, T, D): (B, T, width)."""
        written, copied = self.scores(states, state)
        rows, length, words = written.shape
        probs = written.new_zeros(rows, length, state.width)
        probs[:, :, :words] = written.exp()
        token_ids = state.sources.ids[:, None].expand(-1, length, -1)
        return probs.scatter_add_(2, token_ids, copied.exp()).log()

    def likeliest(self, states: Tensor, state: EditState) -> Tensor:
        """Return the argmax of `next_tokens` after `states` (B, T, D): (B, T)."""
        written, copied = self.scores(states, state)
        ids = state.sources.ids
        # Copying adds probability to source words only: no sum over the whole vocabulary.
        same = (ids[:, :, None] == ids[:, None]).to(copied.dtype)  # (B, S, S)
        word_ids = ids.clamp(max=written.shape[2] - 1)[:, None].expand(-1, written.shape[1], -1)
        generated = written.gather(2, word_ids).exp() * (ids < written.shape[2])[:, None]
        sources = (copied.exp() @ same + generated).max(2)
        words = written.max(2)
        copies = ids.gather(1, sources.indices)
        return torch.where(sources.values > words.values.exp(), copies, words.indices)

    def reorder(self, state: EditState, rows: Tensor) -> EditState:
        """Select `rows` of the state, which may repeat."""
        decoder, used = state.decoder.reorder(rows)
        prepared = state.prepared if used is None else state.prepared.index_select(0, used)
        sources = state.sources.reorder(rows)
        return EditState(sources, prepared, decoder, state.width)

    def log_likelihoods(
        self, batch: EditBatch, *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return log p of each target token after BOS: (B, T), 0 at padding.

        A token that can be neither generated nor copied is scored as UNK.
        """
        probs = self._probs(batch, generator=generator)
        likelihoods = torch.logaddexp(probs.written, probs.copied.logsumexp(2))
        is_lost = likelihoods < NEVER / 2
        return torch.where(is_lost, probs.unknown, likelihoods) * batch.target.mask[:, 1:]

    def origins(self, batch: EditBatch) -> Tensor:
        """Return log p of generating each target token and of copying it by source: (B, T, 1+R)."""
        probs = self._probs(batch, generator=None)
        by_source = [
            probs.copied.masked_fill((probs.source_ids != source_id)[:, None], NEVER).logsumexp(2)
            for source_id in range(len(self.copyable))
        ]
        return torch.stack([probs.written, *by_source], 2)

    def _probs(self, batch: EditBatch, *, generator: torch.Generator | None) -> "_Probs":
        """Run teacher forcing over the target."""
        start = self.encode(batch, generator=generator)
        states, _ = self.read(start, batch.target.ids[:, :-1], generator=generator)
        expected = batch.target.ids[:, 1:]
        words = expected.clamp(max=self.sizes.output_vocab_size - 1)
        words = torch.stack([words, torch.full_like(words, UNK_ID)], 2)
        written, total = selected_logits(self.write, states, words)
        copied = self._copied(states, start)
        total = torch.logaddexp(total, copied.logsumexp(2, keepdim=True))
        written, copied = written - total, copied - total
        yields = (expected[:, :, None] == start.sources.ids[:, None]) & (copied > NEVER / 2)
        return _Probs(
            torch.where(expected < self.sizes.output_vocab_size, written[:, :, 0], NEVER),
            copied.masked_fill(~yields, NEVER),
            start.sources.source_ids,
            written[:, :, 1],
        )


OOV_SLOTS = 40
"""OOVs of an example that pointer copying tells apart; further ones share these slots."""

FIELD_SLOTS, OUTPUT_SLOTS = 100, 300
"""Positional copy tokens per field of x and of y', as in the paper."""

SLOT_WIDTHS = {"pointer": 32, "positional": 100, "prototype": 100, "none": 32}
"""Sizes of the slot embeddings; of positional copying, as in the paper."""

ARCHITECTURES: dict[str, tuple[type[Encoder], type[Decoder]]] = {
    "transformer": (TransformerEncoder, TransformerDecoder),
    "lstm": (LSTMEncoder, LSTMDecoder),
}


def copyable_sources(sizes: EditSizes, copying: str) -> list[bool]:
    """Return for each source whether `copying` takes tokens from it: some need a prototype."""
    first = {"none": len(sizes.copyable), "prototype": sizes.fields}.get(copying, 0)
    return [allowed and i >= first for i, allowed in enumerate(sizes.copyable)]


def _pointer(sizes: EditSizes, config: EditNetworkConfig) -> Copying:
    return PointerCopying(OOV_SLOTS, config.width, config.width, vocab_size=sizes.vocab_size)


def _positional(sizes: EditSizes, config: EditNetworkConfig) -> Copying:
    limits = [
        0 if not allowed else FIELD_SLOTS if source_id < sizes.fields else OUTPUT_SLOTS
        for source_id, allowed in enumerate(copyable_sources(sizes, config.copying))
    ]
    return PositionalCopying(limits, config.width) if sum(limits) else NoCopying()


COPYINGS: dict[str, Callable[[EditSizes, EditNetworkConfig], Copying]] = {
    "pointer": _pointer,
    "positional": _positional,
    "prototype": _positional,  # from y' alone
    "none": lambda *_: NoCopying(),
}
