"""The editor as a network: p_edit(y | x, (x', y')), token by token, words generated or copied.

The sources are encoded, a decoder attends to them, and one softmax over the words that can be
written and the places that can be copied from gives the next token: its probability is that of
generating it and of every copy that yields it, summed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from redraft.data.edit_numbers import EditBatch
from redraft.data.vocabulary import UNKNOWN_NUMBER
from redraft.errors import ConfigError
from redraft.models.causal import CausalDecoder, SourceEmbedding
from redraft.models.chosen_words import chosen_words
from redraft.models.copying import NEVER, Copying, NoCopying, PointerCopying, PositionalCopying
from redraft.models.decoder import Decoder, DecoderState, LSTMDecoder, TransformerDecoder
from redraft.models.dropout import drop_tokens
from redraft.models.encoder import LSTMEncoder, TransformerEncoder
from redraft.models.ensemble import EditDistribution
from redraft.models.matching import Matching
from redraft.models.memory import Sources


@dataclass(frozen=True)
class EditNetworkConfig:
    """Architecture, sizes and noise."""

    architecture: str = "transformer"
    copying: str = "pointer"
    copies_prototype: bool = True
    copies_input: bool = True
    slots: int = 40
    word_width: int = 128
    slot_width: int = 32
    width: int = 128
    encoder_layers: int = 2
    decoder_layers: int = 3
    heads: int = 4
    dropout: float = 0.1
    word_dropout: float = 0.0
    match_length: int = 4  # words before a place that are compared with those written last
    agreement: float = 1.0  # what each of them is worth before all training
    expects_words: bool = False  # the most frequent ones from the start

    def __post_init__(self) -> None:
        for name, table in (("architecture", ARCHITECTURES), ("copying", COPYINGS)):
            value = getattr(self, name)
            if value not in table:
                raise ConfigError(f"{name} is {value!r}; choose one of: {', '.join(table)}")
        if self.slots < 1:
            raise ConfigError(f"slots is {self.slots}; make it 1 or more")
        if self.width % (2 * self.heads):
            raise ConfigError(
                f"width {self.width} must be a multiple of twice the heads ({self.heads})"
            )


@dataclass(frozen=True)
class EditSizes:
    """What the data decides: words known and written, and what the sources are."""

    known: int
    written: int
    fields: int
    copyable: tuple[bool, ...]  # of each source; the fields of x come first, y' last


@dataclass(frozen=True)
class EditState:
    """Between two tokens: the sources, what was prepared of them, and the decoder's own state."""

    sources: Sources  # of each row
    prepared: Tensor  # of each memory
    decoder: DecoderState
    width: int  # of the distributions: all known words and the unknown ones of the sources
    recent: Tensor  # (R, match_length), the tokens read last


@dataclass(frozen=True)
class Read:
    """What was read at once: the decoder's states, and the tokens with those just before them."""

    states: Tensor  # (B, T, D)
    history: Tensor  # (B, match_length + T)

    def last(self) -> "Read":
        """That of the last token alone."""
        earlier = self.history.shape[1] - self.states.shape[1]
        return Read(self.states[:, -1:], self.history[:, -1 - earlier :])


@dataclass(frozen=True)
class _Chances:
    """Logs of the ways in which each token of a target can come out."""

    written: Tensor  # (B, T)
    copied: Tensor  # (B, T, S), from each place that has the token
    roles: Tensor  # (B, S)
    unknown: Tensor  # (B, T), that an unknown token is written


