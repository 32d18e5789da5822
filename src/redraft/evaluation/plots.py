"""The numbers behind the report's plots, and what each says in words.

Knows scores and distances; knows no page, no colour and no plotting library (`report.js` draws).
"""

import html
import math
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redraft.data.example import Example, input_text
from redraft.evaluation.evaluation import Evaluation
from redraft.evaluation.space import MAX_GROUPS, OTHER, Space

PRIMARY = "bleu_yin"
"""The metric that examples are plotted and ranked by."""

BIN_WIDTH = 5
MAX_POINTS = 2000
"""Points drawn in the scatter plot; captions and means are of all of them."""

_DISTANCE_BINS = 24
_LINE_BINS = 8
_POINTS_A_BIN = 5


@dataclass(frozen=True)
class Plot:
    """What to draw, if there is anything, and what it says."""

    values: Mapping[str, Any] | None
    caption: str


def primary_scores(evaluation: Evaluation) -> NDArray[np.float64]:
    """The primary metric of every example, 0 to 100."""
    return 100 * np.asarray(evaluation.scores.per_example[PRIMARY], np.float64)


def gist(example: Example, length: int = 88) -> str:
    """The input on one line, cut between words to a length."""
    return one_line(input_text(example.x), length) or "(empty input)"


def one_line(text: str, length: int) -> str:
    """The text on one line, cut between words to a length."""
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 1].rsplit(" ", 1)[0] + " …"


def score_plot(evaluation: Evaluation) -> Plot:
    """A histogram of the scores, with their mean."""
    scores = primary_scores(evaluation)
    edges = np.arange(0, 100 + BIN_WIDTH, BIN_WIDTH)
    # a hair above 100 is rounding, and belongs into the last bin
    counts = np.histogram(np.clip(scores, 0, 100), edges)[0].tolist()
    labels = [
        f"score {low}–{low + BIN_WIDTH}: {counted(count, 'example')}"
        for low, count in zip(edges.tolist(), counts, strict=False)
    ]
    values = {
        "edges": edges.tolist(),
        "counts": counts,
        "labels": labels,
        "mean": evaluation.scores.metrics[PRIMARY],
        "interval": list(evaluation.scores.interval[PRIMARY]),
    }
    return Plot(values, _score_caption(scores))


def _score_caption(scores: NDArray[np.float64]) -> str:
    if len(scores) == 1:
        return f"The one example scores {scores[0]:.1f}."
    return (
        f"Half of the {len(scores):,} examples score {np.median(scores):.1f} or more; "
        f"{_scoring(scores >= 99.95)} 100, {_scoring(scores < 0.05)} 0."
    )


def _scoring(chosen: NDArray[np.bool_]) -> str:
    count = int(chosen.sum())
    return f"{count:,} score" if count > 1 else f"{('none', 'one')[count]} scores"


def distance_plot(evaluation: Evaluation) -> Plot:
    """The scores against the distances of the prototypes, with the mean along the way."""
    scores, distances = primary_scores(evaluation), _distances(evaluation)
    rows = np.flatnonzero(np.isfinite(distances))
    if not len(rows):
        return Plot(None, "No answer was made from a prototype, so there is no distance to plot.")
    line = mean_line(distances[rows], scores[rows])
    drawn = rows
    if len(rows) > MAX_POINTS:
        drawn = rows[np.linspace(0, len(rows) - 1, MAX_POINTS).astype(int)]
    values = {
        "distances": distances[drawn].tolist(),
        "scores": scores[drawn].tolist(),
        "texts": [hover_text(evaluation.examples[at]) for at in drawn.tolist()],
        "line": line,
    }
    caption = [_distance_caption(distances[rows], scores[rows])]
    caption += _left_out(len(distances) - len(rows))
    if len(drawn) < len(rows):
        caption.append(f"{len(drawn):,} of {len(rows):,} points are drawn; the line is of all.")
    return Plot(values, " ".join(caption))


def _distances(evaluation: Evaluation) -> NDArray[np.float64]:
    """The distance of each answer's prototype, NaN where there is none."""
    return np.array(
        [
            answer.prototype.distance if answer and answer.prototype else math.nan
            for answer in evaluation.answers
        ]
    )


def _left_out(missing: int) -> list[str]:
    return [f"Left out: {counted(missing, 'example')} without a prototype."] if missing else []


def _distance_caption(distances: NDArray[np.float64], scores: NDArray[np.float64]) -> str:
    if len(distances) < 3 or np.ptp(distances) == 0 or np.ptp(scores) == 0:
        return "Each point is an example. There are too few to say how score and distance relate."
    from scipy.stats import spearmanr

    correlation = float(spearmanr(distances, scores).statistic)
    return (
        f"Each point is an example. The rank correlation of distance and score is "
        f"{correlation:+.2f}".replace("-", "−")
        + ": at −1 the distance alone would rank the answers, at 0 it says nothing."
    )


def mean_line(
    distances: NDArray[np.float64], scores: NDArray[np.float64]
) -> list[dict[str, float]]:
    """Mean score and distance in bins of about equal count; none where there are too few points."""
    inside = equal_bins(distances, _LINE_BINS)
    if len(inside) < 2:
        return []
    return [
        {
            "distance": float(distances[chosen].mean()),
            "score": float(scores[chosen].mean()),
            "n": int(chosen.sum()),
        }
        for chosen in inside
    ]


