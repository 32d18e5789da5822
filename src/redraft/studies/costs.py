"""What a system costs: its size, and the time that its training took."""

from pathlib import Path

from torch import nn

from redraft.studies.results import DECIMALS
from redraft.training.loop import LOG, last_report

COSTS = {"core_minutes": "training, core minutes", "millions": "parameters, millions"}


def training_costs(folder: Path, network: nn.Module) -> dict[str, float]:
    """The costs of a network, of all its members, that was trained in a folder."""
    reports = [last_report(log.parent) for log in folder.rglob(LOG)]
    parameters = sum(each.numel() for each in network.parameters())
    return {
        "core_minutes": round(sum(each.core_seconds for each in reports) / 60, DECIMALS),
        "millions": round(parameters / 1e6, DECIMALS),
    }


def training_seconds(folder: Path) -> float:
    """How long the training in a folder took, with all that was resumed."""
    return round(sum(last_report(log.parent).seconds for log in folder.rglob(LOG)), 1)
