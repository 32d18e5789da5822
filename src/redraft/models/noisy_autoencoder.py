"""The paper's retriever as a network: an encoder to a direction, vMF noise, and a decoder.

The encoder sees the fields of x; the decoder sees one noisy sample and nothing else, and must
write the target. What the target is, the network does not know: y makes a task-dependent
space, x one of the inputs alone.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from redraft.data.sequences import Sequences
from redraft.errors import ConfigError
from redraft.models import vmf
from redraft.models.dropout import drop_tokens, dropout
from redraft.models.recurrent import BidirectionalLSTM, ResidualLSTM

_UNKNOWN, _LAST_SPECIAL = 1, 3
"""The numbers of the unknown token and of the last token that is no word."""


@dataclass(frozen=True)
class AutoencoderConfig:
    """Sizes and noise: the paper's by default, but for the bag of words."""

    word_width: int = 300
    width: int = 256
    code_width: int = 256
    encoder_layers: int = 2
    decoder_layers: int = 4
    concentration: float = 500.0
    has_bag: bool = True
    dropout: float = 0.0
    word_dropout: float = 0.0
    target_dropout: float = 0.0
    target_words: int = 5_000

    def __post_init__(self) -> None:
        if not (self.encoder_layers or self.has_bag):
            raise ConfigError("an encoder needs encoder_layers or has_bag")


class FieldsEncoder(nn.Module):
    """One bidirectional LSTM a field, combined linearly into a unit direction mu(x).

    With a bag, the sum of each field's word vectors joins the combination, and the LSTMs join
    from zero: the space begins as a random projection of word counts, in which lexical
    neighbours are near, and training moves it from there.
    """

    def __init__(self, vocabulary_size: int, fields: int, config: AutoencoderConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(vocabulary_size, config.word_width, padding_idx=0)
        self.readers = nn.ModuleList(
            BidirectionalLSTM(
                config.word_width,
                config.width,
                layers=config.encoder_layers,
                dropout_rate=config.dropout,
            )
            for _ in range(fields)
            if config.encoder_layers
        )
        if config.encoder_layers:
            self.combine = nn.Linear(fields * 2 * config.width, config.code_width)
        if config.has_bag:
            # one bias is enough, and needed: an input without a known word has a direction too
            bias = not config.encoder_layers
            self.combine_bags = nn.Linear(fields * config.word_width, config.code_width, bias=bias)
        if config.encoder_layers and config.has_bag:
            nn.init.zeros_(self.combine.weight)

    def forward(self, fields: list[Sequences], *, generator: torch.Generator | None) -> Tensor:
        """The direction of each input: (B, D), rows of length 1."""
        rate = self.config.word_dropout
        dropped = [
            drop_tokens(each.ids, rate, unknown=_UNKNOWN, generator=generator) for each in fields
        ]
        words = [self.embedding(ids) for ids in dropped]  # each (B, T, E)
        parts = []
        if self.config.encoder_layers:
            parts.append(self._read(words, fields, generator=generator))
        if self.config.has_bag:
            known = [(ids > _LAST_SPECIAL)[:, :, None] for ids in dropped]
            bags = [(each * real).sum(1) for each, real in zip(words, known, strict=True)]
            parts.append(self.combine_bags(torch.cat(bags, 1)))
        return functional.normalize(torch.stack(parts).sum(0), dim=1)

    def _read(
        self, words: list[Tensor], fields: list[Sequences], *, generator: torch.Generator | None
    ) -> Tensor:
        """The LSTMs' last states of all fields, combined: (B, D)."""
        states = [
            reader(each, sequences.lengths, generator=generator)[1]
            for reader, each, sequences in zip(self.readers, words, fields, strict=True)
        ]
        rate = self.config.dropout
        combined: Tensor = self.combine(dropout(torch.cat(states, 1), rate, generator=generator))
        return combined


class NoisyAutoencoder(nn.Module):
    """p(target | x) through a vMF sample around mu(x)."""

    def __init__(self, vocabulary_size: int, fields: int, config: AutoencoderConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = FieldsEncoder(vocabulary_size, fields, config)
        self.read = nn.Linear(config.word_width, config.width)
        self.decoder = ResidualLSTM(
            config.width,
            config.code_width,
            layers=config.decoder_layers,
            dropout_rate=config.dropout,
        )
        self.write = nn.Linear(config.width, min(vocabulary_size, config.target_words))

    def encode(self, fields: list[Sequences]) -> Tensor:
        """The directions mu(x), without noise: (B, D)."""
        direction: Tensor = self.encoder(fields, generator=None)
        return direction

    def log_likelihood(
        self, fields: list[Sequences], target: Sequences, *, generator: torch.Generator | None
    ) -> Tensor:
        """log p(target | v) of each example (B,), v drawn around mu(x); mu without a generator."""
        direction = self.encoder(fields, generator=generator)
        code = direction
        if generator is not None:
            code = vmf.sample(direction, self.config.concentration, generator=generator)
        # target is START y_1 … y_n END: each token is predicted from those before it
        rate = self.config.target_dropout
        read = drop_tokens(target.ids[:, :-1], rate, unknown=_UNKNOWN, generator=generator)
        words = self.encoder.embedding(read)
        words = dropout(words, self.config.dropout, generator=generator)
        states, _ = self.decoder(self.read(words), code, generator=generator)
        mask = target.mask[:, 1:]
        # numbers follow frequency: the rarer words are all one unknown, and the softmax is narrow
        rare = target.ids[:, 1:] >= self.write.out_features
        expected = torch.where(rare, _UNKNOWN, target.ids[:, 1:])
        # only real positions reach the softmax: padding would cost its widest product
        scores = self.write(states[mask])  # (tokens, V)
        losses = functional.cross_entropy(scores, expected[mask], reduction="none")
        rows = torch.arange(len(mask), device=mask.device)[:, None].expand_as(mask)[mask]
        return -torch.zeros(len(mask), device=mask.device).index_add(0, rows, losses)
