"""Parse inputs, typed or from rows, into the fields of a model."""

import json
from collections.abc import Iterable, Mapping, Sequence

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
    return complete_input(text_input(text, fields), fields)


def text_input(text: str, fields: Sequence[str]) -> Input:
    """Return plain text as the input of a model with one field."""
    if len(fields) != 1:
        sample = json.dumps(dict.fromkeys(fields, "…"), ensure_ascii=False)
        raise PairsError(f"this model's input has several fields; give them as JSON: '{sample}'")
    return {fields[0]: text}


def as_inputs(inputs: Sequence[str | Input], examples: Sequence[Example]) -> list[Input]:
    """Return the inputs for a model with these examples as named fields."""
    if isinstance(inputs, str | Mapping):
        raise PairsError("expected a list of inputs, got one input; put it into a list")
    fields = fields_of(examples) if any(isinstance(x, str) for x in inputs) else []
    named = [text_input(x, fields) if isinstance(x, str) else x for x in inputs]
    for x in named:
        if not isinstance(x, Mapping):
            raise PairsError(f"an input is text or fields by name, got {type(x).__name__}")
    return named


def in_fields(x: Input, fields: Sequence[str]) -> Input:
    """Return `x` with the `fields` of a model in their order; plain text is its only field."""
    if list(x) == [TEXT_FIELD] and len(fields) == 1:
        return {fields[0]: x[TEXT_FIELD]}
    if set(x) != set(fields):
        raise PairsError(f"expected an input with the fields {', '.join(fields)}")
    return {name: x[name] for name in fields}


def refuse_empty(inputs: Iterable[Input]) -> None:
    """Raise `PairsError` if an input has no text in any field."""
    if not all(any(text.strip() for text in x.values()) for x in inputs):
        raise PairsError("the input is empty; give some text")


def complete_input(x: Input, fields: Sequence[str]) -> Input:
    """Return the input with all `fields`, missing ones empty; unknown fields are an error."""
    unknown = [name for name in x if name not in fields]
    if unknown:
        names = ", ".join(fields)
        raise PairsError(f"this model's input has no field {unknown[0]!r}; its fields are: {names}")
    refuse_empty([x])
    return {name: x.get(name, "") for name in fields}


def input_of(value: object, fields: Sequence[str]) -> Input:
    """Return the input of a row with the key x, or of a text."""
    x = value.get("x") if isinstance(value, dict) else value
    if not isinstance(x, str | dict):
        raise PairsError("expected an object with the key x")
    return parse_input(x if isinstance(x, str) else json.dumps(x), fields)
