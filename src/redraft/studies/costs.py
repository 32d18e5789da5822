"""What a system costs: its size, and the time that its training took."""

from pathlib import Path

from torch import nn

from redraft.studies.results import DECIMALS
from redraft.training.loop import LOG, last_report

COSTS = {"core_minutes": "training, core minutes", "millions": "parameters, millions"}


def training_costs(network: nn.Module, *folders: Path) -> dict[str, float]:
    """The costs of a network, of all its members and its retriever, that were trained there."""
    reports = [last_report(log.parent) for folder in folders for log in folder.rglob(LOG)]
    parameters = sum(each.numel() for each in network.parameters())
    return {
        "core_minutes": round(sum(each.core_seconds for each in reports) / 60, DECIMALS),
        "millions": round(parameters / 1e6, DECIMALS),
    }


def training_seconds(*folders: Path) -> float:
    """How long the trainings in folders took, with all that was resumed."""
    logs = [log for folder in folders for log in folder.rglob(LOG)]
    return round(sum(last_report(log.parent).seconds for log in logs), 1)
