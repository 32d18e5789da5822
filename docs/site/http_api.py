"""Write the reference page of the HTTP API from its OpenAPI document, and of its metrics."""

from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from redraft.server.http.app import create_app
from redraft.server.http.metrics import Metrics

_METHODS = ("get", "post", "put", "delete")


def http_page() -> str:
    """Return the page: every route with its parameters, body and answers, then the schemas."""
    document = create_app({}).openapi()
    schemas = document["components"]["schemas"]
    routes = [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if method in _METHODS
    ]
    lines = [
        "# HTTP API",
        "",
        document["info"]["description"],
        "A running server has the same as `/openapi.json`; [Serving](serving.md) shows it in use.",
        "",
        "| request | does |",
        "|---|---|",
        *(f"| `{method} {path}` | {operation['summary']} |" for method, path, operation in routes),
    ]
    for method, path, operation in routes:
        lines += ["", f"## {method} {path}", "", operation.get("description", operation["summary"])]
        lines += _request(operation) + _answers(operation)
    lines += [*_errors(routes), "", "## Schemas"]
    for name in sorted(schemas):
        lines += _schema(name, schemas[name])
    return "\n".join([*lines, *_metrics()]) + "\n"


def _request(operation: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    parameters = operation.get("parameters", [])
    if parameters:
        lines += ["", "| parameter | in | type | meaning |", "|---|---|---|---|"]
    for parameter in parameters:
        kind, meaning = _type(parameter["schema"]), parameter.get("description", "")
        lines.append(f"| `{parameter['name']}` | {parameter['in']} | {kind} | {meaning} |")
    if "requestBody" in operation:
        [content] = operation["requestBody"]["content"].values()
        lines += ["", f"Body: {_type(content['schema'])}"]
    return lines


def _answers(operation: dict[str, Any]) -> list[str]:
    """Return what a request is answered with if it succeeds."""
    kinds = {
        _type(content.get("schema", {}))
        for status, answer in operation["responses"].items()
        if int(status) < 400
        for content in answer.get("content", {}).values()
    }
    return ["", f"Answer: {' or '.join(sorted(kinds - {''})) or 'none'}"]


def _errors(routes: list[tuple[str, str, dict[str, Any]]]) -> list[str]:
    """Return the table of all errors; every error has the same form."""
    reasons = {
        status: answer["description"]
        for _, _, operation in routes
        for status, answer in operation["responses"].items()
        if int(status) >= 400
    }
    lines = [
        "",
        "## Errors",
        "",
        "The body of every error is an [ErrorResponse](#errorresponse).",
        "",
    ]
    lines += ["| status | reason |", "|---|---|"]
    return lines + [f"| {status} | {reasons[status]} |" for status in sorted(reasons)]


def _schema(name: str, schema: dict[str, Any]) -> list[str]:
    lines = ["", f"### {name}", ""]
    if "description" in schema:
        lines += [schema["description"], ""]
    lines += ["| field | type | meaning |", "|---|---|---|"]
    required = schema.get("required", [])
    for field, value in schema.get("properties", {}).items():
        notes = [value.get("description", "")]
        if field in required:
            notes.append("Required.")
        elif value.get("default") not in (None, [], {}):
            notes.append(f"Default: `{value['default']}`.")
        lines.append(f"| `{field}` | {_type(value)} | {' '.join(filter(None, notes))} |")
    return lines


def _type(schema: dict[str, Any]) -> str:
    """Return the type of a JSON schema in words, with its limits; schemas of a name are linked."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return " or ".join(dict.fromkeys(filter(None, map(_type, schema[choice]))))
    if "enum" in schema or "const" in schema:
        return " or ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    kind: str = schema.get("type", "")
    if kind == "array":
        kind = f"array of {_type(schema.get('items', {})) or 'values'}"
    elif kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        kind = f"object of {_type(schema['additionalProperties']) or 'values'}"
    return kind + _limits(schema)


def _limits(schema: dict[str, Any]) -> str:
    unit = "keys" if schema.get("type") == "object" else "characters"
    words = {
        "minimum": "from {}",
        "maximum": "to {}",
        "minItems": "at least {}",
        "maxItems": "at most {}",
        "maxLength": f"at most {{}} {unit}",
        "maxProperties": "at most {} keys",
    }
    found = [text.format(f"{schema[key]:,g}") for key, text in words.items() if key in schema]
    return f" ({', '.join(found)})" if found else ""


def _metrics() -> list[str]:
    lines = [
        "",
        "## Metrics",
        "",
        "`GET /metrics` has these, in the text format of Prometheus:",
        "",
    ]
    lines += ["| metric | type | meaning |", "|---|---|---|"]
    for family in text_string_to_metric_families(Metrics().render({}).decode()):
        lines.append(f"| `{family.name}` | {family.type} | {family.documentation} |")
    return lines
