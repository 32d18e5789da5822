"""Write an evaluation as one self-contained HTML file: scores, plots and every example.

All user text passes through `html.escape` or script-safe JSON. Styles are in `page.css`, drawing in
`page.js`, plot data in `plots`, the sections on confidence and on the retriever in `sections`. Does
not compute scores.
"""

import base64
import hashlib
import json
import os
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from redraft.errors import MissingExtraError
from redraft.metrics.bootstrap import Interval
from redraft.metrics.calibration import Share
from redraft.metrics.evaluation import Evaluation
from redraft.metrics.exact_match import Language
from redraft.metrics.scores import Scores
from redraft.report.examples import examples_markup
from redraft.report.plots import distance_plot, primary_scores, score_plot
from redraft.report.sections import optional_sections
from redraft.retrieval.base import Retriever

MAX_SHOWN = 2_000
"""Maximum number of examples on the page."""

_METRICS = {
    "exact": (
        "Exact match",
        "Answers that equal the truth, by the rule of their language (--equal).",
    ),
    "exact_unseen": (
        "Exact match, unseen outputs",
        "Exact match on examples whose output does not occur verbatim in the training data.",
    ),
    "bleu_yin": (
        "Sentence BLEU",
        "Mean sentence BLEU-4 of the answers, with NLTK's smoothing method 3. Line breaks do not "
        "count.",
    ),
    "bleu_paper": (
        "Sentence BLEU, unsmoothed",
        "Mean sentence BLEU as in the paper: a newline is a token, and an answer that shares no "
        "4-gram with the truth scores 0.",
    ),
    "bleu_corpus": (
        "Corpus BLEU",
        "sacreBLEU's corpus score: n-grams are counted over all answers, so long answers weigh "
        "more.",
    ),
    "exact_paper": (
        "Exact match of tokens",
        "Answers with the same tokens as the truth; quotes and indentation do not matter.",
    ),
    "parses": ("Parses", "Answers that parse as Python."),
}
_EQUALITIES: dict[Language, str] = {
    "text": "the same text",
    "sql": "the same SQL up to case outside of quotes, white space and a final semicolon",
    "python": "the same syntax tree",
    "json": "the same JSON value",
}
_NOTES = {
    "language": "Language of the outputs",
    "n_unseen": "Examples with unseen outputs",
    "share_in_train": "Outputs that occur in train",
    "signature": "sacreBLEU signature",
}


def write_report(
    evaluation: Evaluation,
    path: Path,
    *,
    title: str,
    facts: Mapping[str, str],
    retriever: Retriever | None = None,
) -> None:
    """Write the report of an evaluation to `path` atomically; `facts` describe the model.

    With `retriever`, the report also shows its embedding map and its retrieval quality.
    """
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise MissingExtraError("plotly", extra="report", purpose="the HTML report") from error
    histogram, scatter = score_plot(evaluation), distance_plot(evaluation)
    sections = optional_sections(evaluation, retriever)
    plots = {"histogram": histogram.values, "scatter": scatter.values}
    plots |= {section.name: section.plot.values for section in sections if section.plot}
    scripts = {"plotly": _newlines(get_plotlyjs()), "script": _newlines(asset("page.js"))}
    page = Template(asset("page.html")).substitute(
        scripts,
        script_hashes=" ".join(_hash(script) for script in scripts.values()),
        style=asset("page.css"),
        data=_script_json(plots),
        title=escape(title),
        facts=_terms(facts, "facts"),
        histogram_caption=escape(histogram.caption),
        scatter_caption=escape(scatter.caption),
        sections="\n".join(section.markup for section in sections),
        sections_links="\n".join(
            f'<li><a href="#{section.name}">{section.label}</a></li>' for section in sections
        ),
        scatter_state="" if scatter.values else "is-empty",
        **_summary(evaluation),
        **_examples(evaluation),
    )
    write_whole(path, page)


def _summary(evaluation: Evaluation) -> dict[str, str]:
    scores, alone = evaluation.scores, evaluation.retrieval
    low, high = Share(scores.right or 0, scores.n).interval
    names = [name for name in _METRICS if name in scores.metrics]
    names += [name for name in scores.metrics if name not in _METRICS]
    return {
        "right": f"{scores.right:,} of {scores.n:,}",
        "right_range": f"{100 * low:.0f} – {100 * high:.0f} %",
        "right_bar": _bar(scores.metrics["exact"], (100 * low, 100 * high)),
        "retrieval": ""
        if alone is None
        else (f"Retrieval alone, without an edit: {alone.right:,} of {scores.n:,}."),
        "equality": _EQUALITIES[scores.notes["language"]],
        "metrics": "\n".join(_metric_row(scores, name) for name in names),
        "interval_note": (
            "A single example cannot be resampled, so the intervals here have no width."
            if scores.n == 1
            else "An interval without width means that all examples agree, not that the value is "
            "certain."
        ),
        "notes": _terms(_notes(evaluation), "notes"),
    }


