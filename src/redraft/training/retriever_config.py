"""All settings of a learned retriever and of its training, and their presets.

Knows no torch, so that they can be checked and printed where it is not installed.
"""

from dataclasses import dataclass, field

from redraft.config import presets
from redraft.config.toml import build
from redraft.models.config import AutoencoderConfig
from redraft.text.token_encoder import TokenEncoderConfig
from redraft.training.schedule import AdamConfig


@dataclass(frozen=True)
class RetrieverConfig:
    """All settings of a learned retriever and of its training."""

    network: AutoencoderConfig = field(default_factory=AutoencoderConfig)
    encoding: TokenEncoderConfig = field(default_factory=TokenEncoderConfig)
    training: AdamConfig = field(default_factory=AdamConfig)


def default_config(examples: int) -> RetrieverConfig:
    """Return the preset for this many training examples."""
    return preset_config(presets.choose(examples), examples)


def preset_config(name: str, examples: int) -> RetrieverConfig:
    """Return the retriever's settings of a preset for this many training examples."""
    tables = presets.preset(name, examples)
    return build(RetrieverConfig, tables["retriever"], where=f"preset {name}")
