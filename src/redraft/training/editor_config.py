"""All settings of the neural editor and of its training, and their presets.

Knows no torch, so that they can be checked and printed where it is not installed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from redraft.config import presets
from redraft.config.ranges import SHARE, check_ranges
from redraft.config.toml import build
from redraft.editing.decoding import DecodingConfig
from redraft.errors import ConfigError
from redraft.models.config import EditNetworkConfig
from redraft.text.edit_encoder import EditEncoderConfig
from redraft.training.augmentation import AugmentationConfig
from redraft.training.schedule import TrainingConfig
from redraft.types import Example

PROJECT = "package"
"""The key of meta that names the project of an example."""


@dataclass(frozen=True)
class PrototypesConfig:
    """Sampling of training prototypes.

    For examples of several projects, prototypes come from an index of the example's project, and
    for a share `cross_project` of the examples from other projects. A share `prototype_dropout`
    gets none, which trains the editor to write as well as to copy.
    """

    cross_project: Annotated[float, SHARE] = 0.1
    prototype_dropout: Annotated[float, SHARE] = 0.0

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.cross_project + self.prototype_dropout > 1:
            raise ConfigError(
                f"cross_project is {self.cross_project:g} and prototype_dropout "
                f"{self.prototype_dropout:g}; make them shares of the examples, at most 1 together"
            )


@dataclass(frozen=True)
class EditorConfig:
    """All settings of an editor and of its training."""

    network: EditNetworkConfig = field(default_factory=EditNetworkConfig)
    encoding: EditEncoderConfig = field(default_factory=EditEncoderConfig)
    prototypes: PrototypesConfig = field(default_factory=PrototypesConfig)
    augmentation: AugmentationConfig = field(default_factory=AugmentationConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)


def default_config(examples: int, *, projects: int = 1) -> EditorConfig:
    """Return the preset for this many training examples of this many projects."""
    return preset_config(presets.choose(examples, projects=projects), examples)


def preset_config(name: str, examples: int) -> EditorConfig:
    """Return the editor's settings of a preset for this many training examples."""
    return build(EditorConfig, presets.preset(name, examples)["editor"], where=f"preset {name}")


def count_projects(examples: Sequence[Example]) -> int:
    """Return the number of projects, by the meta of examples; those without a project are one."""
    return len({example.meta.get(PROJECT) for example in examples})
