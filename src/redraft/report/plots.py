"""Data and captions of the report's plots.

Knows scores and distances; knows no HTML, no colours and no plotting library (`page.js` draws).
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

from redraft.metrics.evaluation import Evaluation
from redraft.report.embedding_map import MAX_GROUPS, OTHER, EmbeddingMap
from redraft.types import Example, input_text

PRIMARY = "bleu_yin"
"""The metric by which examples are plotted and ranked."""

PERCENT_EDGES = range(0, 101, 5)
"""The edges of the bins of scores and confidences."""

MAX_POINTS = 2000
"""Maximum number of points in the scatter plot; captions and means use all of them."""

MAX_GIST = 88
"""Maximum number of characters of an input or an output on one line."""

_DISTANCE_BINS = 24
_LINE_BINS = 8
_POINTS_A_BIN = 5


@dataclass(frozen=True)
class Plot:
    """The data of a plot, or None if there is nothing to draw, and its caption."""

    values: Mapping[str, Any] | None
    caption: str


def primary_scores(evaluation: Evaluation) -> NDArray[np.float64]:
    """Return the primary metric of every example, 0 to 100."""
    return 100 * np.asarray(evaluation.scores.per_example[PRIMARY], np.float64)


def gist(example: Example) -> str:
    """Return the input on one line, truncated between words."""
    return one_line(input_text(example.x), MAX_GIST) or "(empty input)"


def one_line(text: str, length: int) -> str:
    """Return the text on one line, truncated between words to `length`."""
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 1].rsplit(" ", 1)[0] + " …"


def score_plot(evaluation: Evaluation) -> Plot:
    """Return a histogram of the scores with their mean."""
    scores = primary_scores(evaluation)
    values = {
        # rounding can exceed 100 slightly
        **histogram(np.clip(scores, 0, 100), PERCENT_EDGES, "score {:.4g}–{:.4g}", "example"),
        "mean": evaluation.scores.metrics[PRIMARY],
        "interval": list(evaluation.scores.interval[PRIMARY]),
    }
    return Plot(values, _score_caption(scores))


def histogram(
    values: NDArray[np.float64], edges: Sequence[float], label: str, noun: str
) -> dict[str, Any]:
    """Return the counts of `values` per bin; `label` has a placeholder for each edge of a bin."""
    counts = np.histogram(values, edges)[0].tolist()
    labels = [
        f"{label.format(low, high)}: {counted(count, noun)}"
        for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
    ]
    return {"edges": list(edges), "counts": counts, "labels": labels}


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
    """Return a scatter plot of scores against prototype distances, with a line of means."""
    scores, distances = primary_scores(evaluation), _distances(evaluation)
    rows = np.flatnonzero(np.isfinite(distances))
    if not len(rows):
        return Plot(None, "No answer was made from a prototype, so there is no distance to plot.")
    drawn = rows
    if len(rows) > MAX_POINTS:
        drawn = rows[np.linspace(0, len(rows) - 1, MAX_POINTS).astype(int)]
    values = {
        "distances": distances[drawn].tolist(),
        "scores": scores[drawn].tolist(),
        "texts": [hover_text(evaluation.examples[row]) for row in drawn.tolist()],
        "line": mean_line(distances[rows], scores[rows]),
    }
    caption = [_distance_caption(distances[rows], scores[rows])]
    caption += _left_out(len(distances) - len(rows))
    if len(drawn) < len(rows):
        caption.append(f"{len(drawn):,} of {len(rows):,} points are drawn; the line uses all.")
    return Plot(values, " ".join(caption))


def _distances(evaluation: Evaluation) -> NDArray[np.float64]:
    """Return the distance of each answer's prototype, NaN if there is none."""
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
        return "Each point is an example. There are too few to correlate score and distance."
    from scipy.stats import spearmanr

    correlation = float(spearmanr(distances, scores).statistic)
    return (
        f"Each point is an example. The rank correlation of distance and score is "
        f"{correlation:+.2f}".replace("-", "−")
        + ": at −1 the distance alone ranks the answers, at 0 it is uninformative."
    )


def mean_line(
    distances: NDArray[np.float64], scores: NDArray[np.float64]
) -> list[dict[str, float]]:
    """Return mean score and distance in bins of about equal count; empty if there are too few."""
    bins = equal_bins(distances, _LINE_BINS)
    if len(bins) < 2:
        return []
    return [
        {
            "distance": float(distances[is_inside].mean()),
            "score": float(scores[is_inside].mean()),
            "n": int(is_inside.sum()),
        }
        for is_inside in bins
    ]


