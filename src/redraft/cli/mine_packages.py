"""`redraft mine --packages`: a list of pinned packages to a corpus in a folder."""

import dataclasses
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from redraft.cli.console import progress, remark, stdout, working
from redraft.cli.mine import show_skipped
from redraft.errors import PairsError

if TYPE_CHECKING:
    from rich.table import Table

    from redraft.data.corpus import Corpus
    from redraft.data.mined import MinedPackage
    from redraft.data.packages import Fetched, Pinned
    from redraft.data.rows import BadRow

FIGURES = "figures.json"
"""Written last: where it stands, the corpus is whole."""


def mine_packages(path: Path, out: Path, *, jobs: int | None, seed: int, verbose: bool) -> None:
    """Download, mine, filter and split the packages of a list."""
    from redraft.data.corpus import build
    from redraft.data.corpus_figures import figures
    from redraft.data.packages import read_list

    packages = read_list(path)
    named = {each.name: each.side for each in packages if each.side is not None}
    if out.is_file():
        raise PairsError(f"{out}: is a file; name a folder for the corpus")
    try:
        fetched = list(progress(_fetch(packages, out), "downloading", total=len(packages)))
        mined = _mine(fetched, out, jobs=jobs or os.cpu_count() or 1)
        show_skipped(list(_skipped(mined)), verbose=verbose)
        with working("removing duplicates"):
            try:
                corpus = build(mined, seed=seed, named=named)
            except PairsError as error:
                raise PairsError(f"{path}: {error}") from error
            found = figures(corpus, mined, wanted=[each.name for each in packages], seed=seed)
        if not corpus.sides or not corpus.rules["strict"].functions:
            raise PairsError(f"{path}: no documented function in {len(mined):,} mined packages")
        _write(corpus, found, out)
    except KeyboardInterrupt:
        remark("\nstopped; what was downloaded and mined is kept: the same command goes on from it")
        raise typer.Exit(130) from None
    for table in _tables(found):
        stdout().print(table)
    remark(f"the corpus is in {out}")


def _fetch(packages: "Sequence[Pinned]", out: Path) -> "Iterator[Fetched]":
    """The archives of the packages; those that cannot be had are named at once."""
    from redraft.data.packages import fetch

    for fetched in fetch(packages, out / "archives"):
        if fetched.archive is None:
            remark(f"skipped {fetched.package}: cannot be downloaded ({fetched.reason})")
        yield fetched


def _mine(fetched: "Iterable[Fetched]", out: Path, *, jobs: int) -> "list[MinedPackage]":
    """What the archives hold; those that are refused are named at once."""
    from redraft.data.mined import read_mined
    from redraft.data.mining import Refused, Task, mine_all

    folder = out / "mined"
    folder.mkdir(parents=True, exist_ok=True)
    tasks = [
        Task(each.archive, each.package.name, folder / f"{each.package.stem}.jsonl")
        for each in fetched
        if each.archive is not None
    ]
    mined = []
    for outcome in progress(mine_all(tasks, jobs=jobs), "mining", total=len(tasks)):
        if isinstance(outcome, Refused):
            remark(f"skipped {outcome.reason}")
        else:
            mined.append(read_mined(outcome))
    return mined


def _skipped(mined: "Iterable[MinedPackage]") -> "Iterator[BadRow]":
    """The files that could not be read, each with its package."""
    for package in mined:
        for bad in package.skipped:
            yield dataclasses.replace(bad, file=f"{package.package}: {bad.file}")


def _write(corpus: "Corpus", found: Mapping[str, Any], out: Path) -> None:
    """Write the pairs of every rule and side, then the figures."""
    from redraft.data.corpus import SHARES
    from redraft.data.pairs import write_pairs

    (out / FIGURES).unlink(missing_ok=True)
    for rule in corpus.rules:
        (out / rule).mkdir(exist_ok=True)
        for side in SHARES:
            examples = (function.example for function in corpus.part(rule, side))
            write_pairs(examples, out / rule / f"{side}.jsonl")
    partial = out / f"{FIGURES}.partial"
    partial.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    partial.replace(out / FIGURES)


def _tables(found: Mapping[str, Any]) -> "Iterator[Table]":
    """The figures for people: what each filter left, then what each rule gives."""
    rules: Mapping[str, Mapping[str, Any]] = found["rules"]
    yield _table(
        "functions after each filter",
        rules,
        {
            stage: {rule: rules[rule]["after each filter"].get(stage) for rule in rules}
            for stage in _stages(rules)
        },
    )
    facts: dict[str, dict[str, Any]] = {}
    for rule, row in rules.items():
        for name, value in _facts(row):
            facts.setdefault(name, {})[rule] = value
    yield _table("the corpus", rules, facts)


def _stages(rules: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The filters of all rules, in the order of the rule that has most."""
    longest = max(rules.values(), key=lambda row: len(row["after each filter"]))
    return list(longest["after each filter"])


def _facts(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The figures of a rule beside its filters, as texts."""
    yield "packages", f"{row['packages']:,}"
    yield "largest package", f"{row['largest package']} ({row['largest share']:.1%})"
    for side, part in row["split"].items():
        yield side, f"{part['functions']:,} of {part['packages']:,} packages"
    for least, share in row["test bodies with a near-duplicate in train"].items():
        yield f"test bodies in train, {least}", f"{share:.1%}"
    for what in ("body tokens", "docstring tokens"):
        yield f"{what}, {' / '.join(row[what])}", " / ".join(map(str, row[what].values()))


def _table(
    title: str, rules: Iterable[str], rows: Mapping[str, Mapping[str, int | str | None]]
) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    table.add_column("")
    for rule in rules:
        table.add_column(rule, justify="right")
    for name, values in rows.items():
        cells = (values.get(rule) for rule in rules)
        table.add_row(name, *(f"{c:,}" if isinstance(c, int) else c or "–" for c in cells))
    return table
