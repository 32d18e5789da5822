"""Write a comparison of systems as one self-contained HTML file: recommendation, table, answers.

All user text passes through `html.escape`. Loads nothing, and runs no script.
"""

from html import escape
from pathlib import Path

from redraft.metrics.bootstrap import mean_interval
from redraft.metrics.comparison import SystemComparison, SystemResult
from redraft.report.page import asset, write_whole
from redraft.report.plots import counted
from redraft.types import input_text

SHOWN = 100
"""Questions whose answers are shown."""

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_COLUMNS = (
    ("Right", "number"),
    ("95 % interval", "range"),
    ("Similarity", "number"),
    ("Behind the best", "number"),
    ("Seconds", "number"),
    ("Requests", "number"),
    ("Cost", "number"),
)

_READING = (
    "Right: equal up to case, white space and a final semicolon. Similarity: sentence BLEU. Behind "
    "the best: the mean difference on the same questions, with its paired 95 % interval. Seconds, "
    "requests and cost are those of one answer."
)


def write_comparison(comparison: SystemComparison, path: Path, *, title: str) -> None:
    """Write the report to `path`."""
    head = "".join(
        f'<th role="columnheader" scope="col" class="{kind}">{name}</th>' for name, kind in _COLUMNS
    )
    rows = "\n".join(_system_row(comparison, system) for system in comparison.systems)
    answers = "\n".join(_question(comparison, i) for i in range(min(SHOWN, comparison.n)))
    page = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="Redraft">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<style>
{asset("page.css")}
</style>
</head>
<body>
<header class="page-header">
<p class="eyebrow">Redraft comparison</p>
<h1>{escape(title)}</h1>
</header>
<main>
<section id="summary" aria-labelledby="summary-heading">
<h2 id="summary-heading">Recommendation</h2>
<p>{escape(comparison.recommendation)}</p>
<table class="metrics" role="table">
<caption>{counted(comparison.n, "held-out question")}</caption>
<thead role="rowgroup"><tr role="row">
<th role="columnheader" scope="col">System</th>{head}
</tr></thead>
<tbody role="rowgroup">
{rows}
</tbody>
</table>
<p class="reading">{_READING}</p>
</section>
<section id="examples" aria-labelledby="examples-heading">
<h2 id="examples-heading">Answers</h2>
{answers}
</section>
</main>
<footer class="page-footer">
<p>Written by Redraft. This file holds everything it shows and loads nothing from the network.</p>
</footer>
</body>
</html>
"""
    write_whole(path, page)


def _system_row(comparison: SystemComparison, system: SystemResult) -> str:
    exact = sum(system.exact) / comparison.n
    low, high = mean_interval(system.exact)
    points, (least, most) = comparison.behind(system)
    bar = f"--at:{exact:.2f};--low:{low:.2f};--high:{high:.2f}"
    behind = "–" if system is comparison.best else f"{points:.1f}<br>({least:.1f} to {most:.1f})"
    cells = (
        ("number score", f"{exact:.1f}"),
        (
            "range",
            f'{low:.1f} – {high:.1f}<span class="bar" style="{bar}" aria-hidden="true">'
            "<i></i><b></b></span>",
        ),
        ("number", f"{sum(system.similarity) / comparison.n:.1f}"),
        ("number", behind),
        ("number", f"{system.seconds:.3f}"),
        ("number", f"{system.requests:.1f}"),
        ("number", "–" if system.cost is None else f"{system.cost:.5f}"),
    )
    body = "".join(f'<td role="cell" class="{kind}">{text}</td>' for kind, text in cells)
    name = f'<span class="name">{escape(system.name)}</span>'
    return f'<tr role="row"><th role="rowheader" scope="row">{name}</th>{body}</tr>'


def _question(comparison: SystemComparison, i: int) -> str:
    example = comparison.systems[0].examples[i]
    right = sum(bool(system.exact[i]) for system in comparison.systems)
    rows = "".join(
        f"<dt>{escape(system.name)}{' ✓' if system.exact[i] else ''}</dt>"
        f"<dd><code>{escape(system.answers[i].output or '–')}</code></dd>"
        for system in comparison.systems
    )
    return f"""<details><summary>{escape(input_text(example.x))} ({right} right)</summary>
<dl><dt>truth</dt><dd><code>{escape(example.y)}</code></dd>{rows}</dl></details>"""
