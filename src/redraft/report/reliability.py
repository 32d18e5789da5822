"""The report's section on confidence: reliability diagram and abstention table.

Knows markup and plot data; does not compute confidences or their calibration.
"""

import numpy as np

from redraft.metrics.calibration import Abstention, Bin, Calibration
from redraft.metrics.evaluation import Evaluation
from redraft.report.plots import BIN_WIDTH, Plot, counted
from redraft.report.sections import Section, figure_markup, section_markup

THRESHOLDS = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
"""Thresholds of the table; rows equal to the one before are omitted."""

_LEGEND = (
    '<li><i class="key dot"></i>accuracy at this confidence, with a 95 % interval</li>'
    '<li><i class="key dashed"></i>perfect calibration</li>'
    '<li><i class="key block"></i>answers with this confidence</li>'
)


def confidence_section(evaluation: Evaluation) -> Section | None:
    """Return the section on confidence, or None if no answer has a confidence."""
    calibration = Calibration.of(evaluation)
    if calibration is None:
        return None
    plot = reliability_plot(calibration)
    label = "Reliability plot: share of exactly right answers against confidence"
    figure = figure_markup(plot, "confidence", label, _LEGEND)
    body = f'<div class="beside">{figure}\n{_table(calibration)}</div>'
    markup = section_markup("confidence", "Is a confident answer a right one?", body)
    return Section("confidence", "Confidence", markup, {"confidence": plot.values})


def reliability_plot(calibration: Calibration) -> Plot:
    """Return the reliability diagram in per cent, with a histogram of the confidences."""
    bins = calibration.bins
    edges = np.arange(0, 100 + BIN_WIDTH, BIN_WIDTH)
    counts = np.histogram(100 * calibration.confidences, edges)[0].tolist()
    values = {
        "confidences": [100 * b.confidence for b in bins],
        "shares": [100 * b.share.rate for b in bins],
        "lows": [100 * b.share.interval[0] for b in bins],
        "highs": [100 * b.share.interval[1] for b in bins],
        "texts": [_bin_text(b) for b in bins],
        "most": 100 * float(calibration.confidences[-1]),
        "edges": edges.tolist(),
        "counts": counts,
        "labels": [
            f"confidence {low}–{low + BIN_WIDTH} %: {counted(count, 'answer')}"
            for low, count in zip(edges.tolist(), counts, strict=False)
        ],
    }
    return Plot(values, _caption(calibration))


def _bin_text(answers: Bin) -> str:
    low, high = answers.share.interval
    return (
        f"mean confidence {100 * answers.confidence:.1f} %<br>"
        f"{answers.share.right:,} of {counted(answers.share.n, 'answer')} exactly right: "
        f"{100 * answers.share.rate:.1f} %<br>95 % interval {100 * low:.1f} – {100 * high:.1f} %"
    )


def _caption(calibration: Calibration) -> str:
    share, missing = calibration.share, calibration.examples - calibration.n
    sentences = [
        f"Exactly right: {share.right:,} of {counted(share.n, 'answer')}, "
        f"{100 * share.rate:.1f} %, at a mean confidence of "
        f"{100 * calibration.confidences.mean():.1f} %.",
        f"The expected calibration error over {counted(len(calibration.bins), 'bin')} of about "
        f"equal count is {100 * calibration.expected_error:.1f} points; perfectly calibrated "
        f"confidences would have {100 * calibration.chance_error:.1f} by chance.",
        f"The Brier score is {calibration.brier:.3f} (lower is better); the best constant "
        f"confidence would have {calibration.brier_of_rate:.3f}.",
    ]
    if missing:
        sentences.append(f"Left out: {counted(missing, 'example')} without a confidence.")
    return " ".join(sentences)


def _table(calibration: Calibration) -> str:
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
<caption>Abstaining below a threshold</caption>
<thead><tr><th scope="col">Confidence<br>at least</th>
<th scope="col" class="number">Examples<br>answered</th>
<th scope="col" class="number">Exactly<br>right</th></tr></thead>
<tbody>
{"".join(_row(row) for row in rows)}
</tbody>
</table>
<p class="reading">{unreached}Small print: the number of examples, and the Wilson 95&nbsp;%
interval of the share of right answers.</p>
</div>"""


def _row(row: Abstention) -> str:
    low, high = row.share.interval
    threshold = f"{100 * row.threshold:.0f} %" if row.threshold else "any"
    return f"""<tr><th scope="row"><span class="name">{threshold}</span></th>
<td class="number">{100 * row.coverage:.1f} %<span class="explanation">{row.share.n:,}</span></td>
<td class="number score">{100 * row.share.rate:.1f} %
<span class="explanation">{100 * low:.1f} – {100 * high:.1f}</span></td></tr>
"""
