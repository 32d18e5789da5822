"""Lines side by side as SVG: completion lengths by list size, any metric by distance or by size.

Each plot is one file that loads nothing, for a page or a README, in light and in dark. The
colours are those of the report. Knows estimates and pixels; knows no model and no report.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from experiments.lib.intervals import mean_interval
from redraft.report.plots import equal_bins, short_distance

MOST_BINS = 6
"""Bins of the distance, if there are enough examples."""

_WIDTH, _LEAST_HEIGHT = 760, 300
_TEXT, _LETTER = 15, 0.6  # size, and the mean width of a letter in it
_GAP = 23  # between the labels' lines
_COLOURS = 12
_SHAPES = (
    '<circle r="4.5"/>',
    '<path d="M-4-4H4V4H-4z"/>',
    '<path d="M0-5.6 5.6 0 0 5.6-5.6 0z"/>',
    '<path d="M0-5.4 5.4 4H-5.4z"/>',
)
"""In the order of the report's: no system is told by colour alone."""


@dataclass(frozen=True)
class Estimate:
    """A mean and its 95 % interval."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(
        cls, values: Sequence[float] | NDArray[np.float64], clusters: Sequence[str] | None = None
    ) -> "Estimate":
        """The mean of some values, resampled by example or by whole clusters."""
        return cls(float(np.mean(values)), *mean_interval(values, clusters=clusters))


def completion_plot(
    systems: Mapping[str, Mapping[int, Estimate]],
    *,
    metric: str = "average completion length, in tokens",
) -> str:
    """A line for each system over the sizes of the list; the first one stands out."""
    sizes = sorted({size for estimates in systems.values() for size in estimates})
    marks, names = {float(k): str(k) for k in sizes}, {k: f"k = {k}" for k in sizes}
    axis = _Axis("length k of the list of suggestions", marks, names)
    return _Chart(systems, axis, metric).draw()


def distance_plot(
    distances: Sequence[float] | NDArray[np.float64],
    systems: Mapping[str, Sequence[float] | NDArray[np.float64]],
    *,
    metric: str,
    clusters: Sequence[str] | None = None,
) -> str:
    """The mean of each system's values in bins of the distance, about as many examples in each.

    Examples without a distance (infinite, or not a number) are left out.
    """
    given = np.asarray(distances, np.float64)
    rows = np.flatnonzero(np.isfinite(given))
    if not len(rows):
        raise ValueError("no example has a distance, so there is nothing to plot against it")
    bins = [rows[inside] for inside in equal_bins(given[rows], MOST_BINS)]
    estimates = {}
    for name, values in systems.items():
        if len(values) != len(given):
            raise ValueError(f"{name} has {len(values)} values for {len(given)} distances")
        scores = np.asarray(values, np.float64)
        estimates[name] = {
            at: Estimate.of(scores[each], [clusters[row] for row in each] if clusters else None)
            for at, each in enumerate(bins)
        }
    ends = [given[rows].min(), *(given[each].max() for each in bins)]
    edges = [short_distance(end) for end in ends]
    marks = {at - 0.5: edge for at, edge in enumerate(edges)}
    names = {at: f"distance {edges[at]} – {edges[at + 1]}" for at in range(len(bins))}
    notes = {float(at): f"n = {len(each):,}" for at, each in enumerate(bins)}
    axis = _Axis("distance of the prototype", marks, names, notes)
    return _Chart(estimates, axis, metric).draw()


def growth_plot(figures: Mapping[str, Mapping[int, float]], *, title: str, metric: str) -> str:
    """A line for each figure over sizes that are powers of ten apart, both axes in such powers."""
    sizes = sorted({size for own in figures.values() for size in own})
    places = {size: at for at, size in enumerate(sizes)}
    points = {
        name: {places[size]: Estimate(value, value, value) for size, value in own.items()}
        for name, own in figures.items()
    }
    marks = {float(at): f"{size:,}" for size, at in places.items()}
    names = {at: f"{size:,}" for size, at in places.items()}
    return _PowersChart(points, _Axis(title, marks, names), metric).draw()


@dataclass(frozen=True)
class _Axis:
    """The axis below: its title, its marks, what the points' places are called, notes on them."""

    title: str
    marks: Mapping[float, str]
    names: Mapping[int, str]
    notes: Mapping[float, str] = field(default_factory=dict)


