"""Write the reference page of the Python API from its signatures and docstrings."""

import dataclasses
import inspect
import re
from typing import Any

import redraft

_MORE = ("Client", "FewShotSelector")
"""Public names that `from redraft import *` leaves out, since they need an extra."""


def python_page() -> str:
    """Return the page: every public name with its signature, methods and docstrings."""
    lines = [
        "# Python",
        "",
        "Everything that `import redraft` offers. [Your pairs](pairs.md) shows it in use.",
    ]
    for name in sorted([*redraft.__all__, *_MORE], key=str.lower):
        value = getattr(redraft, name)
        lines += ["", f"## {name}", ""]
        lines += (
            _class(name, value) if inspect.isclass(value) else _callable(f"redraft.{name}", value)
        )
    return "\n".join(lines) + "\n"


def _class(name: str, value: type) -> list[str]:
    lines = _callable(f"redraft.{name}", value)
    for method, member in vars(value).items():
        if method.startswith("_") or not inspect.getdoc(member):
            continue
        if isinstance(member, property):
            lines += ["", f"### {name}.{method}", "", _docstring(member)]
        elif isinstance(member, classmethod | staticmethod) or inspect.isfunction(member):
            lines += ["", f"### {name}.{method}()", ""]
            lines += _callable(f"{name}.{method}", getattr(value, method))
    return lines


def _callable(name: str, value: Any) -> list[str]:
    return ["```python", _signature(name, value), "```", "", _docstring(value)]


def _signature(name: str, value: Any) -> str:
    """Return the signature, on several lines if it is long."""
    if inspect.isclass(value) and issubclass(value, Exception):
        return name
    try:
        signature = inspect.signature(value)
    except ValueError:
        return name
    parameters = [
        _parameter(parameter, value)
        for parameter in signature.parameters.values()
        if parameter.name != "self"
    ]
    star = [
        index
        for index, parameter in enumerate(
            one for one in signature.parameters.values() if one.name != "self"
        )
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    if star:
        parameters.insert(star[0], "*")
    returns = signature.return_annotation
    arrow = "" if returns is inspect.Signature.empty or inspect.isclass(value) else _arrow(returns)
    flat = f"{name}({', '.join(parameters)}){arrow}"
    if len(flat) <= 88:
        return flat
    return "\n".join([f"{name}(", *(f"    {one}," for one in parameters), f"){arrow}"])


def _parameter(parameter: inspect.Parameter, owner: Any) -> str:
    text = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(
        parameter.kind.name, ""
    ) + parameter.name
    if parameter.annotation is not inspect.Parameter.empty:
        text += f": {_type(parameter.annotation)}"
    if parameter.default is not inspect.Parameter.empty:
        text += f" = {_value(parameter.default, parameter.name, owner)}"
    return text


def _value(default: Any, name: str, owner: Any) -> str:
    if dataclasses.is_dataclass(owner):
        field = {field.name: field for field in dataclasses.fields(owner)}[name]
        if field.default_factory is not dataclasses.MISSING:
            return f"{getattr(field.default_factory, '__name__', '…')}()"
    if dataclasses.is_dataclass(default):
        return f"{type(default).__name__}()"
    return default.__name__ if callable(default) else repr(default)


def _arrow(returns: Any) -> str:
    return f" -> {_type(returns)}"


def _type(annotation: Any) -> str:
    """Return a type as one writes it, without the names of modules."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", text).strip("'\"")


def _docstring(value: Any) -> str:
    """Return a docstring as Markdown; its sections Args, Returns and Raises become lists."""
    lines: list[str] = []
    for line in (inspect.getdoc(value) or "").splitlines():
        if re.fullmatch(r"(Args|Returns|Raises|Yields):", line):
            lines += [f"**{line.rstrip(':')}**", ""]
        elif named := re.match(r" {4}(\w+): (.*)", line):
            lines.append(f"- `{named[1]}`: {named[2]}")
        else:
            lines.append(line.strip())
    return "\n".join(lines)