class EditNetwork(EditDistribution):
    """Encoder, decoder and copying as one distribution."""

    def __init__(self, sizes: EditSizes, config: EditNetworkConfig) -> None:
        super().__init__()
        self.sizes = sizes
        self.config = config
        self.copyable = [
            allowed
            and config.copying != "none"
            and (config.copies_input if role < sizes.fields else config.copies_prototype)
            for role, allowed in enumerate(sizes.copyable)
        ]
        embedded_width = config.word_width + config.slot_width
        self.encoder, self.decoder = ARCHITECTURES[config.architecture](
            sizes, embedded_width, config
        )
        self.copying = COPYINGS[config.copying](self.copyable, self.encoder.width, sizes, config)
        self.words = nn.Embedding(sizes.known, config.word_width, padding_idx=0)
        self.slots = nn.Embedding(self.copying.slots + 1, config.slot_width, padding_idx=0)
        self.matching = Matching(
            len(sizes.copyable), config.match_length, agreement=config.agreement
        )
        self.write = nn.Linear(self.decoder.width, sizes.written)

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return self.words.weight.device

    def expect_words(self, counts: Sequence[int]) -> None:
        """Begin with each word as likely to be written as its count: it need not be learned."""
        known = torch.tensor(counts, dtype=torch.float) + 0.5
        with torch.no_grad():
            self.write.bias.copy_((known / known.sum()).log() + WRITES)

    def encode(self, batch: EditBatch, *, generator: torch.Generator | None) -> EditState:
        """The state before the first token."""
        sources = Sources.join(batch.sources, self.copyable)
        if self.encoder.packs:
            sources = sources.packed(self.sizes.fields)
        embedded = self._embed(sources.ids, sources, generator=generator)
        memory = self.encoder(embedded, sources, generator=generator)
        prepared = self.copying.prepare(memory)
        decoder = self.decoder.start(memory, generator=generator)
        recent = self.matching.begin(len(sources.ids), sources.ids.device)
        return EditState(sources, prepared, decoder, batch.width, recent)

    def _embed(self, ids: Tensor, sources: Sources, *, generator: torch.Generator | None) -> Tensor:
        """Each token as [word ; slot]; of an unknown word only the slot tells: (B, T, E)."""
        known = torch.where(ids < self.sizes.known, ids, UNKNOWN_NUMBER)
        rate = self.config.word_dropout
        known = drop_tokens(known, rate, unknown=UNKNOWN_NUMBER, generator=generator)
        slots = self.copying.slots_of(ids, sources)
        return torch.cat([self.words(known), self.slots(slots)], 2)

    def read(
        self, state: EditState, tokens: Tensor, *, generator: torch.Generator | None = None
    ) -> tuple[Read, EditState]:
        """Read tokens (B, T) after those that were read, and the state after them."""
        embedded = self._embed(tokens, state.sources, generator=generator)
        states, decoder = self.decoder(embedded, state.decoder, generator=generator)
        history = torch.cat([state.recent, tokens], 1)
        recent = history[:, tokens.shape[1] :]
        return Read(states, history), replace(state, decoder=decoder, recent=recent)

    def scores(self, read: Read, state: EditState) -> tuple[Tensor, Tensor]:
        """Logs of the chance to write each word (B, T, V) and to copy from each place (B, T, S)."""
        written, copied = self.write(read.states), self._copied(read, state)
        total = torch.logaddexp(written.logsumexp(2), copied.logsumexp(2))[:, :, None]
        return written - total, copied - total

    def _copied(self, read: Read, state: EditState) -> Tensor:
        """The score of each place (B, T, S), against those of the words."""
        sharing = state.decoder.sharing
        copied = sharing.spread(self.copying(sharing.gather(read.states), state.prepared))
        if self.config.match_length:
            copied = copied + self.matching(read.history, state.sources)
        return copied.masked_fill(~state.sources.copyable[:, None], NEVER)

    def next_tokens(self, read: Read, state: EditState) -> Tensor:
        """Log-probabilities of the token after each that was read: (B, T, width)."""
        written, copied = self.scores(read, state)
        rows, length, words = written.shape
        chances = written.new_zeros(rows, length, state.width)
        chances[:, :, :words] = written.exp()
        places = state.sources.ids[:, None].expand(-1, length, -1)
        return chances.scatter_add_(2, places, copied.exp()).log()

    def likeliest(self, read: Read, state: EditState) -> Tensor:
        """The token that `next_tokens` would put first after each that was read: (B, T)."""
        written, copied = self.scores(read, state)
        ids = state.sources.ids
        # only words of the sources gain by copies: the whole vocabulary need not be summed
        same = (ids[:, :, None] == ids[:, None]).to(copied.dtype)  # (B, S, S)
        places = ids.clamp(max=written.shape[2] - 1)[:, None].expand(-1, written.shape[1], -1)
        generated = written.gather(2, places).exp() * (ids < written.shape[2])[:, None]
        sources = (copied.exp() @ same + generated).max(2)
        words = written.max(2)
        copies = ids.gather(1, sources.indices)
        return torch.where(sources.values > words.values.exp(), copies, words.indices)

    def select(self, state: EditState, rows: Tensor) -> EditState:
        """The state of some rows, which may repeat."""
        decoder, used = state.decoder.select(rows)
        prepared = state.prepared if used is None else state.prepared.index_select(0, used)
        sources = state.sources.select(rows)
        return EditState(sources, prepared, decoder, state.width, state.recent[rows])

    def log_likelihoods(
        self, batch: EditBatch, *, generator: torch.Generator | None = None
    ) -> Tensor:
        """log p of each token of the target after the first: (B, T), 0 at padding.

        A token that can be neither written nor copied counts as the unknown token.
        """
        chances = self._chances(batch, generator=generator)
        likelihoods = torch.logaddexp(chances.written, chances.copied.logsumexp(2))
        is_lost = likelihoods < NEVER / 2
        return torch.where(is_lost, chances.unknown, likelihoods) * batch.target.mask[:, 1:]

    def origins(self, batch: EditBatch) -> Tensor:
        """Logs of the chance that a token is written, or copied from each source: (B, T, 1+R)."""
        chances = self._chances(batch, generator=None)
        of_role = [
            chances.copied.masked_fill((chances.roles != role)[:, None], NEVER).logsumexp(2)
            for role in range(len(self.copyable))
        ]
        return torch.stack([chances.written, *of_role], 2)

    def _chances(self, batch: EditBatch, *, generator: torch.Generator | None) -> "_Chances":
        start = self.encode(batch, generator=generator)
        read, _ = self.read(start, batch.target.ids[:, :-1], generator=generator)
        expected = batch.target.ids[:, 1:]
        words = expected.clamp(max=self.sizes.written - 1)
        words = torch.stack([words, torch.full_like(words, UNKNOWN_NUMBER)], 2)
        written, total = chosen_words(self.write, read.states, words)
        copied = self._copied(read, start)
        total = torch.logaddexp(total, copied.logsumexp(2, keepdim=True))
        written, copied = written - total, copied - total
        yields = (expected[:, :, None] == start.sources.ids[:, None]) & (copied > NEVER / 2)
        return _Chances(
            torch.where(expected < self.sizes.written, written[:, :, 0], NEVER),
            copied.masked_fill(~yields, NEVER),
            start.sources.roles,
            written[:, :, 1],
        )


