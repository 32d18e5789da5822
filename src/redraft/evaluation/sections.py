"""The report's sections on the retriever, each only where there is something to show.

Knows markup and escaping; does not know how a map, a distance or a score is computed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from redraft.data.example import Example
from redraft.evaluation.editability import (
    ORACLE_POOL,
    Editability,
    first_prototypes,
    oracle_prototypes,
)
from redraft.evaluation.evaluation import Evaluation
from redraft.evaluation.plots import (
    Plot,
    counted,
    distance_histogram,
    group_names,
    map_plot,
    one_line,
)
from redraft.evaluation.space import OTHER, Space, sampled, space_of
from redraft.retrieval.prototype import Prototype
from redraft.retrieval.retriever import Retriever

MAX_COMPARED = 150
"""Examples of the table of editability: the search for the best prototype takes its time."""

_SHAPES = (
    '<circle cx="5" cy="5" r="4"/>',
    '<rect x="1.4" y="1.4" width="7.2" height="7.2"/>',
    '<path d="M5 0 10 5 5 10 0 5z"/>',
    '<path d="M5 .8 9.6 9H.4z"/>',
)
"""In the order of the symbols in `report.js`: no group is told by colour alone."""

_MEASURES = {
    "bleu_yin": ("Sentence BLEU", "Of the prototype's output against the truth; more is better."),
    "bleu_paper": ("Sentence BLEU, unsmoothed", "The same as the paper took it; more is better."),
    "edit_distance": (
        "Tokens to edit",
        "Insertions, deletions and replacements from the prototype's output to the truth; "
        "fewer is better.",
    ),
}


@dataclass(frozen=True)
class Section:
    """A part of the page, its name in the navigation, and what its plot draws."""

    name: str
    label: str
    markup: str
    data: Mapping[str, Any] = field(default_factory=dict)


def retriever_sections(evaluation: Evaluation, retriever: Retriever | None) -> list[Section]:
    """Distances of the prototypes; with a retriever its map and the editability of its finds."""
    histogram = distance_histogram(evaluation)
    sections = [_distances(histogram)] if histogram else []
    if retriever is None or not retriever.examples:
        return sections
    space = space_of(retriever, evaluation.examples)
    sections += [_map(space, map_plot(space, evaluation))] if space else []
    return [*sections, _editability(evaluation, retriever)]


def _distances(plot: Plot) -> Section:
    legend = (
        '<li><i class="key block"></i>examples with a prototype at this distance</li>'
        '<li><i class="key dashed"></i>median</li>'
    )
    figure = figure_markup(plot, "distances", "Histogram of the prototypes' distances", legend)
    heading = "How far are the prototypes?"
    data = {"distances": plot.values}
    return Section("distances", "Distances", section_markup("distances", heading, figure), data)


def _map(space: Space, plot: Plot) -> Section:
    names = group_names(space)
    entries = [_entry(number, _named(name)) for name, number in names.items()]
    if OTHER in space.groups and OTHER not in names:
        entries.append(_entry(0, "other"))
    cross = '<path d="M1 1 9 9M9 1 1 9"/>'
    entries.append(f"<li>{_mark('cross', cross)}an evaluated input</li>")
    key = one_line(space.key, 40) if space.key is not None else ""
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
    """A plot with its caption and legend; `report.js` draws what has this name."""
    state = "" if plot.values else " is-empty"
    return f"""<figure class="plot{state}">
<figcaption>{escape(plot.caption)}</figcaption>
<ul class="legend" aria-hidden="true">{legend}</ul>
<div class="canvas {name}" data-plot="{name}" role="img" aria-label="{label}"></div>
<noscript><p class="empty">The plot needs JavaScript; the figures above do not.</p></noscript>
</figure>"""


def section_markup(name: str, heading: str, body: str) -> str:
    """A section with its heading, where the navigation finds it."""
    return f"""<section id="{name}" aria-labelledby="{name}-heading">
<h2 id="{name}-heading">{heading}</h2>
{body}
</section>"""


def _editability(evaluation: Evaluation, retriever: Retriever) -> Section:
    rows = sampled(len(evaluation.examples), MAX_COMPARED)
    examples = [evaluation.examples[row] for row in rows]
    found = first_prototypes(retriever, examples)
    if any(found):
        body = _comparison(retriever, examples, found, total=len(evaluation.examples))
    else:
        body = '<p class="empty">The retriever found no prototype for any example.</p>'
    markup = section_markup("editability", "How good could a prototype be?", body)
    return Section("editability", "Editability", markup)


def _comparison(
    retriever: Retriever,
    examples: Sequence[Example],
    found: Sequence[Prototype | None],
    *,
    total: int,
) -> str:
    retrieved = Editability.of(examples, found)
    ceiling = Editability.of(examples, oracle_prototypes(retriever.examples, examples))
    drawn = (
        f"To save time, {len(examples):,} examples were drawn at random from {total:,}."
        if len(examples) < total
        else ""
    )
    return f"""<p class="reading">{escape(_finding(retrieved, ceiling))}</p>
<table class="compare">
<caption>What an editor would start from</caption>
<thead><tr><th scope="col">Mean of {counted(len(examples), "example")}</th>
<th scope="col" class="number">This retriever <code>{escape(retriever.name)}</code></th>
<th scope="col" class="number">Best possible <code>oracle</code></th></tr></thead>
<tbody>
{_measures(retrieved.means(), ceiling.means())}
</tbody>
</table>
<p class="reading">The best possible prototype is found with the true output in hand: of the
{ORACLE_POOL} outputs that share most words with it, the one with the highest sentence BLEU.
{drawn}</p>"""


def _finding(retrieved: Editability, best: Editability) -> str:
    reached, ceiling = retrieved.means()["bleu_yin"], best.means()["bleu_yin"]
    as_good = _as_good(retrieved.bleu_yin, best.bleu_yin)
    total = len(retrieved.bleu_yin)
    share = f", {100 * reached / ceiling:.0f} % of what was possible" if ceiling else ""
    return (
        f"The retrieved outputs reach a BLEU of {reached:.1f} where the best ones reach "
        f"{ceiling:.1f}{share}. For {as_good:,} of {counted(total, 'example')} nothing better "
        "than the retrieved output was found."
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
