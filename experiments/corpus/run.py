"""Build a corpus from a list of pinned packages: download, mine, filter, split, write."""

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from experiments.corpus.mined_files import MinedPackage, read_mined
from experiments.corpus.packages import Fetched, Pinned, fetch, read_list
from experiments.corpus.processes import ArchiveTask, Refused, mine_all
from experiments.corpus.rules import SHARES, Corpus, build
from experiments.corpus.statistics import corpus_statistics
from redraft.cli._console import print_note, progress, stdout, working
from redraft.data.pairs import write_pairs
from redraft.errors import PairsError
from redraft.storage.output_folder import claim

ARCHIVES = "archives"
"""Folder of downloaded archives; users may put their own there."""

STATISTICS = "statistics.json"
"""Written last: if it exists, the corpus is complete."""


def write_corpus(path: Path, out: Path, *, jobs: int, seed: int) -> None:
    """Download, mine, filter and split the packages listed in `path`, and print the statistics."""
    packages = read_list(path)
    claim(out, "corpus", inputs=(ARCHIVES,))
    fetched = list(progress(_fetch(packages, out), "downloading", total=len(packages)))
    mined = _mine(fetched, out, jobs=jobs)
    named = {package.name: package.side for package in packages if package.side is not None}
    with working("removing duplicates"):
        try:
            corpus = build(mined, seed=seed, named=named)
        except PairsError as error:
            raise PairsError(f"{path}: {error}") from error
        names = [package.name for package in packages]
        statistics = corpus_statistics(corpus, mined, wanted=names, seed=seed)
    if not corpus.sides or not corpus.rules["strict"].functions:
        raise PairsError(f"{path}: no documented function in {len(mined):,} mined packages")
    _write(corpus, statistics, out)
    for table in _tables(statistics):
        stdout().print(table)
    print_note(f"the corpus is in {out}")


def _fetch(packages: Sequence[Pinned], out: Path) -> Iterator[Fetched]:
    """Yield the archives of the packages; report failed downloads at once."""
    for fetched in fetch(packages, out / ARCHIVES):
        if fetched.archive is None:
            print_note(f"skipped {fetched.package}: cannot be downloaded ({fetched.reason})")
        yield fetched


def _mine(fetched: Iterable[Fetched], out: Path, *, jobs: int) -> list[MinedPackage]:
    """Mine the archives and return their packages; report rejected archives and unread files."""
    folder = out / "mined"
    folder.mkdir(parents=True, exist_ok=True)
    tasks = [
        ArchiveTask(item.archive, item.package.name, folder / f"{item.package.stem}.jsonl")
        for item in fetched
        if item.archive is not None
    ]
    mined = []
    for outcome in progress(mine_all(tasks, jobs=jobs), "mining", total=len(tasks)):
        if isinstance(outcome, Refused):
            print_note(f"skipped {outcome.reason}")
            continue
        package = read_mined(outcome)
        for bad in package.skipped:
            file = f"{package.package}: {bad.file}"
            print_note(f"skipped {dataclasses.replace(bad, file=file)}")
        mined.append(package)
    return mined


def _write(corpus: Corpus, statistics: Mapping[str, Any], out: Path) -> None:
    """Write the pairs of every rule and split, then the statistics."""
    (out / STATISTICS).unlink(missing_ok=True)
    for rule in corpus.rules:
        (out / rule).mkdir(exist_ok=True)
        for side in SHARES:
            examples = (function.example for function in corpus.part(rule, side))
            write_pairs(examples, out / rule / f"{side}.jsonl")
    partial = out / f"{STATISTICS}.partial"
    text = json.dumps(statistics, indent=2, ensure_ascii=False) + "\n"
    partial.write_text(text, encoding="utf-8")
    partial.replace(out / STATISTICS)


def _tables(statistics: Mapping[str, Any]) -> Iterator[Table]:
    """Yield tables of the statistics: counts after each filter, then the corpus of each rule."""
    rules: Mapping[str, Mapping[str, Any]] = statistics["rules"]
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
    """Return the filters of all rules, in the order of the rule with the most filters."""
    longest = max(rules.values(), key=lambda row: len(row["after each filter"]))
    return list(longest["after each filter"])


def _facts(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield name and text of each statistic of a rule, except its filters."""
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
) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    table.add_column("")
    for rule in rules:
        table.add_column(rule, justify="right")
    for name, values in rows.items():
        cells = (values.get(rule) for rule in rules)
        table.add_row(name, *(f"{c:,}" if isinstance(c, int) else c or "–" for c in cells))
    return table
