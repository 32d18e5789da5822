"""Reads settings from TOML into dataclasses, and writes them.

Unknown names, wrong types and numbers outside of their range are errors.
"""

import dataclasses
import difflib
import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from redraft.config.ranges import shorten, shown, types_of
from redraft.errors import ConfigError
from redraft.storage.reading import read_at_most

Config = TypeVar("Config")

DEFAULT_RETRIEVER = "bm25"
DEFAULT_EDITOR = "choosing"
"""The default parts, which did best on held-out examples."""


MOST_BYTES = 1 << 18
MOST_DOTS = 64
"""Maximum number of dots per line: `tomllib` takes quadratic time in the parts of a key."""


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables and values of the TOML file at `path`, which must be small."""
    try:
        text = read_at_most(path, MOST_BYTES).decode()
        _check_keys(text)
        return tomllib.loads(text)
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such file; check the path") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); check the path") from error
    except RecursionError as error:
        raise ConfigError(f"{path}: not TOML (nested too deeply); fix the file") from error
    except ValueError as error:  # not UTF-8, not TOML, too large, or a number of too many digits
        reason = str(error).splitlines()[0]
        raise ConfigError(f"{path}: not TOML ({shorten(reason)}); fix the file") from error


def _check_keys(text: str) -> None:
    """Raise a ValueError for a line whose keys have too many parts."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > MOST_DOTS:
            raise ValueError(f"line {number} has more than {MOST_DOTS} dots")


def build(config_type: type[Config], values: Mapping[str, Any], *, where: str) -> Config:
    """Return a `config_type` with `values`, the rest at their defaults; `where` is for errors."""
    return override(config_type(), values, where=where)


def override(config: Config, values: Mapping[str, Any], *, where: str) -> Config:
    """Return `config` with `values` in place of its own; tables reach into nested settings.

    Raises a ConfigError that begins with `where` and names the setting: one that is unknown, of
    the wrong type, out of its range, or at odds with another. Whole numbers become floats where
    a float is expected.
    """
    if not isinstance(values, Mapping):
        raise ConfigError(f"{where}: expected a table of settings, got {type(values).__name__}")
    types = types_of(type(config))  # type: ignore[arg-type]
    changed: dict[str, Any] = {}
    for name, value in values.items():
        if name not in types:
            hint, names = _nearest(type(config), str(name)), ", ".join(types) or "none"
            raise ConfigError(f"{where}: unknown setting {shown(name)}; {hint}known are: {names}")
        wanted, allowed = types[name]
        if dataclasses.is_dataclass(wanted):
            changed[name] = override(getattr(config, name), value, where=f"{where}: {name}")
            continue
        if type(value) is not wanted and not (type(value) is int and wanted is float):
            raise ConfigError(
                f"{where}: {name} must be of type {wanted.__name__}, got {type(value).__name__}"
            )
        if allowed is not None and value not in allowed:
            reason = f"{name} is {shown(value)}; expected {allowed.describe(wanted)}"
            raise ConfigError(f"{where}: {reason}")
        changed[name] = float(values[name]) if wanted is float else value
    try:
        return dataclasses.replace(config, **changed)  # type: ignore[type-var]
    except ConfigError as error:  # settings at odds with each other
        raise ConfigError(f"{where}: {error}") from error


def setting_names(config_type: type) -> Iterator[str]:
    """Yield the names of all settings of a dataclass, those of its tables as `table.name`."""
    for name, (kind, _) in types_of(config_type).items():
        if dataclasses.is_dataclass(kind):
            yield from (f"{name}.{inner}" for inner in setting_names(kind))
        else:
            yield name


def _nearest(config_type: type, name: str) -> str:
    """Return a question with the setting whose name is most like `name`; "" if none is."""
    names = {full.rpartition(".")[2]: full for full in setting_names(config_type)}
    names |= {table: table for table in types_of(config_type)}
    nearest = difflib.get_close_matches(name[:100].lower(), names, n=1)
    return f"did you mean {names[nearest[0]]}? " if nearest else ""


def to_toml(tables: Mapping[str, Mapping[str, Any]]) -> str:
    """Return flat tables as TOML text."""
    lines = []
    for table, values in tables.items():
        lines += [
            f"[{table}]",
            *(f"{name} = {toml_value(value)}" for name, value in values.items()),
            "",
        ]
    return "\n".join(lines)


def toml_value(value: str | bool | int | float) -> str:
    """Return a value as TOML text."""
    if isinstance(value, float):
        return repr(value)  # not JSON: TOML has inf and nan
    # TOML's basic strings, booleans and integers are JSON's, but for the delete character
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
