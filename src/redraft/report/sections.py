"""The report's sections that not every evaluation has: on confidence and on the retriever.

Knows markup and escaping; does not compute confidences, maps, distances or scores.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from redraft.metrics.calibration import Abstention, Bin, Calibration, answers_needed
from redraft.metrics.evaluation import Evaluation
from redraft.metrics.retrieval_quality import (
    ORACLE_POOL,
    RetrievalQuality,
    first_prototypes,
    oracle_prototypes,
)
from redraft.report.embedding_map import OTHER, EmbeddingMap, embedding_map, sampled
from redraft.report.plots import (
    PERCENT_EDGES,
    Plot,
    counted,
    distance_histogram,
    group_names,
    histogram,
    map_plot,
    one_line,
)
from redraft.retrieval.auto import AutoRetriever, Selection
from redraft.retrieval.base import Retriever
from redraft.types import Example, Prototype

MAX_COMPARED = 150
"""Maximum number of examples for retrieval quality: the search for the oracle is slow."""

STATED_PRECISION = 0.95
"""The precision for which the number of evaluated answers must suffice."""

THRESHOLDS = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
"""Thresholds of the table; rows equal to the one before are omitted."""

_CONFIDENCE_LEGEND = (
    '<li><i class="key dot"></i>accuracy at this confidence, with a 95 % interval</li>'
    '<li><i class="key dashed"></i>perfect calibration</li>'
    '<li><i class="key block"></i>answers with this confidence</li>'
)

_SHAPES = (
    '<circle cx="5" cy="5" r="4"/>',
    '<rect x="1.4" y="1.4" width="7.2" height="7.2"/>',
    '<path d="M5 0 10 5 5 10 0 5z"/>',
    '<path d="M5 .8 9.6 9H.4z"/>',
)
"""In the order of the symbols in `page.js`: groups differ in shape as well as colour."""

_MEASURES = {
    "bleu_yin": ("Sentence BLEU", "Of the prototype's output against the truth; higher is better."),
    "bleu_paper": ("Sentence BLEU, unsmoothed", "As in the paper; higher is better."),
    "edit_distance": (
        "Tokens to edit",
        "Edit distance from the prototype's output to the truth; lower is better.",
    ),
}


@dataclass(frozen=True)
class Section:
    """A section of the page: its id, its label in the navigation, its content and its plot."""

    name: str
    label: str
    heading: str
    body: str
    plot: Plot | None = None

    @property
    def markup(self) -> str:
        """Return the section with its heading; the name is the anchor for the navigation."""
        return f"""<section id="{self.name}" aria-labelledby="{self.name}-heading">
<h2 id="{self.name}-heading">{self.heading}</h2>
{self.body}
</section>"""


def optional_sections(evaluation: Evaluation, retriever: Retriever | None) -> list[Section]:
    """Return the sections on confidence, distances, map and retrieval quality, if they apply."""
    calibration, distances = Calibration.of(evaluation), distance_histogram(evaluation)
    sections = [_confidence(calibration)] if calibration else []
    sections += [_distances(distances)] if distances else []
    if retriever is None or not retriever.examples:
        return sections
    embeddings = embedding_map(retriever, evaluation.examples)
    sections += [_map(embeddings, map_plot(embeddings, evaluation))] if embeddings else []
    return [*sections, _retrieval_quality(evaluation, retriever)]


def _confidence(calibration: Calibration) -> Section:
    plot = _reliability_plot(calibration)
    label = "Reliability plot: share of exactly right answers against confidence"
    figure = figure_markup(plot, "confidence", label, _CONFIDENCE_LEGEND)
    body = f'<div class="beside">{figure}\n{_abstention_table(calibration)}</div>'
    return Section("confidence", "Confidence", "Is a confident answer a right one?", body, plot)


def _reliability_plot(calibration: Calibration) -> Plot:
    """Return the reliability diagram in per cent, with a histogram of the confidences."""
    bins = calibration.bins
    percent = 100 * calibration.confidences
    values = {
        "confidences": [100 * b.confidence for b in bins],
        "shares": [100 * b.share.rate for b in bins],
        "lows": [100 * b.share.interval[0] for b in bins],
        "highs": [100 * b.share.interval[1] for b in bins],
        "texts": [_bin_text(b) for b in bins],
        "most": float(percent[-1]),
        **histogram(percent, PERCENT_EDGES, "confidence {:.4g}–{:.4g} %", "answer"),
    }
    return Plot(values, _confidence_caption(calibration))


def _bin_text(answers: Bin) -> str:
    low, high = answers.share.interval
    return (
        f"mean confidence {100 * answers.confidence:.1f} %<br>"
        f"{answers.share.right:,} of {counted(answers.share.n, 'answer')} exactly right: "
        f"{100 * answers.share.rate:.1f} %<br>95 % interval {100 * low:.1f} – {100 * high:.1f} %"
    )


def _confidence_caption(calibration: Calibration) -> str:
    share, missing = calibration.share, calibration.examples - calibration.n
    sentences = [
        f"{share.right:,} of {counted(share.n, 'answer')} are right, {100 * share.rate:.1f} %; "
        f"the model expected {100 * calibration.confidences.mean():.1f} %.",
        "Points on the dashed line are honest: of the answers with a confidence of 80 %, 80 % are "
        "right. Points above it are better than the model claims, points below it worse.",
        f"On average a point is {100 * calibration.expected_error:.1f} per cent away from the line "
        f"(expected calibration error over {counted(len(calibration.bins), 'bin')}); chance alone "
        f"would give {100 * calibration.chance_error:.1f}.",
        f"Brier score {calibration.brier:.3f}, lower is better; always claiming "
        f"{100 * share.rate:.0f} % would have {calibration.brier_of_rate:.3f}.",
    ]
    if missing:
        sentences.append(f"Left out: {counted(missing, 'example')} without a confidence.")
    return " ".join(sentences)


def _abstention_table(calibration: Calibration) -> str:
    rows: list[Abstention] = []
    for threshold in THRESHOLDS:
        row = calibration.at(threshold)
        if row is None:
            unreached = f"No answer reaches a confidence of {100 * threshold:.0f} %. "
            break
        if not rows or row.share != rows[-1].share:
            rows.append(row)
    else:
        unreached = ""
    return f"""<div>
