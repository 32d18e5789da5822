"""What people see in a terminal: prototypes, candidates and diffs as panels."""

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.syntax import Syntax
from rich.text import Text

from redraft.data.example import Input, input_text
from redraft.editing.diff import Diff
from redraft.retrieval.lexical import shared_words

if TYPE_CHECKING:
    from redraft.data.example import Example
    from redraft.editing.candidate import Candidate
    from redraft.retrieval.prototype import Prototype

_LINES = 24
"""Longer texts are cut, with a line that says so."""


def shorten(text: str, lines: int = _LINES) -> str:
    """The first lines of a text, and how many were left out."""
    found = text.rstrip("\n").split("\n")
    left_out = len(found) - lines
    if left_out <= 1:
        return "\n".join(found)
    return "\n".join([*found[:lines], f"… {left_out} more lines"])


def code(text: str) -> RenderableType:
    """Text as code, coloured as Python where it looks like it."""
    return Syntax(
        shorten(text), "python", theme="ansi_dark", background_color="default", word_wrap=True
    )


def fields(x: Input) -> Text:
    """An input, one field after the other."""
    text = Text()
    for name, value in x.items():
        if value.strip():
            text.append(f"{name}: ", style="bold")
            text.append(shorten(value, 6) + "\n")
    text.rstrip()
    return text


def source(example: "Example") -> str:
    """Where an example comes from, as far as its notes tell."""
    meta = example.meta
    if "file" in meta:
        return f"{meta['file']}:{meta['line']}" if "line" in meta else str(meta["file"])
    return ", ".join(f"{key}={value}" for key, value in list(meta.items())[:3])


def coloured(diff: Diff) -> Text:
    """A diff for a terminal: removed is struck through, added is underlined."""
    styles = {"kept": "", "removed": "red strike", "added": "green underline"}
    text = Text()
    for span in diff.spans:
        text.append(span.text, style=styles[span.change])
    return text


def prototype_panel(prototype: "Prototype", *, rank: int, asked: Input | None = None) -> Panel:
    """A prototype: its distance, where it comes from, input and output; how the inputs differ."""
    title = f"{rank} · distance {prototype.distance:.3f}"
    x = prototype.example.x
    shown = fields(x)
    if asked is not None:
        heading = Text("from its input to yours\n", style="bold")
        shown = heading + coloured(Diff.between(input_text(x), input_text(asked)))
        shared = [word for words in shared_words(asked, x).values() for word in words]
        shown.append(f"\nshared words: {', '.join(dict.fromkeys(shared)) or 'none'}", style="dim")
    parts = Group(shown, Text(), code(prototype.example.y))
    return Panel(parts, title=title, subtitle=source(prototype.example), title_align="left")


def candidate_panel(x: Input, candidate: "Candidate | None", *, truth: str | None = None) -> Panel:
    """An answer with its input and prototype and, if the truth is known, how it differs."""
    parts: list[RenderableType] = [fields(x), Text()]
    if candidate is None:
        return Panel(Group(*parts, Text("no answer: nothing was retrieved", style="yellow")))
    if candidate.prototype is not None:
        origin = source(candidate.prototype.example) or "the training examples"
        heading = f"prototype · {origin} · distance {candidate.prototype.distance:.3f}"
        parts += [Text(heading, style="bold"), fields(candidate.prototype.example.x), Text()]
    unchanged = (
        candidate.prototype is not None and candidate.output == candidate.prototype.example.y
    )
    label = "answer · the prototype's output as it is" if unchanged else "answer · edited"
    shown = code(candidate.output) if unchanged else coloured(candidate.diff())
    parts += [Text(label, style="bold"), shown]
    if truth is not None:
        heading = "answer → truth · removed struck through, added underlined"
        parts += [Text(), Text(heading, style="bold"), _cut(Diff.between(candidate.output, truth))]
    return Panel(Group(*parts))


def _cut(diff: Diff) -> Text:
    text = coloured(diff)
    lines = text.split("\n")
    if len(lines) <= _LINES:
        return text
    return Text("\n").join([*lines[:_LINES], Text(f"… {len(lines) - _LINES} more lines")])
