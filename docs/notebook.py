"""Run a notebook's cells in order and store their outputs: `python -m docs.notebook FILE`.

A cell's last expression is shown as Jupyter shows it: by `_repr_html_` if it has one, otherwise by
`repr`. Magics and input are not supported; no kernel is needed.
"""

import ast
import json
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any


def run_cells(notebook: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Return the outputs of each code cell, in the notebook format."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [_run("".join(cell["source"]), names, count) for count, cell in enumerate(cells, 1)]


def _run(source: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = StringIO()
    value = None
    with redirect_stdout(printed):
        exec(compile(tree, f"cell {count}", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {count}", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        outputs.append({"output_type": "stream", "name": "stdout", "text": text})
    if value is not None:
        data = {"text/plain": repr(value)[:500].splitlines(keepends=True)}
        if hasattr(value, "_repr_html_"):
            data = {"text/html": value._repr_html_().splitlines(keepends=True), **data}
        result = {"output_type": "execute_result", "metadata": {}, "execution_count": count}
        outputs.append({**result, "data": data})
    return outputs


def main(path: Path) -> None:
    """Run the notebook and write its outputs into it."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    outputs = iter(run_cells(notebook))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for count, cell in enumerate(cells, 1):
        cell |= {"outputs": next(outputs), "execution_count": count}
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
