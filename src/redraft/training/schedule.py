"""Settings of the training loop, and the options of a run that are not settings of the model.

Knows no torch, so that they can be checked and printed where it is not installed.
"""

from dataclasses import dataclass
from typing import Annotated

from redraft.config.ranges import SECONDS, SEED, STEPS, Range, check_ranges
from redraft.training.process_group import SINGLE_PROCESS, ProcessGroup
from redraft.training.progress import OnStep


@dataclass(frozen=True)
class AdamConfig:
    """Steps of Adam and their learning rate."""

    steps: Annotated[int, STEPS] = 1000
    batch_size: Annotated[int, Range(1, 65_536)] = 16
    learning_rate: Annotated[float, Range(0.0, 10.0, above=True)] = 1e-3

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True)
class TrainingConfig(AdamConfig):
    """Steps of Adam, a schedule of the learning rate, and an average of the weights."""

    lr_decay: bool = False  # warm-up (see WARMUP_STEPS in `trainer`), then linear decay to 0
    # exponential moving average of the weights; 0 disables it; see REACH in `trainer`
    ema_decay: Annotated[float, Range(0.0, 1.0, below=True)] = 0.0


@dataclass(frozen=True)
class RunOptions:
    """Options of a training run that are not settings of the model.

    `budget` is in seconds, 0 for no limit: the steps are reduced to fit. `device` is a name that
    `choose_device` knows. `on_step` receives a report after every step.
    """

    seed: Annotated[int, SEED] = 0
    budget: Annotated[float, SECONDS] = 0.0
    device: str = "cpu"
    on_step: OnStep | None = None
    workers: ProcessGroup = SINGLE_PROCESS

    def __post_init__(self) -> None:
        check_ranges(self)
