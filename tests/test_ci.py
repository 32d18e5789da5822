"""The workflow of GitHub Actions runs what must hold before a change lands."""

import os
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent


def test_the_workflow_runs_the_checks_of_the_repository() -> None:
    [path] = (ROOT / ".github" / "workflows").glob("*.yml")
    workflow = yaml.safe_load(path.read_text())
    # YAML 1.1 reads the key `on` as True
    assert set(workflow) == {"name", True, "permissions", "concurrency", "jobs"}
    assert "pull_request" in workflow[True]
    [job] = workflow["jobs"].values()
    assert set(job) == {"runs-on", "container", "timeout-minutes", "steps"}
    runs = [step["run"] for step in job["steps"] if "run" in step]
    assert runs == [".ci/run"]
    assert os.access(ROOT / runs[0], os.X_OK)
    used = [step["uses"] for step in job["steps"] if "uses" in step]
    assert used[0].startswith("actions/checkout@")
    assert all("@" in name for name in used)
