"""The numbers behind the report's two plots, and what each says in words.

Knows scores and distances; knows no page, no colour and no plotting library (`report.js` draws).
"""

import html
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redraft.data.example import Example, input_text
from redraft.evaluation.evaluation import Evaluation

PRIMARY = "bleu_yin"
"""The metric that examples are plotted and ranked by."""

BIN_WIDTH = 5
MAX_POINTS = 2000
"""Points drawn in the scatter plot; captions and means are of all of them."""

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
    text = " ".join(input_text(example.x).split()) or "(empty input)"
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
    scores = primary_scores(evaluation)
    distances = np.array(
        [
            answer.prototype.distance if answer and answer.prototype else math.nan
            for answer in evaluation.answers
        ]
    )
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
    if missing := len(distances) - len(rows):
        caption.append(f"Left out: {counted(missing, 'example')} without a prototype.")
    if len(drawn) < len(rows):
        caption.append(f"{len(drawn):,} of {len(rows):,} points are drawn; the line is of all.")
    return Plot(values, " ".join(caption))


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
    bins = max(1, min(_LINE_BINS, len(distances) // _POINTS_A_BIN))
    # equal distances share a bin, so there may be fewer edges than asked for
    edges = np.unique(np.quantile(distances, np.linspace(0, 1, bins + 1)[1:-1]))
    membership = np.searchsorted(edges, distances, side="left")
    present = np.unique(membership).tolist()
    if len(present) < 2:
        return []
    inside = [membership == each for each in present]
    return [
        {
            "distance": float(distances[chosen].mean()),
            "score": float(scores[chosen].mean()),
            "n": int(chosen.sum()),
        }
        for chosen in inside
    ]


def hover_text(example: Example) -> str:
    """The gist of an input on short lines, escaped: plotly reads markup in its labels."""
    lines: Sequence[str] = textwrap.wrap(gist(example), 44)
    return "<br>".join(html.escape(line, quote=False) for line in lines)


def counted(count: int, noun: str) -> str:
    """A number and its noun, in the plural where it should be."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
