"""Render prototypes, candidates and diffs as Rich panels for a terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.syntax import Syntax
from rich.text import Text

from redraft.retrieval.words import shared_words
from redraft.text.diff import Diff
from redraft.types import Input, input_text

if TYPE_CHECKING:
    from redraft.completion.engine import Suggestion
    from redraft.types import Candidate, Example, Prototype, TracedToken

_LINES = 24
"""Lines shown of a text; longer texts are truncated with a note."""

_ORIGINS = {
    "prototype": ("copied from the prototype", "bold green", "‹{}›"),
    "input": ("copied from the input", "underline cyan", "«{}»"),
    "generated": ("generated", "", "{}"),
}
"""Label, style and plain-text marks of each origin. Styles differ without colours too; marks are
for output without styles."""


def shorten(text: str, lines: int = _LINES) -> str:
    """Return the first `lines` lines of a text and a note with the number of omitted lines."""
    all_lines = text.rstrip("\n").split("\n")
    omitted = len(all_lines) - lines
    if omitted <= 1:
        return "\n".join(all_lines)
    return "\n".join([*all_lines[:lines], f"… {omitted} more lines"])


def code(text: str) -> RenderableType:
    """Return `text` with Python syntax highlighting, truncated."""
    return Syntax(
        shorten(text), "python", theme="ansi_dark", background_color="default", word_wrap=True
    )


def fields(x: Input) -> Text:
    """Return the non-empty fields of an input, one per line."""
    text = Text()
    for name, value in x.items():
        if value.strip():
            text.append(f"{name}: ", style="bold")
            text.append(shorten(value, 6) + "\n")
    text.rstrip()
    return text


def source(example: "Example") -> str:
    """Return the file and line of an example, or the start of its meta."""
    meta = example.meta
    if "file" in meta:
        return f"{meta['file']}:{meta['line']}" if "line" in meta else str(meta["file"])
    return ", ".join(f"{key}={value}" for key, value in list(meta.items())[:3])


def coloured(diff: Diff) -> Text:
    """Return a diff as styled text: removals struck through, additions underlined."""
    styles = {"kept": "", "removed": "red strike", "added": "green underline"}
    text = Text()
    for span in diff.spans:
        text.append(span.text, style=styles[span.change])
    return text


def traced(provenance: "Sequence[TracedToken]", *, marks: bool) -> Text:
    """Return an output whose tokens show their origins, by style or by `marks`."""
    runs: list[tuple[str, str]] = []
    for token in provenance:
        if runs and runs[-1][0] == token.origin:
            runs[-1] = (token.origin, runs[-1][1] + token.text)
        else:
            runs.append((token.origin, token.text))
    text = Text()
    for origin, run in runs:
        _, style, marked = _ORIGINS[origin]
        spaces = run[: len(run) - len(run.lstrip())]  # belong to no word
        shown = run[len(spaces) :]
        text.append(spaces)
        text.append(marked.format(shown) if marks and shown else shown, style=style)
    return text


def legend(*, marks: bool) -> Text:
    """Return the legend for the styles or marks of `traced`."""
    text = Text()
    for name, style, marked in _ORIGINS.values():
        text.append(marked.format(name) if marks else name, style=style)
        text.append("   ")
    text.rstrip()
    return text


def candidate_scores(candidate: "Candidate") -> str:
    """Return confidence and log-probability of a candidate as text, if available."""
    scores = []
    if candidate.confidence is not None:
        scores.append(f"confidence {100 * candidate.confidence:.0f} %")
    if candidate.log_prob is not None:
        scores.append(f"log-probability {candidate.log_prob:.3f}")
    return " · ".join(scores)


def prototype_panel(prototype: "Prototype", *, rank: int, query: Input | None = None) -> Panel:
    """Return a panel with distance, source, input and output of a prototype.

    Given the `query`, shows how the prototype's input differs from it.
    """
    title = f"{rank} · distance {prototype.distance:.3f}"
    x = prototype.example.x
    shown = fields(x)
    if query is not None:
        heading = Text("from its input to yours\n", style="bold")
        shown = heading + coloured(Diff.between(input_text(x), input_text(query)))
        shared = [word for words in shared_words(query, x).values() for word in words]
        shown.append(f"\nshared words: {', '.join(dict.fromkeys(shared)) or 'none'}", style="dim")
    parts = Group(shown, Text(), code(prototype.example.y))
    return Panel(parts, title=title, subtitle=source(prototype.example), title_align="left")


def candidate_panel(x: Input, candidate: "Candidate | None", *, truth: str | None = None) -> Panel:
    """Return a panel with input, prototype and output, and the diff to `truth` if given."""
    parts: list[RenderableType] = [fields(x), Text()]
    if candidate is None:
        return Panel(Group(*parts, Text("no answer: nothing was retrieved", style="yellow")))
    parts += [*_prototype_parts(candidate), *_answer_parts(candidate)]
    if truth is not None:
        heading = "answer → truth · removed struck through, added underlined"
        parts += [Text(), Text(heading, style="bold"), _cut(Diff.between(candidate.output, truth))]
    return Panel(Group(*parts))


def explained_panel(x: Input, candidate: "Candidate", *, rank: int, marks: bool) -> Panel:
    """Return a panel with scores, prototype, diff and the origin of each token.

    `marks` replaces styles by characters, for output to a file.
    """
    parts: list[RenderableType] = [fields(x), Text()]
    if candidate.prototype is not None:
        parts += [*_prototype_parts(candidate), code(candidate.prototype.example.y), Text()]
        changes = Text(shorten(str(candidate.diff()))) if marks else _cut(candidate.diff())
        heading = "prototype → answer · [-removed-] {+added+}"
        if not marks:
            heading = "prototype → answer · removed struck through, added underlined"
        parts += [Text(heading, style="bold"), changes, Text()]
    parts += [Text("answer", style="bold"), code(candidate.output)]
    if candidate.provenance:
        parts += [Text(), Text("origin of its tokens", style="bold"), legend(marks=marks)]
        parts += [traced(candidate.provenance, marks=marks)]
    title = " · ".join(part for part in (str(rank), candidate_scores(candidate)) if part)
    return Panel(Group(*parts), title=title, title_align="left")


def suggestion_line(suggestion: "Suggestion", *, rank: int) -> Text:
    """Return a suggestion with its rank, probability and the source of its prototype."""
    probability = "      " if suggestion.probability is None else f"{suggestion.probability:6.1%}"
    text = Text(f"{rank}  {probability}  ")
    text.append(suggestion.text.lstrip(), style="bold")
    if suggestion.prototype is not None:
        text.append(f"   {source(suggestion.prototype.example)}", style="dim")
    return text


def suggestions_panel(buffer: str, suggestions: "Sequence[Suggestion]") -> Panel:
    """Return a panel with the buffer up to the cursor and the suggestions for it."""
    lines = [
        suggestion_line(suggestion, rank=rank)
        for rank, suggestion in enumerate(suggestions, start=1)
    ]
    shown = lines or [Text("no suggestion", style="yellow")]
    parts = Group(code(f"{buffer.rstrip()}\n    ▏"), Text(), *shown)
    return Panel(parts, title="a completion at the cursor ▏", title_align="left")


def abstained_line(confidence: float, threshold: float) -> Text:
    """Return the line that explains why the model abstained."""
    reason = f"the best candidate's confidence is {confidence:.0%}, below {threshold:.0%}"
    return Text(f"no answer: {reason}", style="bold yellow")


def _prototype_parts(candidate: "Candidate") -> list[RenderableType]:
    if candidate.prototype is None:
        return []
    origin = source(candidate.prototype.example) or "the training examples"
    heading = f"prototype · {origin} · distance {candidate.prototype.distance:.3f}"
    return [Text(heading, style="bold"), fields(candidate.prototype.example.x), Text()]


def _answer_parts(candidate: "Candidate") -> list[RenderableType]:
    unchanged = (
        candidate.prototype is not None and candidate.output == candidate.prototype.example.y
    )
    label = "answer · the prototype's output as it is" if unchanged else "answer · edited"
    shown = code(candidate.output) if unchanged else coloured(candidate.diff())
    return [Text(label, style="bold"), shown]


def _cut(diff: Diff) -> Text:
    text = coloured(diff)
    lines = text.split("\n")
    if len(lines) <= _LINES:
        return text
    return Text("\n").join([*lines[:_LINES], Text(f"… {len(lines) - _LINES} more lines")])