def equal_bins(distances: NDArray[np.float64], most: int) -> list[NDArray[np.bool_]]:
    """Who is in each bin of about equal count, nearest first; at most so many, none with few."""
    bins = max(1, min(most, len(distances) // _POINTS_A_BIN))
    # equal distances share a bin, so there may be fewer edges than asked for
    edges = np.unique(np.quantile(distances, np.linspace(0, 1, bins + 1)[1:-1]))
    membership = np.searchsorted(edges, distances, side="left")
    return [membership == each for each in np.unique(membership).tolist()]


def distance_histogram(evaluation: Evaluation) -> Plot | None:
    """How far the answers' prototypes are; none where there is no prototype."""
    distances = _distances(evaluation)
    found = distances[np.isfinite(distances)]
    if not len(found):
        return None
    missing = _left_out(len(distances) - len(found))
    low, middle, high = np.quantile(found, [0, 0.5, 1]).tolist()
    if high - low < 1e-6:
        alike = "The one prototype is" if len(found) == 1 else f"All {len(found):,} prototypes are"
        return Plot(None, " ".join([f"{alike} at a distance of {short_distance(low)}.", *missing]))
    edges = _round_edges(low, high)
    counts = np.histogram(found, edges)[0].tolist()
    labels = [
        f"distance {start:.4g}–{end:.4g}: {counted(count, 'example')}"
        for start, end, count in zip(edges[:-1], edges[1:], counts, strict=True)
    ]
    caption = [
        f"Half of the {len(found):,} prototypes are at a distance of {short_distance(middle)} or "
        f"less; the nearest is at {short_distance(low)}, the farthest at {short_distance(high)}."
    ]
    values = {"edges": edges, "counts": counts, "labels": labels, "median": middle}
    return Plot(values, " ".join(caption + missing))


def short_distance(distance: float) -> str:
    """A distance to three digits."""
    # what is left of a zero after rounding in 32 bits is none
    return f"{abs(round(distance, 6)):.3g}"


def _round_edges(low: float, high: float) -> list[float]:
    """Edges of about two dozen bins at round numbers, from below the lowest to the highest."""
    wanted = (high - low) / _DISTANCE_BINS
    power = 10.0 ** math.floor(math.log10(wanted))
    step = next(each * power for each in (1, 2, 2.5, 5, 10) if each * power >= wanted * (1 - 1e-9))
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(at * step, 12) for at in range(first, max(last, first + 1) + 1)]


def map_plot(space: Space, evaluation: Evaluation) -> Plot:
    """The examples on a map by group, and the evaluated inputs over them."""
    names = group_names(space)
    texts = [pair_text(example) for example in space.examples]
    groups = []
    for name in sorted({*space.groups}, key=lambda name: (name != OTHER, names.get(name, 0))):
        rows = [row for row, group in enumerate(space.groups) if group == name]
        label = [escaped_lines(f"{space.key}: {name}")] if name else []
        points = _coordinates(space.points[rows])
        shown = ["<br>".join([texts[row], *label]) for row in rows]
        groups.append({**points, "texts": shown, "colour": names.get(name, 0)})
    scores = primary_scores(evaluation)
    evaluated = [
        f"evaluated, score {scores[row]:.1f}<br>{pair_text(evaluation.examples[row])}"
        for row in space.evaluated_rows
    ]
    values = {
        "groups": groups,
        "evaluated": {**_coordinates(space.evaluated), "texts": evaluated},
        "axes": [
            f"{name} ({100 * share:.1f} %)"
            for name, share in zip(("first axis", "second axis"), space.shares, strict=True)
        ],
    }
    return Plot(values, _map_caption(space, evaluated=len(evaluation.examples)))


def group_names(space: Space) -> dict[str, int]:
    """The named groups in their order, and the number of the colour of each, from 1."""
    counts = Counter(name for name in space.groups if name != OTHER)
    if not counts:
        return {OTHER: 1}
    ranked = sorted(counts, key=lambda name: (-counts[name], name))
    return {name: at for at, name in enumerate(ranked[:MAX_GROUPS], start=1)}


def _coordinates(points: NDArray[np.float64]) -> dict[str, list[float]]:
    return {"x": points[:, 0].round(4).tolist(), "y": points[:, 1].round(4).tolist()}


def _map_caption(space: Space, *, evaluated: int) -> str:
    said = [
        f"The two axes hold {100 * space.share:.1f} % of the variance of the inputs' vectors: "
        "what lies apart on the map is apart, what lies together need not be."
    ]
    if space.agreement is not None:
        said.append(
            "By their whole vectors, the nearest of the drawn examples has the same "
            f"{one_line(space.key or '', 40)} in {100 * space.agreement.share:.0f} % of the cases, "
            f"others aside; chance would give {100 * space.agreement.chance:.0f} %."
        )
    if len(space.examples) < space.size:
        said.append(f"{len(space.examples):,} of {space.size:,} examples are drawn.")
    if len(space.evaluated_rows) < evaluated:
        said.append(f"{len(space.evaluated_rows):,} of {evaluated:,} evaluated inputs are drawn.")
    return " ".join(said)


def hover_text(example: Example) -> str:
    """The gist of an input on short lines, escaped: plotly reads markup in its labels."""
    return escaped_lines(gist(example))


def pair_text(example: Example) -> str:
    """The gist of an input and of its output, escaped."""
    return f"{hover_text(example)}<br>→ {escaped_lines(one_line(example.y, 88) or '(empty)')}"


def escaped_lines(text: str) -> str:
    """The text on short lines, as plotly's markup."""
    lines: Sequence[str] = textwrap.wrap(text, 44)
    return "<br>".join(html.escape(line, quote=False) for line in lines)


def counted(count: int, noun: str) -> str:
    """A number and its noun, in the plural where it should be."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
