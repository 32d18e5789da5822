"""HTML for notebooks: answers, diffs, evaluations, comparisons as escaped text with inline styles.

Colours are translucent, so that they can be read on light and dark pages. Knows no scripts and no
page; the report and the web page have their own markup.
"""

from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

from redraft.text.marks import split_at_values
from redraft.types import Candidate, Input, Origin

if TYPE_CHECKING:
    from redraft.text.diff import Diff

ORIGINS: dict[Origin, tuple[str, str]] = {
    "prototype": ("copied from the prototype", "background:rgba(20,140,140,.22)"),
    "input": (
        "copied from the input",
        "background:rgba(220,120,30,.25);text-decoration:underline dotted",
    ),
    "mapped": (
        "mapped from the input as in other examples",
        "background:rgba(40,100,220,.22);text-decoration:underline double",
    ),
    "generated": ("generated", "background:rgba(120,80,220,.2);text-decoration:underline"),
}
_INVENTED = ("value from nowhere", "background:rgba(200,20,60,.3);text-decoration:underline wavy")
_CHANGES = {
    "removed": ("del", "background:rgba(200,40,30,.2)"),
    "added": ("ins", "background:rgba(20,140,60,.22)"),
}
_PRE = "margin:.3em 0;padding:.5em .7em;white-space:pre-wrap;background:rgba(127,127,127,.1)"
_SMALL = "font-size:85%;opacity:.8"


def traced_html(candidate: Candidate) -> str:
    """Return the output with its tokens coloured by origin, and a legend of the origins."""
    if not candidate.provenance:
        return _pre(escape(candidate.output))
    markup, seen = "", []
    pieces = split_at_values(candidate.provenance, candidate.invented)
    for (origin, is_invented), run in groupby(pieces, key=lambda one: (one[0].origin, one[1])):
        entry = _INVENTED if is_invented else ORIGINS[origin]
        seen += [] if entry in seen else [entry]
        text = "".join(token.text for token, _ in run)
        start = len(text) - len(text.lstrip())  # white space belongs to no origin
        markup += text[:start] + _span(text[start:], *entry)
    legend = " ".join(_span(label, label, style) for label, style in seen)
    return f'{_pre(markup)}<div style="{_SMALL}">{legend}</div>'


def diff_html(diff: "Diff") -> str:
    """Return a diff with removed text struck through and added text underlined."""
    markup = ""
    for span in diff.spans:
        text = escape(span.text)
        if span.change != "kept":
            tag, style = _CHANGES[span.change]
            text = f'<{tag} style="{style}">{text}</{tag}>'
        markup += text
    return _pre(markup)


def candidate_html(candidate: Candidate) -> str:
    """Return an answer with its confidence, warnings, origins and prototype."""
    lines = [f"<b>⚠ {escape(warning)}</b>" for warning in candidate.warnings]
    if candidate.confidence is not None:
        lines.append(f"confidence {100 * candidate.confidence:.0f} %")
    parts = [traced_html(candidate), _small(" · ".join(lines))]
    if candidate.prototype is not None:
        example = candidate.prototype.example
        meta = ", ".join(f"{key} {value}" for key, value in example.meta.items())
        heading = f"edited from: {escape(_one_line(example.x))}"
        parts += [_small(heading + (f" ({escape(meta)})" if meta else ""))]
        parts += [diff_html(candidate.diff())]
    return f"<div>{''.join(parts)}</div>"


def prediction_html(x: Input, ranked: Sequence[Candidate], *, abstains: bool) -> str:
    """Return an input and its answers; the second and later ones in a closed list."""
    heading = emphasized_html(_one_line(x))
    if not ranked:
        return f"{heading}{_small('no answer: nothing was retrieved')}"
    notice = _small("<b>the model abstains; its best guess:</b>") if abstains else ""
    others = "".join(map(candidate_html, ranked[1:]))
    more = f"<details><summary>{len(ranked) - 1} more</summary>{others}</details>" if others else ""
    return f"{heading}{notice}{candidate_html(ranked[0])}{more}"


def emphasized_html(text: str) -> str:
    """Return a line of text in bold."""
    return f"<div><b>{escape(text)}</b></div>"


def table_html(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table of texts, the first column aligned left."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = ""
    for first, *cells in rows:
        numbers = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        body += f'<tr><td style="text-align:left">{escape(first)}</td>{numbers}</tr>'
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _span(text: str, title: str, style: str) -> str:
    return f'<span title="{title}" style="{style}">{escape(text)}</span>' if text else ""


def _pre(markup: str) -> str:
    return f'<pre style="{_PRE}">{markup}</pre>'


def _small(markup: str) -> str:
    return f'<div style="{_SMALL}">{markup}</div>' if markup else ""


def _one_line(x: Input) -> str:
    return " ".join(" ".join(x.values()).split())
