"""Examples in the report: input, prototype, answer and truth, compared token by token.

Shows the origin of each token if the answer has provenance. Knows markup and escaping; does not
select the examples.
"""

import re
from collections import Counter
from collections.abc import Iterable
from html import escape
from itertools import groupby

from redraft.metrics.evaluation import Evaluation
from redraft.report.plots import counted, gist, primary_scores, short_distance
from redraft.text.diff import Diff, Span
from redraft.text.marks import split_at_values
from redraft.types import Candidate, Example, Input, Origin

MAX_CHARACTERS = 20_000
"""Maximum number of characters shown of a text."""

MAX_COMPARED = 3_000
"""Maximum number of characters compared of a text: diffs can take cubic time."""

_ORIGINS: dict[Origin, str] = {
    "prototype": "copied from the prototype",
    "input": "copied from the input",
    "mapped": "mapped from the input as in other examples",
    "generated": "generated",
}
_INVENTED = "value from nowhere"


def examples_markup(evaluation: Evaluation, rows: Iterable[int]) -> str:
    """Return the markup of the examples in `rows`, the first one expanded."""
    return "\n".join(_example(evaluation, row, is_open=i == 0) for i, row in enumerate(rows))


def _example(evaluation: Evaluation, row: int, *, is_open: bool) -> str:
    example, answer = evaluation.examples[row], evaluation.answers[row]
    prototype = answer.prototype if answer else None
    confidence = answer.confidence if answer else None
    is_right = evaluation.scores.per_example["exact"][row] > 0
    tags = [f"row {row + 1}"]
    tags += [f"distance {short_distance(prototype.distance)}"] if prototype else []
    tags += [f"confidence&nbsp;{_percent(confidence)}"] if confidence is not None else []
    tags += ["nothing similar"] if answer and not answer.is_familiar else []
    tags += ["value from nowhere"] if answer and answer.invented else []
    tags += ["right"] if is_right else []
    return f"""<details class="example{" right" if is_right else ""}"{" open" if is_open else ""}>
<summary><span class="points">{primary_scores(evaluation)[row]:.1f}</span>
<span class="gist">{escape(gist(example))}</span>
<span class="tags">{", ".join(tags)}</span></summary>
<div class="body">
{_warnings(answer)}
{_fields("Input", example.x)}
{_fields("Input of the prototype", prototype.example.x if prototype else None)}
{_comparisons(example, answer)}
{_origins(answer)}
<details class="wide"><summary>The three texts in full</summary>
<div class="texts">
{_text("Output of the prototype", prototype.example.y if prototype else None)}
{_text("Answer", answer.output if answer else None)}
{_text("Truth", example.y)}
</div></details>
</div>
</details>"""


def _fields(label: str, x: Input | None) -> str:
    if x is None:
        return _panel(label, '<p class="missing">No prototype was retrieved.</p>')
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(_cut(text, MAX_CHARACTERS)) or '–'}</dd>"
        for name, text in x.items()
    )
    return _panel(
        label, f'<div class="fields" role="group" aria-label="{label}"><dl>{rows}</dl></div>'
    )


def _comparisons(example: Example, answer: Candidate | None) -> str:
    if answer is None:
        return _text("Answer", None) + _text("Truth", example.y)
    prototype = answer.prototype
    edit = (
        _comparison("From prototype to answer", prototype.example.y, answer.output)
        if prototype
        else _text("Answer", answer.output)
    )
    return edit + _comparison("From answer to truth", answer.output, example.y)


def _comparison(label: str, before: str, after: str) -> str:
    spans = Diff.between(_cut(before, MAX_COMPARED), _cut(after, MAX_COMPARED)).spans
    changes = sum(span.change != "kept" for span in spans)
    summary = "no changes" if before == after else counted(changes, "change")
    if max(len(before), len(after)) > MAX_COMPARED:
        summary += f" in the first {MAX_COMPARED:,} characters"
    heading = f'{label} <span class="verdict">({summary})</span>'
    return _panel(heading, _box(label, "".join(_span(span) for span in spans)))


