"""Print docs/settings.md, the reference page of all settings: `make settings`."""

import inspect
from collections.abc import Iterator
from typing import Any

from redraft.config import presets
from redraft.config.ranges import types_of
from redraft.config.reference import SETTINGS, TABLES, settings_of
from redraft.config.toml import toml_value
from redraft.training.editor_config import EditorConfig
from redraft.training.retriever_config import RetrieverConfig


def settings_page() -> str:
    """Return the reference page of all settings."""
    parts = {"retriever": RetrieverConfig(), "editor": EditorConfig()}
    lines = [
        "# Settings",
        "",
        "Written by `make settings`; do not edit.",
        "",
        "`redraft fit` chooses a preset for the pairs, and a TOML file changes single settings:",
        "",
        "```sh",
        "redraft config pairs.jsonl > settings.toml   # the preset for these pairs, commented",
        "redraft fit pairs.jsonl -o model/ --config settings.toml",
        "```",
        "",
        "A file may leave out any setting. Names and ranges are checked before training begins.",
        "",
        "## Presets",
        "",
        "| preset | for |",
        "|---|---|",
        *(f"| `{name}` | {_summary(make)} |" for name, make in presets.PRESETS.items()),
        "",
        "Values of presets below are for "
        + ", ".join(f"{count:,} pairs (`{name}`)" for name, count in presets.TYPICAL.items())
        + "; some depend on the number.",
    ]
    for table, name, default in settings_of(parts):
        heading = f"## `[{table}]`"
        if heading not in lines:
            lines += ["", heading, "", TABLES[table], ""]
            lines += ["| setting | default | presets | range | meaning |", "|---|---|---|---|---|"]
        part, inner = table.split(".")
        limits = _limits(type(getattr(parts[part], inner)), name)
        others = ", ".join(_others(part, inner, name, default))
        meaning = SETTINGS[f"{table}.{name}"]
        lines.append(f"| `{name}` | `{toml_value(default)}` | {others} | {limits} | {meaning} |")
    return "\n".join(lines) + "\n"


def _others(part: str, table: str, name: str, default: Any) -> Iterator[str]:
    """Yield the presets in which a setting differs from its default, with their values."""
    for preset, count in presets.TYPICAL.items():
        value = presets.preset(preset, count)[part].get(table, {}).get(name, default)
        if value != default:
            yield f"{preset} `{toml_value(value)}`"


def _limits(config_type: type, name: str) -> str:
    kind, allowed = types_of(config_type)[name]
    return allowed.describe(kind) if allowed else {"bool": "true or false"}.get(kind.__name__, "")


def _summary(make: Any) -> str:
    """Return the first line of a preset's docstring."""
    return (inspect.getdoc(make) or "").splitlines()[0].rstrip(".")


if __name__ == "__main__":
    print(settings_page(), end="")