def _metric_row(scores: Scores, name: str) -> str:
    label, explanation = _METRICS.get(name, (name, ""))
    n = scores.notes.get("n_unseen", scores.n) if name == "exact_unseen" else scores.n
    bar = _bar(scores.metrics[name], scores.interval[name])
    return f"""<tr role="row">
<th role="rowheader" scope="row"><span class="term"><span class="name">{escape(label)}</span>
<code>{escape(name)}</code></span><span class="explanation">{escape(explanation)}</span></th>
<td role="cell" class="number score">{scores.metrics[name]:.1f}</td>
<td role="cell" class="range">{_range(scores, name)}{bar}</td>
<td role="cell" class="number n"><span class="n-label">n = </span>{n:,}</td>
</tr>"""


def _range(scores: Scores, name: str) -> str:
    low, high = scores.interval[name]
    return f"{low:.1f} – {high:.1f}"


def _bar(value: float, interval: Interval) -> str:
    low, high = interval
    position = f"--at:{value:.2f};--low:{low:.2f};--high:{high:.2f}"
    return f'<span class="bar" style="{position}" aria-hidden="true"><i></i><b></b></span>'


def _notes(evaluation: Evaluation) -> dict[str, str]:
    answered = [answer for answer in evaluation.answers if answer]
    pairs = [(answer.prototype.example.y, answer.output) for answer in answered if answer.prototype]
    notes = {"Answered": f"{len(answered):,} of {len(evaluation.answers):,}"}
    if pairs:
        unchanged = sum(before == after for before, after in pairs)
        notes["Prototype returned unchanged"] = f"{unchanged:,} of {len(pairs):,}"
    details = evaluation.scores.notes
    # the longest goes last
    for name in sorted(details, key=lambda name: name == "signature"):
        shown = f"{details[name]:.1f} %" if name == "share_in_train" else str(details[name])
        notes[_NOTES.get(name, name)] = shown
    return notes


def _terms(terms: Mapping[str, str], name: str) -> str:
    rows = (f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in terms.items())
    return f'<dl class="{name}">{"".join(rows)}</dl>' if terms else ""


def shown_rows(evaluation: Evaluation) -> list[int]:
    """Return the rows to show, the worst first; of too many an even sample."""
    scores, exact = primary_scores(evaluation), evaluation.scores.per_example["exact"]
    # among equal scores, show answered examples first
    ordered = sorted(
        range(len(scores)),
        key=lambda row: (exact[row], scores[row], evaluation.answers[row] is None, row),
    )
    return ordered[:: -(-len(ordered) // MAX_SHOWN)]


def _examples(evaluation: Evaluation) -> dict[str, str]:
    rows, exact = shown_rows(evaluation), evaluation.scores.per_example["exact"]
    right = sum(exact[row] > 0 for row in rows)
    counts = {"all": len(rows), "wrong": len(rows) - right, "right": right}
    filters = "".join(
        f'<button type="button" data-show="{name}" aria-pressed="{str(name == "all").lower()}">'
        f"{name.capitalize()} <span>{count:,}</span></button>"
        for name, count in counts.items()
    )
    total = len(evaluation.examples)
    sample = f" A sample of {total:,}; rows.jsonl has all." if len(rows) < total else ""
    return {
        "examples_filters": filters,
        "examples_sample": sample,
        "examples": examples_markup(evaluation, rows),
    }


def asset(name: str) -> str:
    """Return the text of a file of this package."""
    return files("redraft.report").joinpath(name).read_text(encoding="utf-8")


def _newlines(script: str) -> str:
    """Return the script with newlines normalised as browsers do, for its hash."""
    return script.replace("\r\n", "\n").replace("\r", "\n")


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _script_json(value: Any) -> str:
    """Return JSON that cannot close its script element."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def write_whole(path: Path, page: str) -> None:
    """Write a page to `path` in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        # lone surrogates cannot be encoded
        partial.write_bytes(page.encode("utf-8", errors="replace"))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