class _Chart:
    """Lines with whiskers, each named at its end."""

    dodge = 6
    """Between the whiskers of two systems at one place."""

    def __init__(
        self,
        systems: Mapping[str, Mapping[int, Estimate]],
        axis: _Axis,
        metric: str,
    ) -> None:
        if not systems or not all(systems.values()):
            raise ValueError("a plot needs a system, and each system an estimate")
        self.systems, self.axis, self.metric = systems, axis, metric
        every = [each for estimates in systems.values() for each in estimates.values()]
        low, high = min(each.low for each in every), max(each.high for each in every)
        self.levels = _levels(0.0 if 0 <= low < high / 2 else low, high)
        longest = max(map(len, systems))
        self.left, self.top = 52.0, 52.0
        self.right = _WIDTH - 62 - _LETTER * _TEXT * (longest + 5)
        self.bottom = self.top + max(_LEAST_HEIGHT, _GAP * len(systems))
        self.height = self.bottom + (92 if axis.notes else 70)

    def draw(self) -> str:
        """The plot as an SVG document."""
        said = "; ".join(
            f"{name}: {', '.join(_number(each.mean) for _, each in sorted(estimates.items()))}"
            for name, estimates in self.systems.items()
        )
        label = escape(f"{self.metric}, by {self.axis.title}. {said}")
        size = f'width="{_WIDTH}" height="{self.height:.0f}"'
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} class="redraft-plot" role="img" '
            f'viewBox="0 0 {_WIDTH} {self.height:.0f}" aria-label="{label}">',
            f"<style>{_style()}</style>",
            '<rect class="paper" width="100%" height="100%"/>',
            *self._axes(),
            *self._curves(),
            *self._labels(),
            "</svg>\n",
        ]
        return "\n".join(parts)

    def _x(self, at: float, system: int = 0) -> float:
        """Where a mark is or, of systems from 1 on, the point beside it."""
        places = [*self.axis.marks]
        room = 0 if self.axis.notes else self.dodge * (len(self.systems) - 1) / 2 + 14
        share = (at - places[0]) / (places[-1] - places[0]) if len(places) > 1 else 0.5
        middle = self.left + room + share * (self.right - self.left - 2 * room)
        return middle + (self.dodge * (system - (len(self.systems) + 1) / 2) if system else 0)

    def _y(self, value: float) -> float:
        low, high = self.levels[0], self.levels[-1]
        return self.bottom - (value - low) / (high - low) * (self.bottom - self.top)

    def _axes(self) -> list[str]:
        parts = [f'<text class="ink" x="16" y="24">{escape(self.metric)}</text>']
        for level in self.levels:
            y, name = self._y(level), _level(level)
            parts.append(f'<path class="grid" d="M{self.left} {y:.1f}H{self.right:.1f}"/>')
            parts.append(
                f'<text class="muted end" x="{self.left - 10}" y="{y + 5:.1f}">{name}</text>'
            )
        for row, texts in enumerate((self.axis.marks, self.axis.notes)):
            y = self.bottom + 25 + 21 * row
            for at, text in texts.items():
                parts.append(
                    f'<text class="muted middle" x="{self._x(at):.1f}" y="{y}">{text}</text>'
                )
        for at in self.axis.marks:
            parts.append(f'<path class="grid" d="M{self._x(at):.1f} {self.bottom}v7"/>')
        middle = (self.left + self.right) / 2
        y = self.height - 14
        parts.append(
            f'<text class="ink middle" x="{middle:.1f}" y="{y:.0f}">{self.axis.title}</text>'
        )
        return parts

    def _curves(self) -> list[str]:
        """The lines, the first on top of the others."""
        parts = []
        for number, (name, estimates) in reversed([*enumerate(self.systems.items(), 1)]):
            points = [(self._x(at, number), estimates[at]) for at in sorted(estimates)]
            line = " ".join(f"{x:.1f},{self._y(each.mean):.1f}" for x, each in points)
            parts.append(f'<g class="{self._classes(number)}"><polyline points="{line}"/>')
            for at, (x, each) in zip(sorted(estimates), points, strict=True):
                low, high = self._y(each.low), self._y(each.high)
                hint = f"{name}, {self.axis.names[at]}: {_number(each.mean)}"
                if each.low < each.high:
                    hint += f" ({_number(each.low)} – {_number(each.high)})"
                    parts.append(f'<path class="whisker" d="M{x:.1f} {low:.1f}V{high:.1f}"/>')
                parts.append(_mark(number, x, self._y(each.mean), hint))
            parts.append("</g>")
        return parts

    def _classes(self, number: int) -> str:
        return f"group-{(number - 1) % _COLOURS + 1}" + " first" * (number == 1)

    def _labels(self) -> list[str]:
        """The name of each system and its last mean, beside the end of its line."""
        ends = [(max(each), each[max(each)].mean) for each in self.systems.values()]
        wanted = [self._y(mean) for _, mean in ends]
        x, parts = self.right + 34, []
        placed = spread(wanted, gap=_GAP, low=self.top, high=self.bottom)
        rows = zip(self.systems, ends, wanted, placed, strict=True)
        for number, (name, (at, mean), begin, y) in enumerate(rows, 1):
            start = self._x(at, number) + 9
            # all leave level and arrive level, so that no two cross where they begin
            bend = f"M{start:.1f} {begin:.1f}H{self.right + 4:.1f}L{x - 12:.1f} {y:.1f}h3"
            text = f'<tspan class="mean">{_number(mean)}</tspan> {escape(name)}'
            parts += [
                f'<g class="{self._classes(number)}"><path class="leader" d="{bend}"/>',
                f'{_mark(number, x, y)}<text x="{x + 12:.1f}" y="{y + 5:.1f}">{text}</text></g>',
            ]
        return parts