def _lstm(
    sizes: EditSizes, embedded_width: int, config: EditNetworkConfig
) -> tuple[LSTMEncoder, Decoder]:
    roles, rate = len(sizes.copyable), config.dropout
    encoder = LSTMEncoder(
        roles, embedded_width, config.width, layers=config.encoder_layers, dropout_rate=rate
    )
    decoder = LSTMDecoder(
        roles,
        embedded_width,
        encoder.width,
        config.width,
        layers=config.decoder_layers,
        dropout_rate=rate,
    )
    return encoder, decoder


def _transformer(
    sizes: EditSizes, embedded_width: int, config: EditNetworkConfig
) -> tuple[TransformerEncoder, Decoder]:
    roles, width, heads, rate = len(sizes.copyable), config.width, config.heads, config.dropout
    encoder = TransformerEncoder(
        sizes.fields,
        roles,
        embedded_width,
        width,
        layers=config.encoder_layers,
        heads=heads,
        dropout_rate=rate,
    )
    decoder = TransformerDecoder(
        sizes.fields,
        roles,
        embedded_width,
        width,
        layers=config.decoder_layers,
        heads=heads,
        dropout_rate=rate,
    )
    return encoder, decoder


def _decoder_only(
    sizes: EditSizes, embedded_width: int, config: EditNetworkConfig
) -> tuple[SourceEmbedding, Decoder]:
    width, rate = config.width, config.dropout
    embedding = SourceEmbedding(len(sizes.copyable), embedded_width, width, dropout_rate=rate)
    # as deep as the others: one stack does what their encoder and their decoder do
    layers = config.encoder_layers + config.decoder_layers
    decoder = CausalDecoder(
        embedded_width, width, layers=layers, heads=config.heads, dropout_rate=rate
    )
    return embedding, decoder


def _positional(
    copyable: list[bool], _: int, sizes: EditSizes, config: EditNetworkConfig
) -> Copying:
    limits = [
        0 if not allowed else FIELD_SLOTS if role < sizes.fields else config.slots
        for role, allowed in enumerate(copyable)
    ]
    return PositionalCopying(limits, config.width) if sum(limits) else NoCopying()


def _pointer(
    _: list[bool], memory_width: int, sizes: EditSizes, config: EditNetworkConfig
) -> Copying:
    return PointerCopying(config.slots, config.width, memory_width, known=sizes.known)


WRITES = 3.0
"""The log of how much more likely a word is written, before all training, than one place copied."""

FIELD_SLOTS = 100
"""Positional copy tokens of each field of x; y' has as many as there are slots."""

ARCHITECTURES: dict[
    str,
    Callable[
        [EditSizes, int, EditNetworkConfig],
        tuple[LSTMEncoder | TransformerEncoder | SourceEmbedding, Decoder],
    ],
] = {"transformer": _transformer, "lstm": _lstm, "decoder-only": _decoder_only}
COPYINGS: dict[str, Callable[[list[bool], int, EditSizes, EditNetworkConfig], Copying]] = {
    "pointer": _pointer,
    "positional": _positional,
    "none": lambda *_: NoCopying(),
}
