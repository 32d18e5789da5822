"""`redraft compare`: which system answers the user's own held-out pairs best."""

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redraft.cli import _lm
from redraft.cli import _options as options
from redraft.cli._console import Format, emit, print_note, progress, stdout, working
from redraft.cli._options import FormatOption, PairsArgument, ranged
from redraft.config.ranges import Range
from redraft.errors import ConfigError

if TYPE_CHECKING:
    from rich.table import Table

    from redraft.metrics.comparison import SystemComparison

TRAINING = 120.0
"""Seconds to train if `--train` comes without a budget."""


def command(
    pairs: PairsArgument,
    test: Annotated[
        Path | None,
        typer.Option(
            help="File of pairs to ask; all of PAIRS are then fitted on.", metavar="PAIRS"
        ),
    ] = None,
    questions: Annotated[
        int, ranged(Range(1, 1_000_000), "Held-out pairs to ask, at most a fifth of all.")
    ] = 100,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", help="Output folder for rows.jsonl, comparison.json and report.html."
        ),
    ] = None,
    train: Annotated[
        bool, typer.Option("--train", help="Train a network as well. Needs redraft[neural].")
    ] = False,
    budget: Annotated[
        str, typer.Option(help="Time to train, such as 90s or 10m.", show_default="2m")
    ] = "",
    time_limit: Annotated[
        str,
        typer.Option(
            help="Ask no new question after this time, such as 10m; all systems are compared on "
            "those that were asked. [no limit]"
        ),
    ] = "",
    price: Annotated[
        float | None,
        ranged(Range(0.0, 1e6), "Price of a million tokens of the language model, for its cost."),
    ] = None,
    x_columns: options.XColumns = "",
    y_column: options.YColumn = "y",
    skip_bad: options.SkipBad = None,
    form: FormatOption = Format.TABLE,
    lm: _lm.LmOption = None,
    lm_model: _lm.LmModel = None,
    lm_remote: _lm.LmRemote = False,
    lm_chat: _lm.LmChat = False,
    lm_shots: _lm.LmShots = 5,
    lm_context: _lm.LmContext = 2048,
    lm_template: _lm.LmTemplate = None,
    lm_time_limit: _lm.LmTimeLimit = _lm.TIME_LIMIT,
    lm_requests: _lm.LmRequests = None,
) -> None:
    """Compare systems on your own pairs, and say which to use.

    A part of the pairs is held out and asked of every system: the nearest example, substitution,
    Redraft untrained, with `--train` also trained; with `--lm` a language model alone, with random
    examples in its prompt, with BM25's, and with Redraft's. The table has exact answers,
    similarity, and time and requests per answer; the last line recommends the cheapest system that
    is not measurably behind the best.

    Examples: `redraft compare pairs.csv`, `redraft compare pairs.jsonl --train --budget 5m`,
    `redraft compare pairs.jsonl --lm http://localhost:11434/v1 --lm-model llama3.2 -o comparison/`
    """
    from redraft.comparison import CompareOptions, compare, hold_out
    from redraft.data.pairs import read_pairs
    from redraft.storage.output_folder import ensure_ours
    from redraft.training.fit import FitOptions

    if price is not None and lm is None:
        raise ConfigError("--price: only a language model has one; add --lm ADDRESS")
    if budget and not train:
        raise ConfigError("--budget: is the time to train; add --train")
    if out is not None:
        ensure_ours(out, "comparison")
    limit, training = options.seconds(time_limit), options.seconds(budget) or TRAINING
    client = None
    if lm is not None:
        client = _lm.LmOptions(lm, lm_remote, lm_time_limit, lm_requests).client()
        lm_model = client.find_model(lm_model)
    columns = options.columns(x_columns, y_column)
    with working(f"reading {pairs.name}"):
        known = list(options.read_examples(pairs, columns, skip_bad=skip_bad))
        if test is None:
            known, asked = hold_out(known, questions)
        else:
            asked = list(read_pairs(test, columns))
        random.Random(0).shuffle(asked)  # those that a limit leaves out are any of them
        asked = asked[:questions]
    editor = None
    if client is not None:
        prompt = _lm.PromptOptions(lm_model, lm_chat, lm_shots, lm_context, lm_template)
        editor = _lm.lm_editor(client, prompt, known)
    print_note(f"fitting on {len(known):,} pairs, asking {len(asked):,} others")
    comparison = compare(
        known,
        asked,
        CompareOptions(
            fit=FitOptions(train=train, budget=training, log=print_note),
            lm=editor,
            seconds=limit,
            price=price,
            log=print_note,
            watch=lambda examples: progress(examples, "asking", total=len(examples)),
        ),
    )
    if out is not None:
        write(comparison, out, title=f"Systems on {pairs.name}")
    if form is Format.JSON:
        emit(comparison.to_json())
    else:
        stdout().print(comparison_table(comparison, title=pairs.name))
        stdout().print(comparison.recommendation, soft_wrap=True)


def write(comparison: "SystemComparison", out: Path, *, title: str) -> None:
    """Write rows, figures and report into the folder `out`."""
    from redraft.report.comparison_page import write_comparison
    from redraft.storage.output_folder import claim

    claim(out, "comparison")
    rows = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in comparison.rows())
    (out / "rows.jsonl").write_bytes(rows.encode(errors="backslashreplace"))
    figures = json.dumps(comparison.to_json(), indent=2) + "\n"
    (out / "comparison.json").write_text(figures, encoding="utf-8")
    write_comparison(comparison, out / "report.html", title=title)
    print_note(f"rows, figures and report: {out}/")


def comparison_table(comparison: "SystemComparison", *, title: str) -> "Table":
    """Return a table with a row for each system."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    table.padding, table.pad_edge = (0, 1, 0, 0), False
    has_cost = any(system.cost is not None for system in comparison.systems)
    table.add_column("system")
    for name in ("exact", "similar", "behind the best", "s", "requests"):
        table.add_column(name, justify="right", no_wrap=True)
    if has_cost:
        table.add_column("cost", justify="right", no_wrap=True)
    for system in comparison.systems:
        points, (low, high) = comparison.behind(system)
        is_best = system is comparison.best
        cells = [
            f"{sum(system.exact) / comparison.n:.1f}",
            f"{sum(system.similarity) / comparison.n:.1f}",
            "–" if is_best else f"{points:.1f} ({low:.1f} to {high:.1f})",
            f"{system.seconds:.3f}",
            f"{system.requests:.1f}",
        ]
        cost = ["–" if system.cost is None else f"{system.cost:.5f}"] if has_cost else []
        table.add_row(system.name, *cells, *cost, style="bold" if is_best else None)
    table.caption = f"in per cent of {comparison.n:,} held-out questions; paired 95 % intervals"
    table.caption_justify = "left"
    return table
