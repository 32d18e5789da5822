"""What a training took: that of all members, and of all the parts of one that was resumed."""

import json
from dataclasses import asdict
from pathlib import Path

from torch import nn

from experiments.lib.costs import training_costs, training_seconds
from redraft.training.progress import Report
from redraft.training.run_folder import LOG


def test_the_costs_are_those_that_were_told_last_of_every_member(tmp_path: Path) -> None:
    for name, minutes in (("editor", (1.0, 6.0)), ("editor/member-1", (3.0,))):
        (tmp_path / name).mkdir()
        reports = [
            Report(step, 10, {}, 1.0, 0.0, seconds=30 * each, core_seconds=60 * each)
            for step, each in enumerate(minutes)
        ]
        lines = "".join(json.dumps(asdict(report)) + "\n" for report in reports)
        (tmp_path / name / LOG).write_text(lines)
    network = nn.Linear(1_000, 500, bias=False)
    assert training_costs(network, tmp_path) == {"core_minutes": 9.0, "millions": 0.5}
    assert training_seconds(tmp_path) == 270.0