<table class="compare abstain">
<caption>If only confident answers are given</caption>
<thead><tr><th scope="col">Confidence<br>at least</th>
<th scope="col" class="number">Examples<br>answered</th>
<th scope="col" class="number">Exactly<br>right</th></tr></thead>
<tbody>
{"".join(_abstention_row(row) for row in rows)}
</tbody>
</table>
{_too_few(calibration)}
<p class="reading">{unreached}Small print: the number of examples, and the Wilson 95&nbsp;%
interval of the share of right answers.</p>
</div>"""


def _too_few(calibration: Calibration) -> str:
    """Return a warning if there are too few answers to be sure of a high precision."""
    needed = answers_needed(STATED_PRECISION)
    if calibration.n >= needed:
        return ""
    return (
        f'<p class="warnings">{counted(calibration.n, "answer")} cannot show a precision of '
        f"{100 * STATED_PRECISION:.0f} %: at least {needed} are needed, all of them right. "
        "Evaluate on more pairs before you rely on a threshold.</p>"
    )


def _abstention_row(row: Abstention) -> str:
    low, high = row.share.interval
    threshold = f"{100 * row.threshold:.0f} %" if row.threshold else "any"
    return f"""<tr><th scope="row"><span class="name">{threshold}</span></th>
<td class="number">{100 * row.coverage:.1f} %<span class="explanation">{row.share.n:,}</span></td>
<td class="number score">{100 * row.share.rate:.1f} %
<span class="explanation">{100 * low:.1f} – {100 * high:.1f}</span></td></tr>
"""


def _distances(plot: Plot) -> Section:
    legend = (
        '<li><i class="key block"></i>examples with a prototype at this distance</li>'
        '<li><i class="key dashed"></i>median</li>'
    )
    figure = figure_markup(plot, "distances", "Histogram of the prototypes' distances", legend)
    return Section("distances", "Distances", "How far away are the prototypes?", figure, plot)


def _map(embeddings: EmbeddingMap, plot: Plot) -> Section:
    names = group_names(embeddings)
    labels = {number: escape(one_line(name, 40)) or "an example" for name, number in names.items()}
    if OTHER in embeddings.groups and OTHER not in names:
        labels[0] = "other"
    entries = [
        _entry(f"group-{number}", _SHAPES[max(0, number - 1) % len(_SHAPES)], label)
        for number, label in labels.items()
    ]
    entries.append(_entry("cross", '<path d="M1 1 9 9M9 1 1 9"/>', "an evaluated input"))
    key = one_line(embeddings.key, 40) if embeddings.key is not None else ""
    title = f'<li class="of">{escape(key)}:</li>' if key else ""
    figure = figure_markup(plot, "map", "Map of the examples", title + "".join(entries))
    return Section("map", "Map", "Which inputs lie together?", figure, plot)


def _entry(mark: str, shape: str, label: str) -> str:
    return f'<li><svg class="mark {mark}" viewBox="0 0 10 10">{shape}</svg>{label}</li>'


def figure_markup(plot: Plot, name: str, label: str, legend: str) -> str:
    """Return a figure with caption and legend; `page.js` draws the plot called `name`."""
    state = "" if plot.values else " is-empty"
    return f"""<figure class="plot{state}">
