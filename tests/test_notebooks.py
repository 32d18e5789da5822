"""The example notebook runs, and the outputs stored in it are those of its code."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from docs.notebook import run_cells

ROOT = Path(__file__).parent.parent


def shown(outputs: list[dict[str, Any]]) -> list[list[str]]:
    """What a reader sees, without digits: confidences differ a little between machines."""
    found = []
    for output in outputs:
        text = output.get("text") or output["data"].get("text/html") or output["data"]["text/plain"]
        found.append(re.sub(r"\d+", "0", "".join(text)).splitlines())
    return found


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.ipynb")), ids=lambda p: p.name)
def test_a_notebook_runs_and_has_the_outputs_of_its_code(path: Path) -> None:
    notebook = json.loads(path.read_text())
    stored = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for fresh, kept in zip(run_cells(notebook), stored, strict=True):
        assert shown(fresh) == shown(kept), "write the outputs with: python -m docs.notebook FILE"
    html = [out["data"].get("text/html") for cell in stored for out in cell if "data" in out]
    assert sum(text is not None for text in html) >= 4
