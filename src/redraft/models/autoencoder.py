"""The network of the paper's retriever: an encoder to a direction, vMF noise and a decoder.

The encoder reads the fields of x. The decoder reconstructs the target from one noisy sample of the
direction. The caller chooses the target: y gives a task-dependent space, x an autoencoder.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from redraft.models import vmf
from redraft.models.batch import Sequences
from redraft.models.config import AutoencoderConfig
from redraft.models.dropout import drop_tokens, dropout
from redraft.models.lstm import BidirectionalLSTM, ResidualLSTM
from redraft.text.vocabulary import SPECIAL, UNK_ID

TARGET_WORDS = 5_000
"""Size of the decoder's output vocabulary, the most frequent words (as in the paper)."""


class FieldsEncoder(nn.Module):
    """One bidirectional LSTM per field, combined linearly into a unit direction mu(x).

    With `bag_of_words` the sum of each field's word embeddings is added, and the LSTM projection is
    initialised to zero: the space starts as a random projection of word counts, where lexical
    neighbours are close, and training moves it from there.
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
            self.combine = nn.Linear(fields * 2 * config.width, config.embedding_dim)
        if config.bag_of_words:
            # One bias is enough, but needed: an input without a known word also has a direction.
            bias = not config.encoder_layers
            self.combine_bags = nn.Linear(
                fields * config.word_width, config.embedding_dim, bias=bias
            )
        if config.encoder_layers and config.bag_of_words:
            nn.init.zeros_(self.combine.weight)

    def forward(self, fields: list[Sequences], *, generator: torch.Generator | None) -> Tensor:
        """Return the direction of each input: (B, D), rows of length 1."""
        rate = self.config.word_dropout
        dropped = [drop_tokens(field.ids, rate, generator=generator) for field in fields]
        words = [self.embedding(ids) for ids in dropped]  # each (B, T, E)
        parts = []
        if self.config.encoder_layers:
            read = zip(self.readers, words, fields, strict=True)
            last = [
                reader(embedded, sequences.lengths, generator=generator)[1]
                for reader, embedded, sequences in read
            ]
            states = dropout(torch.cat(last, 1), self.config.dropout, generator=generator)
            parts.append(self.combine(states))
        if self.config.bag_of_words:
            is_word = [(ids >= len(SPECIAL))[:, :, None] for ids in dropped]
            bags = [(field * mask).sum(1) for field, mask in zip(words, is_word, strict=True)]
            parts.append(self.combine_bags(torch.cat(bags, 1)))
        return functional.normalize(torch.stack(parts).sum(0), dim=1)


class NoisyAutoencoder(nn.Module):
    """Models p(target | x) through a vMF sample around mu(x)."""

    def __init__(self, vocabulary_size: int, fields: int, config: AutoencoderConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = FieldsEncoder(vocabulary_size, fields, config)
        self.read = nn.Linear(config.word_width, config.width)
        self.decoder = ResidualLSTM(
            config.width,
            config.embedding_dim,
            layers=config.decoder_layers,
            dropout_rate=config.dropout,
        )
        self.write = nn.Linear(config.width, min(vocabulary_size, TARGET_WORDS))

    def log_likelihood(
        self, fields: list[Sequences], target: Sequences, *, generator: torch.Generator | None
    ) -> Tensor:
        """Return log p(target | v) per example (B,), v ~ vMF(mu(x)); v = mu(x) if no generator."""
        direction = self.encoder(fields, generator=generator)
        code = direction
        if generator is not None:
            code = vmf.sample(direction, self.config.concentration, generator=generator)
        # Teacher forcing: target is BOS y_1 … y_n EOS.
        words = self.encoder.embedding(target.ids[:, :-1])
        words = dropout(words, self.config.dropout, generator=generator)
        states, _ = self.decoder(self.read(words), code, generator=generator)
        mask = target.mask[:, 1:]
        # Ids are sorted by frequency: rarer words map to UNK, which keeps the softmax small.
        is_rare = target.ids[:, 1:] >= self.write.out_features
        expected = torch.where(is_rare, UNK_ID, target.ids[:, 1:])
        # Padding is removed before the largest matrix product.
        scores = self.write(states[mask])  # (tokens, V)
        losses = functional.cross_entropy(scores, expected[mask], reduction="none")
        rows = torch.arange(len(mask), device=mask.device)[:, None].expand_as(mask)[mask]
        return -torch.zeros(len(mask), device=mask.device).index_add(0, rows, losses)
