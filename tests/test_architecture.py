"""The tree is the architecture: imports point towards the leaves, and no file grows too large."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "redraft"

LAYERS = (
    "errors",
    "config",
    "artifact",
    "data",
    "models",
    "retrieval",
    "editing",
    "retrieve_and_edit",
    "training",
    "evaluation",
    "fitting",
    "experiment",
    "bulk",
    "autocomplete",
    "studies",
    "serving",
    "cli",
    "__main__",
)
"""From leaf to root: a module may import what stands before it, or its own layer."""

DOORS = {("retrieve_and_edit", "experiment"), ("retrieve_and_edit", "fitting")}
"""The class reaches the composition root for fit, save and load, inside its methods."""

MAX_LINES = 400

MODULES = sorted(PACKAGE.rglob("*.py"))


def layer(module: str) -> str:
    return module.split(".")[1]


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, wherever the import stands."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "redraft":
                yield from (f"redraft.{alias.name}" for alias in node.names)
            else:
                yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_towards_the_leaves(path: Path) -> None:
    relative = path.relative_to(PACKAGE).with_suffix("")
    if relative == Path("__init__"):
        return
    own = relative.parts[0]
    assert own in LAYERS, f"{own} has no place in the order of layers"
    for module in imports(path):
        if not module.startswith("redraft.") or layer(module) == "__version__":
            continue
        other = layer(module)
        allowed = LAYERS.index(other) <= LAYERS.index(own) or (own, other) in DOORS
        assert allowed, f"{relative} imports {module}, which is nearer to the root"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_file_grows_past_the_limit(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MAX_LINES


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_no_model_is_ever_unpickled() -> None:
    for path in MODULES:
        text = path.read_text()
        assert "import pickle" not in text
        assert "torch.load(" not in text
        assert "allow_pickle=True" not in text
