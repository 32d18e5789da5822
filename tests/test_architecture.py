"""The tree is the architecture: imports point towards the leaves, and no file grows too large."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "redraft"

LAYERS = (
    "errors",
    "types",
    "storage",
    "config",
    "text",
    "data",
    "mining",
    "models",
    "index",
    "postgres",
    "lm",
    "editing",
    "retrieval",
    "model",
    "registry",
    "persistence",
    "predictor",
    "metrics",
    "report",
    "training",
    "comparison",
    "integrations",
    "bulk",
    "completion",
    "server",
    "cli",
    "__main__",
)
"""From leaf to root: a module may import what stands before it, or its own layer."""

DOORS = {("model", "persistence"), ("model", "training"), ("types", "text"), ("storage", "index")}
"""Imports inside methods, so that classes have the methods that users expect."""

MAX_LINES = 400

MODULES = sorted(PACKAGE.rglob("*.py"))
RESEARCH = sorted((ROOT / "experiments").rglob("*.py"))


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


@pytest.mark.parametrize(
    "path", [*MODULES, *RESEARCH], ids=lambda path: str(path.relative_to(ROOT))
)
def test_no_file_grows_past_the_limit(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MAX_LINES


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_product_does_not_know_the_research_on_it(path: Path) -> None:
    assert not [module for module in imports(path) if module.split(".")[0] == "experiments"]


@pytest.mark.parametrize(
    "path", [*MODULES, *RESEARCH], ids=lambda path: str(path.relative_to(ROOT))
)
def test_every_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_no_model_is_ever_unpickled() -> None:
    for path in MODULES:
        text = path.read_text()
        assert "import pickle" not in text
        assert "torch.load(" not in text
        assert "allow_pickle=True" not in text


MUST_NOT_KNOW = {
    "types": {"torch", "numpy", "scipy", "faiss", "safetensors"},
    "storage": {"torch", "faiss", "fastapi", "typer"},
    "config": {"torch", "faiss", "safetensors", "fastapi", "typer"},
    "text": {"torch", "faiss", "safetensors", "fastapi", "typer"},
    "data": {"torch", "faiss", "fastapi", "typer"},
    "mining": {"torch", "faiss", "fastapi", "typer"},
    "models": {"faiss", "fastapi", "typer"},
    "index": {"torch", "fastapi", "typer"},
    "postgres": {"torch", "faiss", "safetensors"},
    "retrieval": {"fastapi", "typer", "faiss"},
    "lm": {"torch", "faiss", "safetensors", "fastapi", "typer", "openai"},
    "editing": {"fastapi", "typer", "faiss"},
    "metrics": {"fastapi", "typer", "faiss"},
    "model": {"torch", "faiss", "safetensors"},
    "registry": {"torch", "faiss", "safetensors"},
    "persistence": {"torch", "faiss", "safetensors"},
    "report": {"torch", "faiss", "safetensors"},
    "bulk": {"torch", "faiss", "safetensors"},
    "completion": {"torch", "faiss", "safetensors", "pygls", "lsprotocol", "fastapi", "typer"},
    "server": {"torch", "faiss", "safetensors", "typer"},
    "cli": {"torch", "faiss", "safetensors"},
}
"""Third-party packages that a package promises not to know."""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_packages_do_not_know_what_they_promise_not_to(path: Path) -> None:
    package = path.relative_to(PACKAGE).with_suffix("").parts[0]
    imported = {module.split(".")[0] for module in imports(path)}
    assert not imported & MUST_NOT_KNOW.get(package, set())


KNOWS_NO_TORCH = (
    *("models/config.py", "retrieval/base.py", "retrieval/bm25.py", "retrieval/bow.py"),
    *("editing/base.py", "editing/confidence.py", "editing/decoding.py", "editing/session.py"),
    *("metrics/scores.py", "metrics/retrieval_quality.py"),
    *("training/editor_config.py", "training/fit.py", "training/fit_model.py"),
    *("training/progress.py", "training/retriever_config.py", "training/schedule.py"),
)
"""Modules without torch in packages that know it."""


@pytest.mark.parametrize("name", KNOWS_NO_TORCH)
def test_modules_without_networks_import_no_neural_package(name: str) -> None:
    imported = {module.split(".")[0] for module in imports(PACKAGE / name)}
    assert not imported & {"torch", "faiss", "safetensors"}


def test_no_public_class_name_stands_for_two_things() -> None:
    names = Counter(
        node.name
        for path in MODULES
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_storage_classes_are_told_apart_only_where_they_are_defined() -> None:
    check = re.compile(r"isinstance\([^)]*\b(InMemoryExamples|DiskExamples|PostgresExamples)\b")
    outside = [path for path in MODULES if path.parent.name not in ("storage", "postgres")]
    assert [path for path in outside if check.search(path.read_text())] == []


def test_the_private_vocabulary_does_not_come_back() -> None:
    words = (
        "foresee|foreseen|remembered|studied|filed|chances|surprise|numbering|likeness|mend|told"
    )
    private = re.compile(rf"\b({words})\b", re.IGNORECASE)
    found = {path.name: private.findall(path.read_text()) for path in MODULES}
    assert {name: hits for name, hits in found.items() if hits} == {}