<figcaption>{escape(plot.caption)}</figcaption>
<ul class="legend" aria-hidden="true">{legend}</ul>
<div class="canvas {name}" data-plot="{name}" role="img" aria-label="{label}"></div>
<noscript><p class="empty">The plot needs JavaScript; the text above does not.</p></noscript>
</figure>"""


def _retrieval_quality(evaluation: Evaluation, retriever: Retriever) -> Section:
    rows = sampled(len(evaluation.examples), MAX_COMPARED)
    examples = [evaluation.examples[row] for row in rows]
    prototypes = first_prototypes(retriever, examples)
    if any(prototypes):
        body = _comparison(retriever, examples, prototypes, total=len(evaluation.examples))
    else:
        body = '<p class="empty">The retriever found no prototype for any example.</p>'
    if isinstance(retriever, AutoRetriever):
        body += _selection(retriever.selection)
    return Section("retrieval-quality", "Retrieval quality", "How good are the prototypes?", body)


def _comparison(
    retriever: Retriever,
    examples: Sequence[Example],
    prototypes: Sequence[Prototype | None],
    *,
    total: int,
) -> str:
    retrieved = RetrievalQuality.of(examples, prototypes)
    ceiling = RetrievalQuality.of(examples, oracle_prototypes(retriever.examples, examples))
    drawn = (
        f"To save time, {len(examples):,} examples were drawn at random from {total:,}."
        if len(examples) < total
        else ""
    )
    return f"""<p class="reading">{escape(_finding(retrieved, ceiling))}</p>
<table class="compare">
<caption>Prototypes against the true outputs</caption>
<thead><tr><th scope="col">Mean of {counted(len(examples), "example")}</th>
<th scope="col" class="number">This retriever <code>{escape(retriever.name)}</code></th>
<th scope="col" class="number">Best possible <code>oracle</code></th></tr></thead>
<tbody>
{_measures(retrieved.means(), ceiling.means())}
</tbody>
</table>
<p class="reading">The oracle uses the true output: of the {ORACLE_POOL} outputs that share the most
words with it, it picks the one with the highest sentence BLEU. {drawn}</p>"""


def _selection(selection: Selection) -> str:
    """Return the retrievers that were compared when the model was fitted."""
    rows = "\n".join(
        f"""<tr><th scope="row"><code>{escape(row.name)}</code></th>
<td class="number score">{row.similarity:.1f}</td><td class="number">{row.exact:.1f} %</td>
<td class="number">{row.gain:+.1f} ({row.low:+.1f} to {row.high:+.1f})</td></tr>"""
        for row in selection.measured
    )
    table = f"""<table class="compare">
<caption>Edits of the first prototype for {counted(selection.pairs, "held-out pair")}</caption>
<thead><tr><th scope="col">Retriever</th><th scope="col" class="number">BLEU</th>
<th scope="col" class="number">Right</th><th scope="col" class="number">More than BM25</th></tr>
</thead>
<tbody>
{rows}
</tbody>
</table>"""
    return f"""<p class="reading">When the model was fitted, the retriever was chosen:
{escape(selection.reason)}.</p>
{table if selection.measured else ""}"""


def _finding(retrieved: RetrievalQuality, best: RetrievalQuality) -> str:
    reached, ceiling = retrieved.means()["bleu_yin"], best.means()["bleu_yin"]
    scores = list(zip(retrieved.bleu_yin, best.bleu_yin, strict=True))
    as_good = sum(score >= highest - 1e-9 for score, highest in scores)
    share = f" (ratio {100 * reached / ceiling:.0f} %)" if ceiling else ""
    return (
        f"The retrieved outputs reach a BLEU of {reached:.1f}, the best possible ones "
        f"{ceiling:.1f}{share}. For {as_good:,} of {counted(len(scores), 'example')} the retrieved "
        "output is the best one."
    )


def _measures(retrieved: Mapping[str, float], best: Mapping[str, float]) -> str:
    return "\n".join(
        f"""<tr><th scope="row"><span class="name">{label}</span>
<span class="explanation">{explanation}</span></th>
<td class="number score">{retrieved[name]:.1f}</td><td class="number">{best[name]:.1f}</td></tr>"""
        for name, (label, explanation) in _MEASURES.items()
    )
