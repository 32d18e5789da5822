"""Completion of TypeScript, Java and Go from the code of a project.

The archives of packages.txt come from package registries: `npm pack NAME@VERSION`, `apt-get
download NAME`, and the original tarballs of Debian's source packages, all in one folder.
"""

import random
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path

from experiments.languages.archives import read_list, read_sources
from experiments.languages.contexts import ContextAnswer, measure_contexts
from experiments.languages.costs import cost_row
from experiments.languages.lines import LineAnswer, measure_lines
from experiments.languages.summary import context_rows, line_rows
from experiments.lib.results import Row, write_results
from redraft.cli._console import progress
from redraft.completion.languages.go import GO
from redraft.completion.languages.java import JAVA
from redraft.completion.languages.trees.language import TreeLanguage
from redraft.completion.languages.typescript import TYPESCRIPT
from redraft.errors import PairsError

HERE = Path(__file__).parent
MEASURED = (TYPESCRIPT, JAVA, GO)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, as the command line asks, and write results.json."""
    parser = ArgumentParser(
        prog="python -m experiments.languages",
        description=__doc__,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--archives", type=Path, required=True, help="folder of archives")
    parser.add_argument("--list", type=Path, default=HERE / "packages.txt")
    parser.add_argument("--split", default="test", help="split of the list (dev, test)")
    parser.add_argument("--functions", type=int, default=100, help="functions of each language")
    parser.add_argument("--cursors", type=int, default=1000, help="cursors of each language")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=HERE, help="folder of results.json")
    chosen = parser.parse_args(arguments)
    rows: list[Row] = []
    for language in MEASURED:
        archives = [
            chosen.archives / package.archive
            for package in read_list(chosen.list)
            if package.language.name == language.name and package.split == chosen.split
        ]
        if missing := [path.name for path in archives if not path.exists()]:
            raise PairsError(f"{chosen.archives}: lacks {missing[0]}; download it")
        counts = (chosen.functions, chosen.cursors)
        measured = _measure(language, archives, counts, random.Random(chosen.seed))
        rows += line_rows(language.name, measured[0], chosen.split, chosen.seed)
        rows += context_rows(language.name, measured[1], chosen.split, chosen.seed)
        rows.append(cost_row(language.name, archives, chosen.split, chosen.seed))
    chosen.out.mkdir(parents=True, exist_ok=True)
    write_results(chosen.out / "results.json", "languages", rows)


def _measure(
    language: TreeLanguage,
    archives: Sequence[Path],
    counts: tuple[int, int],
    rng: random.Random,
) -> tuple[list[LineAnswer], list[ContextAnswer]]:
    """Return the answers of one language, spread evenly over its packages."""
    lines: list[LineAnswer] = []
    contexts: list[ContextAnswer] = []
    for path in progress(archives, language.name, total=len(archives)):
        sources = read_sources(path, language)
        functions, cursors = (-(-count // len(archives)) for count in counts)
        lines += measure_lines(path.name, sources, language, functions, rng)
        contexts += measure_contexts(path.name, sources, language, cursors, rng)
    return lines, contexts


if __name__ == "__main__":
    main()