class _PowersChart(_Chart):
    """The same with powers of ten at the side, for figures above nothing; none stands out."""

    dodge = 0  # there are no whiskers that could hide one another

    def __init__(
        self, systems: Mapping[str, Mapping[int, Estimate]], axis: _Axis, metric: str
    ) -> None:
        super().__init__(systems, axis, metric)
        every = [each.mean for estimates in systems.values() for each in estimates.values()]
        if min(every) <= 0:
            raise ValueError(f"{metric}: powers of ten need figures above 0, got {min(every):g}")
        first, last = math.floor(math.log10(min(every))), math.ceil(math.log10(max(every)))
        self.levels = [10.0**power for power in range(first, max(last, first + 1) + 1)]
        self.left = 26 + _LETTER * _TEXT * max(len(_level(level)) for level in self.levels)

    def _classes(self, number: int) -> str:
        return super()._classes(number + 1)

    def _y(self, value: float) -> float:
        low, high = math.log10(self.levels[0]), math.log10(self.levels[-1])
        share = (math.log10(value) - low) / (high - low)
        return self.bottom - share * (self.bottom - self.top)


def spread(wanted: Sequence[float], *, gap: float, low: float, high: float) -> list[float]:
    """Places at least a gap apart and within the ends, as near to the wanted ones as can be."""
    order = sorted(range(len(wanted)), key=lambda row: wanted[row])
    blocks: list[tuple[float, int]] = []  # mean and size of those that touch
    for rank, row in enumerate(order):
        mean, size = wanted[row] - rank * gap, 1
        while blocks and blocks[-1][0] > mean:
            other, count = blocks.pop()
            mean, size = (mean * size + other * count) / (size + count), size + count
        blocks.append((mean, size))
    most = max(low, high - gap * (len(wanted) - 1))
    starts = [min(max(mean, low), most) for mean, size in blocks for _ in range(size)]
    placed = dict(zip(order, starts, strict=True))
    return [placed[row] + gap * order.index(row) for row in range(len(wanted))]


def _levels(low: float, high: float) -> list[float]:
    """Round numbers from below the lowest to above the highest, some four to eight."""
    wanted = max(high - low, 1e-9) / 6
    power = 10.0 ** math.floor(math.log10(wanted))
    step = next(each * power for each in (1, 2, 2.5, 5, 10) if each * power >= wanted * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(at * step, 12) for at in range(first, max(last, first + 1) + 1)]


def _level(value: float) -> str:
    return (f"{value:,.0f}" if value >= 1000 else f"{value:g}").replace("-", "−")


def _number(value: float) -> str:
    """A value to three digits or so."""
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}".replace("-", "−")


def _mark(number: int, x: float, y: float, hint: str = "") -> str:
    title = f"<title>{escape(hint)}</title>" if hint else ""
    shape = _SHAPES[(number - 1) % len(_SHAPES)]
    return f'<g class="mark" transform="translate({x:.1f} {y:.1f})">{title}{shape}</g>'


def _style() -> str:
    """The rules of the plot, in the colours of the report."""
    css = files("redraft.report").joinpath("page.css").read_text(encoding="utf-8")
    light, dark = css.split("prefers-color-scheme: dark", 1)
    first, second = _colours(light), _colours(dark.split("}", 1)[0])
    sans = re.search(r"--sans: ([^;]+);", css)
    rules = f"""
.redraft-plot {{ font: {_TEXT}px {sans[1] if sans else "sans-serif"}; }}
.redraft-plot text {{ font-variant-numeric: tabular-nums; }}
.redraft-plot .end {{ text-anchor: end; }}
.redraft-plot .middle {{ text-anchor: middle; }}
.redraft-plot .grid {{ stroke-width: 1; fill: none; }}
.redraft-plot polyline {{ fill: none; stroke-width: 2; stroke-linejoin: round; }}
.redraft-plot .whisker {{ stroke-width: 1.5; opacity: 0.75; }}
.redraft-plot .leader {{ fill: none; stroke-width: 1; opacity: 0.75; }}
.redraft-plot .mark {{ stroke-width: 1.5; }}
.redraft-plot .mean {{ font-weight: 600; }}
.redraft-plot .first text {{ font-weight: 600; }}
.redraft-plot .first polyline {{ stroke-width: 3; }}
"""
    return f"{rules}{first}@media (prefers-color-scheme: dark) {{\n{second}}}\n"


def _colours(block: str) -> str:
    found = dict(re.findall(r"--([\w-]+): (#\w+);", block))
    rules = [
        f".redraft-plot .paper {{ fill: {found['paper']}; }}",
        f".redraft-plot text {{ fill: {found['ink']}; }}",
        f".redraft-plot text.muted {{ fill: {found['muted']}; }}",
        f".redraft-plot .grid {{ stroke: {found['line']}; }}",
        f".redraft-plot .mark {{ stroke: {found['paper']}; }}",
    ]
    for number in range(1, _COLOURS + 1):
        own = f".redraft-plot .group-{number}"
        colour = found[f"group-{number}"]
        rules.append(f"{own} :is(polyline, .whisker, .leader) {{ stroke: {colour}; }}")
        rules.append(f"{own} .mark {{ fill: {colour}; }}")
    return "\n".join(rules) + "\n"
