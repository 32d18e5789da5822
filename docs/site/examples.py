"""Show the scripts and notebooks of examples/ as pages."""

import ast
import json
from pathlib import Path
from typing import Any


def example_page(path: Path) -> str:
    """Return the page of a script or of a notebook with its stored outputs."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        return _notebook(json.loads(source))
    return f"# {path.name}\n\n```python\n{source}```\n"


def examples_page(folder: Path) -> str:
    """Return the list of the examples, each with the first line of its text."""
    lines = ["# Examples", "", "Each runs as it is, and the tests run all of them.", ""]
    lines += ["| file | shows |", "|---|---|"]
    for path in sorted(folder.iterdir()):
        if path.suffix in (".py", ".ipynb"):
            lines.append(f"| [{path.name}]({path.stem}.md) | {_summary(path)} |")
    return "\n".join(lines) + "\n"


def _summary(path: Path) -> str:
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return (ast.get_docstring(ast.parse(source)) or "").splitlines()[0]
    heading = "".join(json.loads(source)["cells"][0]["source"]).splitlines()[0]
    return heading.lstrip("# ")


def _notebook(notebook: dict[str, Any]) -> str:
    parts: list[str] = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
            continue
        parts.append(f"```python\n{text}\n```")
        parts += [_output(output) for output in cell["outputs"]]
    return "\n\n".join(parts) + "\n"


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "text/html" in data:
        # one line: Python-Markdown ends a block of HTML at a blank line
        lines = [line.strip() for line in "".join(data["text/html"]).splitlines()]
        return f'<div class="notebook-output">{"&#10;".join(filter(None, lines))}</div>'
    text = "".join(output.get("text", data.get("text/plain", [])))
    return f"```text\n{text.rstrip()}\n```"
