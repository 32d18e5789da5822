"""Retrievers and editors by name: the built-in ones, and those of installed packages.

A package adds parts with entry points in the groups `redraft.retrievers` and `redraft.editors`.
Users can also name any class as `package.module:Class`. A model directory cannot: it is data, and
loading it imports only built-ins, installed entry points, and what `REDRAFT_PARTS` allows.

Classes are imported on first use, because some of them need torch.
"""

import importlib
import inspect
import os
import sys
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from redraft.config.ranges import shown
from redraft.errors import ConfigError, RedraftError, listed, missing_neural

RETRIEVERS = {
    "bow": "redraft.retrieval.bow:BowRetriever",
    "bm25": "redraft.retrieval.bm25:Bm25Retriever",
    "reranked": "redraft.retrieval.reranked:RerankedRetriever",
    "encoder": "redraft.retrieval.fused:EncoderRetriever",
    "auto": "redraft.retrieval.auto:AutoRetriever",
    "task": "redraft.retrieval.dense:TaskRetriever",
    "input": "redraft.retrieval.dense:InputRetriever",
    "none": "redraft.retrieval.base:NoRetriever",
}
EDITORS = {
    "choosing": "redraft.editing.choosing:ChoosingEditor",
    "substitution": "redraft.editing.substitution:SubstitutionEditor",
    "verbatim": "redraft.editing.base:VerbatimEditor",
    "neural": "redraft.editing.neural:NeuralEditor",
    "lm": "redraft.editing.lm_editor:LmEditor",
}
BUILT_IN = {"retriever": RETRIEVERS, "editor": EDITORS}
GROUPS = {"retriever": "redraft.retrievers", "editor": "redraft.editors"}
"""Entry-point groups."""

BASES = {
    "retriever": "redraft.retrieval.base:Retriever",
    "editor": "redraft.editing.base:Editor",
}
ALLOWED = "REDRAFT_PARTS"
"""Environment variable: the `package.module:Class` references that a model may name."""

MOST_NAMES = 16
"""The most parts that an error lists: the built-in ones, and some of installed packages."""

ALIASES = {"lexical": "bow"}
"""Old names, accepted for one release."""


def part_names(kind: str) -> list[str]:
    """Return the names of the built-in and the installed parts of a kind."""
    installed = sorted({point.name for point in _installed(kind)} - set(BUILT_IN[kind]))
    return [*BUILT_IN[kind], *installed]


def find_part(kind: str, name: str) -> type[Any]:
    """Return the class that a user chose: by its name, or as `package.module:Class`.

    `kind` is "retriever" or "editor". Raises a ConfigError if there is no such class, or if it is
    not a part of this kind.
    """
    reference = _find_reference(kind, ALIASES.get(name, name))
    if reference is None and ":" not in name:
        known = listed(part_names(kind), most=MOST_NAMES)
        raise ConfigError(
            f"no {kind} is called {shown(name)}; choose one of: {known}, or package.module:Class"
        )
    return _import_part(kind, reference or name)


def find_saved_part(kind: str, name: str) -> type[Any]:
    """Return the class that a model directory names, without importing arbitrary code.

    A `package.module:Class` reference is accepted if the module is already imported, or if the
    environment variable `REDRAFT_PARTS` lists it. Otherwise raises a ConfigError.
    """
    reference = _find_reference(kind, name)
    if reference is not None:
        return _import_part(kind, reference)
    if ":" not in name:
        raise ConfigError(
            f"no {kind} is called {shown(name)} here; install the package that provides it "
            f"(installed: {listed(part_names(kind), most=MOST_NAMES)})"
        )
    if name in (allowed.strip() for allowed in os.environ.get(ALLOWED, "").split(",")):
        return _import_part(kind, name)
    module, _, attribute = name.partition(":")
    if module in sys.modules:
        # not getattr: the module may import on attribute access
        part_type = vars(sys.modules[module]).get(attribute)
        return check_part(kind, part_type, source=shown(name, 200))
    raise ConfigError(
        f"the model's {kind} is {shown(name, 200)}, code that loading a model does not import; "
        f"if you trust it, set {ALLOWED}={shown(name, 200)[1:-1]} or import its module first"
    )


def reference_of(part_type: type[Any]) -> str:
    """Return the `package.module:Class` of a class."""
    return f"{part_type.__module__}:{part_type.__qualname__}"


def saved_name(kind: str, part_type: type[Any]) -> str:
    """Return the name to store in a model directory for a class.

    The name is that of the built-in or entry point which is this class; for any other class it is
    a `package.module:Class` reference.
    """
    reference = reference_of(part_type)
    for name, built_in in BUILT_IN[kind].items():
        if built_in == reference:
            return name
    for point in _installed(kind):
        if point.name not in BUILT_IN[kind] and _is_entry_point_of(point, part_type, reference):
            return point.name
    if "." in part_type.__qualname__:
        raise ConfigError(
            f"{reference}: cannot be saved, because no module has it by name; "
            "define the class at the top level of a module"
        )
    return reference


def check_part(kind: str, part_type: Any, *, source: str) -> type[Any]:
    """Return `part_type` if it is a complete class of this kind; errors begin with `source`."""
    base = _import(BASES[kind], purpose=f"a {kind}")
    if not (isinstance(part_type, type) and issubclass(part_type, base)):
        raise ConfigError(f"{source}: is not a subclass of {BASES[kind].replace(':', '.')}")
    if inspect.isabstract(part_type):
        missing = ", ".join(sorted(getattr(part_type, "__abstractmethods__", ())))
        raise ConfigError(f"{source}: lacks the {kind} methods {missing}; define them")
    if not isinstance(getattr(part_type, "name", None), str):
        raise ConfigError(f'{source}: has no name; add name = "…" to the class')
    return part_type


def _find_reference(kind: str, name: str) -> str | None:
    """Return the `module:Class` of a built-in or installed part, None if there is no such name."""
    if name in BUILT_IN[kind]:
        return BUILT_IN[kind][name]
    references = {point.value for point in _installed(kind) if name in (point.name, point.value)}
    if len(references) > 1:
        raise ConfigError(
            f"several installed packages have a {kind} called {shown(name)} "
            f"({listed(sorted(references))}); uninstall all but one"
        )
    return next(iter(references), None)


def _installed(kind: str) -> list[EntryPoint]:
    return list(entry_points(group=GROUPS[kind]))


def _is_entry_point_of(point: EntryPoint, part_type: type[Any], reference: str) -> bool:
    """Return True if an entry point is this class, which other modules may re-export."""
    if point.value == reference:
        return True
    module = sys.modules.get(point.module)
    return module is not None and vars(module).get(point.attr) is part_type


def _import_part(kind: str, reference: str) -> type[Any]:
    names = {known: name for name, known in BUILT_IN[kind].items()}
    name = names.get(reference, reference)
    return check_part(kind, _import(reference, purpose=f"the {name} {kind}"), source=reference)


def _import(reference: str, *, purpose: str) -> Any:
    """Import the object that `module:attribute` refers to; errors about extras name `purpose`."""
    module, _, attribute = reference.replace(" ", "").partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except RedraftError:
        raise
    except Exception as error:  # the module may raise anything when it is imported
        missing = missing_neural(error, purpose=purpose)
        if missing is not None:
            raise missing from error
        lines = str(error).splitlines() or [""]
        raise ConfigError(
            f"{reference}: cannot be imported ({type(error).__name__}: {lines[0]}); "
            "check the name, and that its package is installed or on PYTHONPATH"
        ) from error
