"""An input as it was typed, or as a row of a file has it, to the fields that a model wants."""

import json
from collections.abc import Sequence

from redraft.data.example import TEXT_FIELD, Example, Input
from redraft.errors import PairsError


def fields_of(examples: Sequence[Example]) -> list[str]:
    """The fields of a model's inputs, by its examples."""
    return list(examples[0].x) if examples else [TEXT_FIELD]


def parse_input(text: str, fields: Sequence[str]) -> Input:
    """One input as typed: plain text, or a JSON object of the model's fields."""
    value: object = None
    if text.lstrip().startswith("{"):
        try:
            value = json.loads(text)
        except json.JSONDecodeError:
            value = None
    if isinstance(value, dict) and all(isinstance(part, str) for part in value.values()):
        return complete_input(value, fields)
    if fields != [TEXT_FIELD]:
        sample = json.dumps(dict.fromkeys(fields, "…"), ensure_ascii=False)
        raise PairsError(f"the input of this model has fields; give them as JSON: '{sample}'")
    return {TEXT_FIELD: text}


def complete_input(x: Input, fields: Sequence[str]) -> Input:
    """The input with all of the model's fields, those not given empty; others are an error."""
    unknown = [name for name in x if name not in fields]
    if unknown:
        known = ", ".join(fields)
        raise PairsError(f"this model's input has no field {unknown[0]!r}; its fields are: {known}")
    return {name: x.get(name, "") for name in fields}


def input_of(value: object, fields: Sequence[str]) -> Input:
    """The input of a row with the key x, or of a text."""
    x = value.get("x") if isinstance(value, dict) else value
    if not isinstance(x, str | dict):
        raise PairsError("expected an object with the key x")
    return parse_input(x if isinstance(x, str) else json.dumps(x), fields)
