"""Settings of an experiment: the tables of a TOML file, in layers."""

from collections.abc import Mapping
from typing import Any


def merged(*settings: Mapping[str, Any]) -> dict[str, Any]:
    """Merge settings and their tables; later ones override earlier ones."""
    result: dict[str, Any] = {}
    for layer in settings:
        for name, value in layer.items():
            is_table = isinstance(value, Mapping)
            result[name] = {**result.get(name, {}), **value} if is_table else value
    return result
