"""Render prototypes, candidates and diffs as Rich panels for a terminal."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.syntax import Syntax
from rich.text import Text

from redraft.metrics.exact_match import parses
from redraft.text.diff import Diff
from redraft.text.marks import split_at_values, value_spans
from redraft.text.words import shared_words
from redraft.types import Input, input_text

if TYPE_CHECKING:
    from redraft.types import Candidate, Completion, Example, Prototype, TracedToken

_LINES = 24
"""Lines shown of a text; longer texts are truncated with a note."""

_LEGEND_WIDTH = 74
"""Columns of a legend: a panel in a terminal of 80."""

_ORIGINS = {
    "prototype": ("copied from the prototype", "bold green", "‹{}›"),
    "input": ("copied from the input", "underline cyan", "«{}»"),
    "mapped": ("mapped from the input as in other examples", "italic magenta", "[→{}]"),
    "generated": ("generated", "", "{}"),
}
"""Label, style and plain-text marks of each origin. Styles differ without colours too; marks are
for output without styles."""

_SQL = {"select", "insert", "update", "delete", "create", "alter", "drop"}
"""First words of statements in SQL, but for `with`, which Python has too."""

_INVENTED = ("value from nowhere", "reverse red", "{}(?)")
"""Label, style and plain-text mark of an invented value."""


def shorten(text: str, lines: int = _LINES) -> str:
    """Return the first `lines` lines of a text and a note with the number of omitted lines."""
    all_lines = text.rstrip("\n").split("\n")
    omitted = len(all_lines) - lines
    if omitted <= 1:
        return "\n".join(all_lines)
    return "\n".join([*all_lines[:lines], f"… {omitted} more lines"])


def code(text: str, *, invented: Sequence[str] = ()) -> RenderableType:
    """Return `text` with syntax highlighting, truncated, with invented values marked."""
    shown = shorten(text)
    lexer = _lexer(text)
    syntax = Syntax(shown, lexer, theme="ansi_dark", background_color="default", word_wrap=True)
    if not invented:
        return syntax
    highlighted = syntax.highlight(shown)
    highlighted.rstrip()  # the highlighter ends every line
    return _with_invented(highlighted, invented)


def _lexer(text: str) -> str:
    """Return the highlighter of an output: SQL by its first word, Python if it parses."""
    first = text.split(maxsplit=1)[:1]
    if first and first[0].casefold() in _SQL:
        return "sql"
    return "python" if parses(text) else "text"


def fields(x: Input) -> Text:
    """Return the non-empty fields of an input, one per line."""
    return Text("\n").join(
        Text.assemble((f"{name}: ", "bold"), shorten(value, 6))
        for name, value in x.items()
        if value.strip()
    )


def source(example: "Example") -> str:
    """Return the file and line of an example, or the first three values of its meta."""
    meta = example.meta
    if "file" in meta:
        return f"{meta['file']}:{meta['line']}" if "line" in meta else str(meta["file"])
    known = [f"{key}={value}" for key, value in meta.items() if value not in ("", None)]
    return ", ".join(known[:3])


def coloured(diff: Diff) -> Text:
    """Return a diff as styled text: removals struck through, additions underlined."""
    styles = {"kept": "", "removed": "red strike", "added": "green underline"}
    return Text.assemble(*((span.text, styles[span.change]) for span in diff.spans))


def traced(
    provenance: "Sequence[TracedToken]", *, marks: bool, invented: Sequence[str] = ()
) -> Text:
    """Return an output whose tokens show their origins, by style or by `marks`.

    Invented values are marked too.
    """
    text = Text()
    pieces = split_at_values(provenance, invented)
    for origin, run in groupby(pieces, key=lambda piece: piece[0].origin):
        _, style, marked = _ORIGINS[origin]
        shown = Text()
        for is_value, parts in groupby(run, key=itemgetter(1)):
            part = "".join(token.text for token, _ in parts)
            if is_value and marks:
                part = _INVENTED[2].format(part)
            shown.append(part, style=_INVENTED[1] if is_value else style)
        before, after = marked.split("{}") if marks and shown.plain.strip() else ("", "")
        start = len(shown.plain) - len(shown.plain.lstrip())  # spaces belong to no word,
        end = max(start, len(shown.plain.rstrip()))  # and a mark alone on a line explains nothing
        text.append(shown.plain[:start])
        text.append(before, style=style)
        text.append_text(shown[start:end])
        text.append(after, style=style)
        text.append(shown.plain[end:])
    return text


def legend(candidate: "Candidate", *, marks: bool) -> Text:
    """Return the legend for the origins of a candidate's tokens, as `traced` shows them."""
    origins = {token.origin for token in candidate.provenance}
    entries = [entry for origin, entry in _ORIGINS.items() if origin in origins]
    entries += [_INVENTED] if candidate.invented else []
    text = Text()
    width = 0
    for name, style, marked in entries:
        shown = marked.format(name) if marks else name
        if width and width + len(shown) > _LEGEND_WIDTH:
            text.append("\n")
            width = 0
        text.append("   " if width else "")
        text.append(shown, style=style)
        width += len(shown) + 3
    return text


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


def no_answer_panel(x: Input) -> Panel:
    """Return a panel with an input for which nothing was retrieved."""
    return Panel(Group(fields(x), Text(), Text("no answer: nothing was retrieved", style="yellow")))


