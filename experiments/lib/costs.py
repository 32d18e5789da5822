"""The costs of a system: its size and the time of its training."""

from pathlib import Path

from torch import nn

from experiments.lib.results import DECIMALS
from redraft.training.progress import last_report
from redraft.training.run_folder import LOG

COSTS = {"core_minutes": "training, core minutes", "millions": "parameters, millions"}


def training_costs(network: nn.Module, *folders: Path) -> dict[str, float]:
    """Return parameters and core minutes of `network`, whose trainings are in `folders`."""
    reports = [last_report(log.parent) for folder in folders for log in folder.rglob(LOG)]
    parameters = sum(each.numel() for each in network.parameters())
    return {
        "core_minutes": round(sum(each.core_seconds for each in reports) / 60, DECIMALS),
        "millions": round(parameters / 1e6, DECIMALS),
    }


def training_seconds(*folders: Path) -> float:
    """Return the seconds of all trainings in `folders`, resumed parts included."""
    logs = [log for folder in folders for log in folder.rglob(LOG)]
    return round(sum(last_report(log.parent).seconds for log in logs), 1)
