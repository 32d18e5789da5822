"""Settings of the training loop: steps, learning rate, validation and checkpoints.

Knows no torch, so that they can be checked and printed where it is not installed.
"""

from dataclasses import dataclass
from typing import Annotated

from redraft.config.ranges import SECONDS, SEED, STEPS, Range, check_ranges


@dataclass(frozen=True)
class TrainingConfig:
    """Steps, learning rate schedule, validation and checkpointing."""

    steps: Annotated[int, STEPS] = 1000
    batch_size: Annotated[int, Range(1, 65_536)] = 16
    learning_rate: Annotated[float, Range(0.0, 10.0, above=True)] = 1e-3
    warmup_steps: Annotated[int, Range(0, STEPS.high)] = 0
    lr_decay: bool = False  # linear decay to 0
    evaluate_every: Annotated[int, STEPS] = 100
    seed: Annotated[int, SEED] = 0
    # exponential moving average of the weights; 0 disables it; see REACH in `trainer`
    ema_decay: Annotated[float, Range(0.0, 1.0, below=True)] = 0.0
    # seconds; the steps are reduced to fit; 0 is no limit
    budget: Annotated[float, SECONDS] = 0.0
    save_seconds: Annotated[float, SECONDS] = 60.0

    def __post_init__(self) -> None:
        check_ranges(self)
