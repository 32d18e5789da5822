"""Settings: a dataclass to TOML and back. Unknown names and wrong types are errors."""

import dataclasses
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from redraft.errors import ConfigError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Config = TypeVar("Config")

DEFAULT_RETRIEVER = "bm25"
DEFAULT_EDITOR = "neural"
"""The parts of a model whose maker named none: what did best on held-out examples."""


def read_toml(path: Path) -> dict[str, Any]:
    """The tables and values of a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such file; check the path") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); check the path") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not TOML ({error}); mend the file") from error


def build(config_type: type[Config], values: Mapping[str, Any], *, where: str) -> Config:
    """The settings with these values, the rest at their defaults; every setting must have one."""
    return override(config_type(), values, where=where)


def override(config: Config, values: Mapping[str, Any], *, where: str) -> Config:
    """The settings with these values in place of their own; tables reach into nested settings."""
    hints = get_type_hints(type(config))
    changed: dict[str, Any] = {}
    for name, value in values.items():
        if name not in hints:
            known = ", ".join(hints) or "none"
            raise ConfigError(f"{where}: unknown setting {name!r}; known are: {known}")
        wanted = hints[name]
        if dataclasses.is_dataclass(wanted) and isinstance(value, Mapping):
            changed[name] = override(getattr(config, name), value, where=f"{where}: {name}")
        elif type(value) is wanted or (type(value) is int and wanted is float):
            changed[name] = value
        else:
            kinds = wanted.__name__, type(value).__name__
            raise ConfigError(f"{where}: {name} must be of type {kinds[0]}, got {kinds[1]}")
    return dataclasses.replace(config, **changed)  # type: ignore[type-var]


def to_toml(tables: Mapping[str, Mapping[str, Any]]) -> str:
    """Flat tables as TOML text."""
    lines = []
    for table, values in tables.items():
        lines += [f"[{table}]", *(f"{name} = {_toml(value)}" for name, value in values.items()), ""]
    return "\n".join(lines)


def _toml(value: str | bool | int | float) -> str:
    if isinstance(value, float):
        return repr(value)  # as JSON, but for inf and nan, which TOML knows
    # TOML's basic strings, booleans and integers are JSON's, but for the delete character
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def merged(*settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings and tables of them as one; of a setting that several have the last one counts."""
    found: dict[str, Any] = {}
    for given in settings:
        for name, value in given.items():
            is_table = isinstance(value, Mapping)
            found[name] = {**found.get(name, {}), **value} if is_table else value
    return found


def values_of(config: Any) -> dict[str, Any]:
    """The settings by name."""
    return dataclasses.asdict(config)
