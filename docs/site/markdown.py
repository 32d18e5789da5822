"""Adapt Markdown as GitHub reads it to Python-Markdown, which MkDocs uses."""

import re

_WITHIN_FIGURE = re.compile(r"(?<=[\d%]) (?=[(±])|(?<=±) (?=\d)")
"""Spaces of a figure with its interval or deviation, which belong on one line."""

_ITEM = re.compile(r"^( *)(?:[-*+]|\d+[.)]) ")


def adapt(markdown: str) -> str:
    """Return the text with blank lines before lists, Markdown in <details>, unbroken figures."""
    lines: list[str] = []
    fenced = False
    for line in markdown.splitlines():
        starts_fence = line.lstrip().startswith("```")
        item = None if fenced else _ITEM.match(line)
        if item and lines and lines[-1].strip() and not _continues_list(lines):
            lines.append("")
        if not fenced:
            line = line.replace("<details>", '<details markdown="1">')
        if not fenced and line.startswith("|"):
            line = _WITHIN_FIGURE.sub("\u00a0", line)
        lines.append(line)
        fenced ^= starts_fence
    return "\n".join(lines) + "\n"


def _continues_list(lines: list[str]) -> bool:
    """Return whether the last paragraph of the lines is an item of a list."""
    for line in reversed(lines):
        if not line.strip():
            return False
        if _ITEM.match(line):
            return True
    return False
