"""Result tables in Markdown, and the marks in a page between which they stand."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.lib.results import ALL_SEEDS, MEAN, Row


@dataclass(frozen=True)
class Table:
    """A table of a page: which metrics it shows, of which rows."""

    metrics: Mapping[str, str]  # the heading of each
    has: Callable[[Row], bool] = lambda _: True
    published: Sequence[Mapping[str, Any]] = ()
    shows_split: bool = False

    def markdown(self, rows: Sequence[Row]) -> str:
        """Return the table of those of `rows` that it has: a line per system and setting.

        Where there are several seeds the line is their mean.
        """
        chosen = [row for row in rows if self.has(row)]
        settings = list(dict.fromkeys(row.setting_label for row in chosen))
        by_group: dict[tuple[str, str, str], Row] = {}
        for row in sorted(chosen, key=lambda row: settings.index(row.setting_label)):
            if row.group not in by_group or row.seed == MEAN:
                by_group[row.group] = row
        lines = [
            "| setting | system | n | " + " | ".join(self.metrics.values()) + " |",
            "|---|---|---|" + "---|" * len(self.metrics),
        ]
        for (setting, system, split), row in by_group.items():
            cells = [_cell(row, name) for name in self.metrics]
            # beside published figures, which are of test, ours are of dev unless they say so
            is_shown = self.shows_split or (self.published and split != "dev")
            place = f"{setting}, {split}" if is_shown else setting
            lines.append(f"| {place} | {system} | {row.n} | " + " | ".join(cells) + " |")
        for figures in self.published:
            cells = [_published_cell(figures, name) for name in self.metrics]
            start = f"| published, test | {figures['system']} | {figures.get('n', '–')} | "
            lines.append(start + " | ".join(cells) + " |")
        return "\n".join(lines) + "\n"


def _published_cell(figures: Mapping[str, Any], name: str) -> str:
    value = figures.get(name)
    return "–" if value is None else f"{value:.1f}"


def _cell(row: Row, name: str) -> str:
    if name not in row.metrics:
        return "–"
    value = f"{row.metrics[name]:.1f}"
    if row.seed == MEAN:
        return f"{value} ± {row.spread[name]:.1f}"
    if name not in row.interval:
        return value
    low, high = row.interval[name]
    if row.seed == ALL_SEEDS:  # differences are small, and may be negative
        return f"{row.metrics[name]:.2f} ({low:.2f} to {high:.2f})"
    return f"{value} ({low:.1f}–{high:.1f})"


def insert_table(page: Path, name: str, table: str) -> bool:
    """Put `table` between its marks in a page; return False if the page has no such marks."""
    if not page.exists():
        return False
    text = page.read_text(encoding="utf-8")
    start, end = f"<!-- table: {name} -->\n", "<!-- end of table -->"
    before, found, rest = text.partition(start)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        return False
    page.write_text(f"{before}{start}{table}{end}{after}", encoding="utf-8")
    return True