def candidate_panel(
    x: Input, candidate: "Candidate", *, marks: bool, label: str = "answer"
) -> Panel:
    """Return a panel with input, prototype and output, which `label` names.

    `marks` replaces the styles of an edited output by characters, for output to a file.
    """
    parts = [*_prototype_parts(candidate), *_warnings(candidate)]
    if candidate.prototype is not None and candidate.output == candidate.prototype.example.y:
        label += " · the prototype's output as it is"
        shown = code(candidate.output, invented=candidate.invented)
    elif marks:
        label += " · edited · [-removed-] {+added+}"
        shown = Text(str(candidate.diff()))
    else:
        label += " · edited"
        shown = _with_invented(coloured(candidate.diff()), candidate.invented)
    shown_parts = Group(fields(x), Text(), *parts, Text(label, style="bold"), shown)
    return Panel(shown_parts, title=_confidence(candidate), title_align="left")


def explained_panel(
    x: Input, candidate: "Candidate", *, marks: bool, rank: int | None = None
) -> Panel:
    """Return a panel with scores, prototype, diff and the origin of each token.

    `marks` replaces styles by characters, for output to a file. The title begins with the `rank`.
    """
    parts: list[RenderableType] = [fields(x), Text(), *_prototype_parts(candidate)]
    if candidate.prototype is not None:
        changes = Text(shorten(str(candidate.diff()))) if marks else _cut(candidate.diff())
        how = "[-removed-] {+added+}" if marks else "removed struck through, added underlined"
        parts += [code(candidate.prototype.example.y), Text()]
        parts += [Text(f"prototype → answer · {how}", style="bold"), changes, Text()]
    parts += _warnings(candidate)
    origins = traced(candidate.provenance, marks=marks, invented=candidate.invented)
    if marks or not candidate.provenance:  # marks are no part of the answer, styles hide nothing
        parts += [Text("answer", style="bold"), code(candidate.output, invented=candidate.invented)]
    if candidate.provenance:
        heading = "origin of its tokens" if marks else "answer, by the origin of its tokens"
        parts += [Text(), Text(heading, style="bold")] if marks else [Text(heading, style="bold")]
        parts += [origins, Text(), legend(candidate, marks=marks)]
    title = [str(rank) if rank else None, _confidence(candidate)]
    if candidate.log_prob is not None:
        title.append(f"log-probability {candidate.log_prob:.3f}")
    return Panel(Group(*parts), title=" · ".join(filter(None, title)), title_align="left")


def _confidence(candidate: "Candidate") -> str | None:
    if candidate.confidence is None:
        return None
    return f"confidence {100 * candidate.confidence:.0f} %"


def suggestion_line(suggestion: "Completion", *, rank: int) -> Text:
    """Return a suggestion with its rank, probability and the source of its prototype."""
    probability = "      " if suggestion.probability is None else f"{suggestion.probability:6.1%}"
    text = Text(f"{rank}  {probability}  ")
    text.append(suggestion.text.lstrip(), style="bold")
    if suggestion.prototype is not None:
        text.append(f"   {source(suggestion.prototype.example)}", style="dim")
    return text


def completed_function(function: "Example", typed: str, suggestion: "Completion") -> Text:
    """Return the header of a function, the typed part of its body, and a suggestion."""
    text = Text.assemble(("\n" + str(function.meta["file"]) + "\n", "dim"))
    text.append(f"    def {function.x['name']}({function.x['arguments']}):\n")
    text.append("".join(f"        {line}\n" for line in typed.splitlines()))
    added = suggestion.text.strip().replace("\n    ", "\n        ")
    text.append("       ▏").append(added, style="bold green")  # in line with the typed code
    origin = suggestion.prototype
    cited = (
        f"from {origin.example.x['name']}, {source(origin.example)}" if origin else "names edited"
    )
    probability = 100 * (suggestion.probability or 0)
    return text.append(f"\n        {probability:.0f} %, {cited}", style="dim")


def abstained_line(confidence: float, threshold: float) -> Text:
    """Return the line that explains why the model abstained."""
    shares = f"{100 * confidence:.0f} %, below {100 * threshold:.0f} %"
    reason = f"the best candidate's confidence is {shares}"
    return Text(f"no answer: {reason}", style="bold yellow")


def _prototype_parts(candidate: "Candidate") -> list[RenderableType]:
    if candidate.prototype is None:
        return []
    origin = source(candidate.prototype.example) or "the training examples"
    heading = f"prototype · {origin} · distance {candidate.prototype.distance:.3f}"
    return [Text(heading, style="bold"), fields(candidate.prototype.example.x), Text()]


def _warnings(candidate: "Candidate") -> list[RenderableType]:
    """Return a line for each warning of a candidate, and an empty one after them."""
    lines = [Text(f"warning: {warning}", style="bold yellow") for warning in candidate.warnings]
    return [*lines, Text()] if lines else []


def _with_invented(text: Text, invented: Sequence[str]) -> Text:
    for start, end in value_spans(text.plain, invented):
        text.stylize(_INVENTED[1], start, end)
    return text


def _cut(diff: Diff) -> Text:
    text = coloured(diff)
    lines = text.split("\n")
    if len(lines) <= _LINES:
        return text
    return Text("\n").join([*lines[:_LINES], Text(f"… {len(lines) - _LINES} more lines")])