_INDENTATION = re.compile(r"(?<=\n)[ \t]+(?=[^\s<])")


def _span(span: Span) -> str:
    text = escape(span.text)
    if span.change == "kept":
        return text
    tag = "del" if span.change == "removed" else "ins"
    # a line break needs a visible mark to strike out or underline; indentation needs none
    broken = text.replace("\n", '<span class="newline"></span>\n')
    marked = _INDENTATION.sub(rf"</{tag}>\g<0><{tag}>", broken)
    return f"<{tag}>{marked}</{tag}>"


def _warnings(answer: Candidate | None) -> str:
    """Return the markup of the answer's warnings; empty without any."""
    lines = answer.warnings if answer else ()
    items = "".join(f"<li>{escape(line[0].upper() + line[1:])}.</li>" for line in lines)
    return f'<ul class="warnings" aria-label="Warnings">{items}</ul>' if items else ""


def _origins(answer: Candidate | None) -> str:
    """Return the markup of the tokens by origin; empty without provenance."""
    tokens = answer.provenance if answer else ()
    if answer is None or not tokens:
        return ""
    counts = Counter(token.origin for token in tokens)
    legend = "".join(
        f'<li><span class="from-{origin}">{label}</span> {counted(counts[origin], "token")}</li>'
        for origin, label in _ORIGINS.items()
        if counts[origin]
    )
    if answer.invented:
        legend += f'<li><span class="invented">{_INVENTED}</span></li>'
    markup, room = "", MAX_CHARACTERS
    pieces = split_at_values(tokens, answer.invented)
    for (origin, is_invented), run in groupby(
        pieces, key=lambda piece: (piece[0].origin, piece[1])
    ):
        text = "".join(token.text for token, _ in run)
        markup += _marked(text[:room], origin, is_invented=is_invented)
        room = max(0, room - len(text))
    over = sum(len(token.text) for token in tokens) - MAX_CHARACTERS
    label = "Where the answer's tokens come from"
    box = _box(label, markup + (_more(over) if over > 0 else ""))
    return f'<div class="origins"><h4>{label}</h4><ul class="legend">{legend}</ul>{box}</div>'


_LINE = re.compile(r"\S(?:.*\S)?")


def _marked(text: str, origin: Origin, *, is_invented: bool) -> str:
    """Mark each line of a text with its origin, without the surrounding white space."""
    mark, title = f"from-{origin}", _ORIGINS[origin]
    if is_invented:
        mark, title = "invented", _INVENTED
    markup, done = "", 0
    for line in _LINE.finditer(text):
        start = f'<span class="{mark}" title="{title}">'
        markup += f"{text[done : line.start()]}{start}{escape(line[0])}</span>"
        done = line.end()
    return markup + text[done:]


def _percent(confidence: float) -> str:
    # 0 % and 100 % would claim certainty
    bound = "under&nbsp;" if confidence < 0.01 else "over&nbsp;" if confidence > 0.99 else ""
    return f"{bound}{100 * min(max(confidence, 0.01), 0.99):.0f}&nbsp;%"


def _text(label: str, text: str | None) -> str:
    if text is None:
        return _panel(label, '<p class="missing">None.</p>')
    return _panel(label, _box(label, escape(_cut(text, MAX_CHARACTERS))))


def _box(label: str, markup: str) -> str:
    # browsers drop a newline right after <pre>, so add one
    return f'<pre class="text" role="group" aria-label="{label}">\n{markup}</pre>'


def _panel(heading: str, body: str) -> str:
    return f"<div><h4>{heading}</h4>{body}</div>"


def _cut(text: str, limit: int) -> str:
    over = len(text) - limit
    return text if over <= 0 else f"{text[:limit]}{_more(over)}"


def _more(over: int) -> str:
    return f"\n… and {counted(over, 'character')} more"
