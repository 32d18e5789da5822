"""The report's sections on the retriever: distances, embedding map and retrieval quality.

Knows markup and escaping; does not compute maps, distances or scores.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from redraft.metrics.evaluation import Evaluation
from redraft.metrics.retrieval_quality import (
    ORACLE_POOL,
    RetrievalQuality,
    first_prototypes,
    oracle_prototypes,
)
from redraft.report.embedding_map import OTHER, EmbeddingMap, embedding_map, sampled
from redraft.report.plots import (
    Plot,
    counted,
    distance_histogram,
    group_names,
    map_plot,
    one_line,
)
from redraft.retrieval.base import Retriever
from redraft.types import Example, Prototype

MAX_COMPARED = 150
"""Maximum number of examples for retrieval quality: the search for the oracle is slow."""

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
    """A section of the page: its id, its label in the navigation, markup and plot data."""

    name: str
    label: str
    markup: str
    data: Mapping[str, Any] = field(default_factory=dict)


def retriever_sections(evaluation: Evaluation, retriever: Retriever | None) -> list[Section]:
    """Return the sections on distances and, given a retriever, its map and retrieval quality."""
    histogram = distance_histogram(evaluation)
    sections = [_distances(histogram)] if histogram else []
    if retriever is None or not retriever.examples:
        return sections
    embeddings = embedding_map(retriever, evaluation.examples)
    sections += [_map(embeddings, map_plot(embeddings, evaluation))] if embeddings else []
    return [*sections, _retrieval_quality(evaluation, retriever)]


def _distances(plot: Plot) -> Section:
    legend = (
        '<li><i class="key block"></i>examples with a prototype at this distance</li>'
        '<li><i class="key dashed"></i>median</li>'
    )
    figure = figure_markup(plot, "distances", "Histogram of the prototypes' distances", legend)
    heading = "How far are the prototypes?"
    data = {"distances": plot.values}
    return Section("distances", "Distances", section_markup("distances", heading, figure), data)


def _map(embeddings: EmbeddingMap, plot: Plot) -> Section:
    names = group_names(embeddings)
    entries = [_entry(number, _named(name)) for name, number in names.items()]
    if OTHER in embeddings.groups and OTHER not in names:
        entries.append(_entry(0, "other"))
    cross = '<path d="M1 1 9 9M9 1 1 9"/>'
    entries.append(f"<li>{_mark('cross', cross)}an evaluated input</li>")
    key = one_line(embeddings.key, 40) if embeddings.key is not None else ""
    title = f'<li class="of">{escape(key)}:</li>' if key else ""
    figure = figure_markup(plot, "map", "Map of the examples", title + "".join(entries))
    return Section(
        "map",
        "Map",
        section_markup("map", "Which inputs lie together?", figure),
        {"map": plot.values},
    )


def _named(group: str) -> str:
    return escape(one_line(group, 40)) if group != OTHER else "an example"


def _entry(number: int, label: str) -> str:
    shape = _SHAPES[(number - 1) % len(_SHAPES)] if number else _SHAPES[0]
    return f"<li>{_mark(f'group-{number}', shape)}{label}</li>"


def _mark(name: str, shape: str) -> str:
    return f'<svg class="mark {name}" viewBox="0 0 10 10">{shape}</svg>'


def figure_markup(plot: Plot, name: str, label: str, legend: str) -> str:
    """Return a figure with caption and legend; `page.js` draws the plot called `name`."""
    state = "" if plot.values else " is-empty"
    return f"""<figure class="plot{state}">
<figcaption>{escape(plot.caption)}</figcaption>
<ul class="legend" aria-hidden="true">{legend}</ul>
<div class="canvas {name}" data-plot="{name}" role="img" aria-label="{label}"></div>
<noscript><p class="empty">The plot needs JavaScript; the text above does not.</p></noscript>
</figure>"""


def section_markup(name: str, heading: str, body: str) -> str:
    """Return a section with its heading; `name` is the anchor for the navigation."""
    return f"""<section id="{name}" aria-labelledby="{name}-heading">
<h2 id="{name}-heading">{heading}</h2>
{body}
</section>"""


def _retrieval_quality(evaluation: Evaluation, retriever: Retriever) -> Section:
    rows = sampled(len(evaluation.examples), MAX_COMPARED)
    examples = [evaluation.examples[row] for row in rows]
    prototypes = first_prototypes(retriever, examples)
    if any(prototypes):
        body = _comparison(retriever, examples, prototypes, total=len(evaluation.examples))
    else:
        body = '<p class="empty">The retriever found no prototype for any example.</p>'
    markup = section_markup("retrieval-quality", "How good are the prototypes?", body)
    return Section("retrieval-quality", "Retrieval quality", markup)


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


def _finding(retrieved: RetrievalQuality, best: RetrievalQuality) -> str:
    reached, ceiling = retrieved.means()["bleu_yin"], best.means()["bleu_yin"]
    as_good = _as_good(retrieved.bleu_yin, best.bleu_yin)
    total = len(retrieved.bleu_yin)
    share = f" (ratio {100 * reached / ceiling:.0f} %)" if ceiling else ""
    return (
        f"The retrieved outputs reach a BLEU of {reached:.1f}, the best possible ones "
        f"{ceiling:.1f}{share}. For {as_good:,} of {counted(total, 'example')} the retrieved "
        "output is the best one."
    )


def _as_good(retrieved: Sequence[float], best: Sequence[float]) -> int:
    return sum(one >= other - 1e-9 for one, other in zip(retrieved, best, strict=True))


def _measures(retrieved: Mapping[str, float], best: Mapping[str, float]) -> str:
    return "\n".join(
        f"""<tr><th scope="row"><span class="name">{label}</span>
<span class="explanation">{explanation}</span></th>
<td class="number score">{retrieved[name]:.1f}</td><td class="number">{best[name]:.1f}</td></tr>"""
        for name, (label, explanation) in _MEASURES.items()
    )
