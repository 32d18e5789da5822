"""Parse inputs, typed or from rows, into the fields of a model."""

import json
from collections.abc import Sequence

from redraft.errors import PairsError
from redraft.types import TEXT_FIELD, Example, Input


def fields_of(examples: Sequence[Example]) -> list[str]:
    """Return the input fields of a model, from its examples."""
    return list(examples[0].x) if examples else [TEXT_FIELD]


def parse_input(text: str, fields: Sequence[str]) -> Input:
    """Parse an input: plain text, or a JSON object of the model's fields."""
    value: object = None
    if text.lstrip().startswith("{"):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):  # not JSON, or a number with too many digits
            value = None
    if isinstance(value, dict) and all(isinstance(part, str) for part in value.values()):
        return complete_input(value, fields)
    if fields != [TEXT_FIELD]:
        sample = json.dumps(dict.fromkeys(fields, "…"), ensure_ascii=False)
        raise PairsError(f"this model's input has several fields; give them as JSON: '{sample}'")
    return {TEXT_FIELD: text}


def complete_input(x: Input, fields: Sequence[str]) -> Input:
    """Return the input with all `fields`, missing ones empty; unknown fields are an error."""
    unknown = [name for name in x if name not in fields]
    if unknown:
        names = ", ".join(fields)
        raise PairsError(f"this model's input has no field {unknown[0]!r}; its fields are: {names}")
    return {name: x.get(name, "") for name in fields}


def input_of(value: object, fields: Sequence[str]) -> Input:
    """Return the input of a row with the key x, or of a text."""
    x = value.get("x") if isinstance(value, dict) else value
    if not isinstance(x, str | dict):
        raise PairsError("expected an object with the key x")
    return parse_input(x if isinstance(x, str) else json.dumps(x), fields)
