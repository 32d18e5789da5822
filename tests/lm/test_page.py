"""The Python of docs/language_models.md runs and prints what the page shows."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "language_models.md").read_text()


def test_the_selection_of_the_page_prints_what_it_shows() -> None:
    block = re.search(r"```python\n(import redraft.*?)```\n\n```\n(.*?)```", PAGE, re.DOTALL)
    assert block is not None
    code, shown = block.groups()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == shown


def test_every_option_of_the_page_exists() -> None:
    sources = "".join(
        (Path(__file__).parents[2] / "src" / "redraft" / "cli" / name).read_text()
        for name in ("_lm.py", "fit.py", "compare.py", "predict.py", "serve.py")
    )
    named = sources.replace("_", "-")
    for option in set(re.findall(r"`?--([a-z-]+)", PAGE)) - {"no-deps", "format"}:
        assert option in named, option