def equal_bins(distances: NDArray[np.float64], most: int) -> list[NDArray[np.bool_]]:
    """Return a mask for each of at most `most` bins of about equal count, nearest first."""
    bins = max(1, min(most, len(distances) // _POINTS_A_BIN))
    # equal distances share a bin, so there may be fewer bins
    edges = np.unique(np.quantile(distances, np.linspace(0, 1, bins + 1)[1:-1]))
    membership = np.searchsorted(edges, distances, side="left")
    return [membership == number for number in np.unique(membership).tolist()]


def distance_histogram(evaluation: Evaluation) -> Plot | None:
    """Return a histogram of the prototypes' distances, or None without prototypes."""
    all_distances = _distances(evaluation)
    distances = all_distances[np.isfinite(all_distances)]
    count = len(distances)
    if not count:
        return None
    missing = _left_out(len(all_distances) - count)
    low, middle, high = np.quantile(distances, [0, 0.5, 1]).tolist()
    if high - low < 1e-6:
        subject = "The one prototype is" if count == 1 else f"All {count:,} prototypes are"
        text = f"{subject} at a distance of {short_distance(low)}."
        return Plot(None, " ".join([text, *missing]))
    edges = _round_edges(low, high)
    values = histogram(distances, edges, "distance {:.4g}–{:.4g}", "example")
    caption = [
        f"Half of the {count:,} prototypes are at a distance of {short_distance(middle)} or "
        f"less; the nearest is at {short_distance(low)}, the farthest at {short_distance(high)}."
    ]
    return Plot({**values, "median": middle}, " ".join(caption + missing))


def short_distance(distance: float) -> str:
    """Return a distance with three significant digits."""
    # 32-bit rounding can leave a tiny negative zero
    return f"{abs(round(distance, 6)):.3g}"


def _round_edges(low: float, high: float) -> list[float]:
    """Return the edges of about two dozen bins at round numbers that cover `low` to `high`."""
    wanted = (high - low) / _DISTANCE_BINS
    power = 10.0 ** math.floor(math.log10(wanted))
    steps = (factor * power for factor in (1, 2, 2.5, 5, 10))
    step = next(step for step in steps if step >= wanted * (1 - 1e-9))
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(i * step, 12) for i in range(first, max(last, first + 1) + 1)]


def map_plot(embeddings: EmbeddingMap, evaluation: Evaluation) -> Plot:
    """Return a map of the examples by group, with the evaluated inputs on top."""
    names = group_names(embeddings)
    texts = [pair_text(example) for example in embeddings.examples]
    groups = []
    for name in sorted({*embeddings.groups}, key=lambda name: (name != OTHER, names.get(name, 0))):
        rows = [row for row, group in enumerate(embeddings.groups) if group == name]
        label = [escaped_lines(f"{embeddings.key}: {name}")] if name else []
        points = _coordinates(embeddings.points[rows])
        shown = ["<br>".join([texts[row], *label]) for row in rows]
        groups.append({**points, "texts": shown, "colour": names.get(name, 0)})
    scores = primary_scores(evaluation)
    evaluated = [
        f"evaluated, score {scores[row]:.1f}<br>{pair_text(evaluation.examples[row])}"
        for row in embeddings.evaluated_rows
    ]
    values = {
        "groups": groups,
        "evaluated": {**_coordinates(embeddings.evaluated), "texts": evaluated},
        "axes": [
            f"{name} ({100 * share:.1f} %)"
            for name, share in zip(("first axis", "second axis"), embeddings.shares, strict=True)
        ],
    }
    return Plot(values, _map_caption(embeddings, evaluated=len(evaluation.examples)))


def group_names(embeddings: EmbeddingMap) -> dict[str, int]:
    """Return the named groups, most frequent first, with their colour numbers from 1."""
    counts = Counter(name for name in embeddings.groups if name != OTHER)
    if not counts:
        return {OTHER: 1}
    ranked = sorted(counts, key=lambda name: (-counts[name], name))
    return {name: number for number, name in enumerate(ranked[:MAX_GROUPS], start=1)}


def _coordinates(points: NDArray[np.float64]) -> dict[str, list[float]]:
    return {"x": points[:, 0].round(4).tolist(), "y": points[:, 1].round(4).tolist()}


def _map_caption(embeddings: EmbeddingMap, *, evaluated: int) -> str:
    sentences = [
        f"The two axes explain {100 * embeddings.share:.1f} % of the variance of the embeddings: "
        "points far apart on the map are far apart, points close together need not be close."
    ]
    if agreement := embeddings.agreement:
        sentences.append(
            "By the full embeddings, the nearest neighbour has the same "
            f"{one_line(embeddings.key or '', 40)} in {100 * agreement.share:.0f} % of the cases, "
            f"excluding other; by chance it would be {100 * agreement.by_chance:.0f} %."
        )
    if len(embeddings.examples) < embeddings.size:
        sentences.append(f"{len(embeddings.examples):,} of {embeddings.size:,} examples are drawn.")
    if len(embeddings.evaluated_rows) < evaluated:
        drawn = f"{len(embeddings.evaluated_rows):,} of {evaluated:,}"
        sentences.append(f"{drawn} evaluated inputs are drawn.")
    return " ".join(sentences)


def hover_text(example: Example) -> str:
    """Return the gist of an input on short lines, escaped: plotly interprets markup."""
    return escaped_lines(gist(example))


def pair_text(example: Example) -> str:
    """Return the gist of an input and of its output, escaped."""
    return f"{hover_text(example)}<br>→ {escaped_lines(one_line(example.y, MAX_GIST) or '(empty)')}"


def escaped_lines(text: str) -> str:
    """Return the text on short lines, as plotly markup."""
    lines: Sequence[str] = textwrap.wrap(text, 44)
    return "<br>".join(html.escape(line, quote=False) for line in lines)


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, in the plural if needed."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
