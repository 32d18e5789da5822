"""The report's section on confidence: is it honest, and what would abstaining gain?

Knows markup and what is drawn; does not know how a confidence or its calibration is computed.
"""

import numpy as np

from redraft.evaluation.calibration import Abstention, Bin, Calibration
from redraft.evaluation.evaluation import Evaluation
from redraft.evaluation.plots import BIN_WIDTH, Plot, counted
from redraft.evaluation.sections import Section, figure_markup, section_markup

THRESHOLDS = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
"""Of the table; what leaves the same answers as the one before is not shown."""

_LEGEND = (
    '<li><i class="key dot"></i>answers of about this confidence, with a 95 % interval</li>'
    '<li><i class="key dashed"></i>as often right as said</li>'
    '<li><i class="key block"></i>answers with this confidence</li>'
)


def confidence_section(evaluation: Evaluation) -> Section | None:
    """How often answers of a confidence are exactly right; none where no answer has one."""
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
    """Confidence against the share of right answers in per cent, and how often each is given."""
    bins = calibration.bins
    edges = np.arange(0, 100 + BIN_WIDTH, BIN_WIDTH)
    counts = np.histogram(100 * calibration.confidences, edges)[0].tolist()
    values = {
        "confidences": [100 * each.confidence for each in bins],
        "shares": [100 * each.share.rate for each in bins],
        "lows": [100 * each.share.interval[0] for each in bins],
        "highs": [100 * each.share.interval[1] for each in bins],
        "texts": [_bin_text(each) for each in bins],
        "most": 100 * float(calibration.confidences[-1]),
        "edges": edges.tolist(),
        "counts": counts,
        "labels": [
            f"confidence {low}–{low + BIN_WIDTH} %: {counted(count, 'answer')}"
            for low, count in zip(edges.tolist(), counts, strict=False)
        ],
    }
    return Plot(values, _caption(calibration))


def _bin_text(each: Bin) -> str:
    low, high = each.share.interval
    return (
        f"mean confidence {100 * each.confidence:.1f} %<br>"
        f"{each.share.right:,} of {counted(each.share.n, 'answer')} exactly right: "
        f"{100 * each.share.rate:.1f} %<br>95 % interval {100 * low:.1f} – {100 * high:.1f} %"
    )


def _caption(calibration: Calibration) -> str:
    share, missing = calibration.share, calibration.examples - calibration.n
    said = [
        f"Exactly right: {share.right:,} of {counted(share.n, 'answer')}, "
        f"{100 * share.rate:.1f} %, at a mean confidence of "
        f"{100 * calibration.confidences.mean():.1f} %.",
        f"Taken in {counted(len(calibration.bins), 'bin')} of about equal count, the two differ by "
        f"{100 * calibration.expected_error:.1f} points (the expected calibration error); chance "
        f"alone would make it {100 * calibration.chance_error:.1f}.",
        f"The Brier score is {calibration.brier:.3f}; the same confidence for every answer would "
        f"score {calibration.brier_of_rate:.3f} at best, and less is better.",
    ]
    said += [f"Left out: {counted(missing, 'example')} without a confidence."] if missing else []
    return " ".join(said)


def _table(calibration: Calibration) -> str:
    rows: list[Abstention] = []
    for threshold in THRESHOLDS:
        left = calibration.at(threshold)
        if left is None:
            unreached = f"No answer reaches a confidence of {100 * threshold:.0f} %. "
            break
        if not rows or left.share != rows[-1].share:
            rows.append(left)
    else:
        unreached = ""
    return f"""<div>
<table class="compare abstain">
<caption>If it answered only when sure</caption>
<thead><tr><th scope="col">Confidence<br>at least</th>
<th scope="col" class="number">Examples<br>answered</th>
<th scope="col" class="number">Exactly<br>right</th></tr></thead>
<tbody>
{"".join(_row(left) for left in rows)}
</tbody>
</table>
<p class="reading">{unreached}Below the share of examples stands their number, below the share of
right answers its 95&nbsp;% interval, after Wilson.</p>
</div>"""


def _row(left: Abstention) -> str:
    low, high = left.share.interval
    threshold = f"{100 * left.threshold:.0f} %" if left.threshold else "any"
    return f"""<tr><th scope="row"><span class="name">{threshold}</span></th>
<td class="number">{100 * left.coverage:.1f} %<span class="explanation">{left.share.n:,}</span></td>
<td class="number score">{100 * left.share.rate:.1f} %
<span class="explanation">{100 * low:.1f} – {100 * high:.1f}</span></td></tr>
"""
