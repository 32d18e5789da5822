"""Settings of the networks: sizes, dropout rates and the names of their parts.

Knows no torch, so that settings can be checked and printed where it is not installed.
"""

from dataclasses import dataclass
from typing import Annotated

from redraft.config.ranges import DROPOUT, LAYERS, SHARE, WIDTH, Range, check_ranges, shown
from redraft.errors import ConfigError

ARCHITECTURE_NAMES = ["transformer", "lstm"]
COPYING_NAMES = ["pointer", "positional", "prototype", "none"]
"""The keys of `ARCHITECTURES` and `COPYINGS` in `edit_network`."""

ENCODER_LAYERS = 2
"""Layers of the editor's encoder, in the paper too."""

HEADS = 4
"""Attention heads of every Transformer layer."""


@dataclass(frozen=True)
class EditNetworkConfig:
    """Architecture, sizes and dropout rates."""

    architecture: str = "transformer"
    copying: str = "pointer"
    word_width: Annotated[int, WIDTH] = 128
    width: Annotated[int, WIDTH] = 128
    decoder_layers: Annotated[int, LAYERS] = 3
    dropout: Annotated[float, DROPOUT] = 0.1
    word_dropout: Annotated[float, SHARE] = 0.0

    def __post_init__(self) -> None:
        check_ranges(self)
        for name, known in (("architecture", ARCHITECTURE_NAMES), ("copying", COPYING_NAMES)):
            value = getattr(self, name)
            if value not in known:
                raise ConfigError(f"{name} is {shown(value)}; choose one of: {', '.join(known)}")
        if self.width % (2 * HEADS):
            raise ConfigError(f"width is {self.width}; make it a multiple of {2 * HEADS}")


@dataclass(frozen=True)
class AutoencoderConfig:
    """Sizes and noise; the paper's, except for the bag of words and the concentration."""

    word_width: Annotated[int, WIDTH] = 300
    width: Annotated[int, WIDTH] = 256
    # a direction needs two dimensions
    embedding_dim: Annotated[int, Range(2, WIDTH.high)] = 256
    encoder_layers: Annotated[int, Range(0, LAYERS.high)] = 2
    decoder_layers: Annotated[int, LAYERS] = 4
    concentration: Annotated[float, Range(0.0, 1e9)] = 1000.0
    bag_of_words: bool = True
    dropout: Annotated[float, DROPOUT] = 0.0
    word_dropout: Annotated[float, SHARE] = 0.0

    def __post_init__(self) -> None:
        check_ranges(self)
        if not (self.encoder_layers or self.bag_of_words):
            raise ConfigError("an encoder needs encoder_layers or bag_of_words")
