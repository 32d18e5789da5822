"""Write the result tables into the pages: run `python -m experiments.tables` after an experiment.

A table stands between `<!-- table: NAME -->` and `<!-- end of table -->` in a page of this folder
or in docs/results.md, and is made from the results.json of its experiment alone. With `--check`
nothing is written, and the exit code is 1 if a page is out of date.
"""

import re
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.autocomplete.tables import TABLES as AUTOCOMPLETE
from experiments.completion.summary import TABLES as COMPLETION
from experiments.hearthstone.run import TABLES as HEARTHSTONE
from experiments.languages.summary import TABLES as LANGUAGES
from experiments.lib.results import Row, read_results
from experiments.lib.tables import Table
from experiments.lm.pairs import TABLES as LM_PAIRS
from experiments.lm.sets import TABLES as LM_SETS
from experiments.lm.summary import TABLES as LM
from experiments.pairs.run import TABLES as PAIRS
from experiments.paper_conditions.tables import TABLES as PAPER_CONDITIONS
from experiments.public_pairs.tables import TABLES as PUBLIC_PAIRS
from experiments.retrieval.tables import TABLES as RETRIEVAL
from redraft.cli._console import print_note
from redraft.errors import PairsError, RedraftError

HERE = Path(__file__).parent
ROOT = HERE.parent


@dataclass(frozen=True)
class Source:
    """A results.json and the tables made from it, by their names in the pages."""

    results: Path
    tables: Mapping[str, Table]

    def rows(self) -> list[Row]:
        """Return the rows of the results, none if nothing was measured yet."""
        return read_results(self.results)


SOURCES = (
    Source(HERE / "completion" / "results.json", COMPLETION),
    Source(HERE / "hearthstone" / "results.json", HEARTHSTONE),
    Source(HERE / "languages" / "results.json", LANGUAGES),
    Source(HERE / "lm" / "results.json", {**LM, **LM_PAIRS, **LM_SETS}),
    Source(HERE / "pairs" / "results.json", PAIRS),
    Source(HERE / "paper_conditions" / "results.json", PAPER_CONDITIONS),
    Source(HERE / "public_pairs" / "results.json", PUBLIC_PAIRS),
    Source(HERE / "retrieval" / "results.json", RETRIEVAL),
    *(
        Source(
            HERE / "autocomplete" / folder / "results.json",
            {f"autocomplete {size}, {name}": table for name, table in AUTOCOMPLETE.items()},
        )
        for size, folder in (("small", ""), ("full", "full"))
    ),
)

_TABLE = re.compile(
    r"(?P<start><!-- table: (?P<name>[^\n]+) -->\n)(?:.*?)(?P<end><!-- end of table -->)",
    flags=re.DOTALL,
)


def pages() -> Iterator[Path]:
    """Yield the pages that may hold tables."""
    yield ROOT / "docs" / "results.md"
    yield from sorted(HERE.glob("*/*.md"))


def filled(page: Path) -> str:
    """Return the text of `page` with every table made anew."""
    tables = {name: (table, source) for source in SOURCES for name, table in source.tables.items()}

    def fill(found: re.Match[str]) -> str:
        name = found["name"]
        if name not in tables:
            known = ", ".join(tables)
            raise PairsError(f"{page}: no experiment has a table {name!r}; there are: {known}")
        table, source = tables[name]
        return found["start"] + table.markdown(source.rows()) + found["end"]

    return _TABLE.sub(fill, page.read_text(encoding="utf-8"))


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the pages whose tables changed, or only name them."""
    options = ArgumentParser(prog="python -m experiments.tables", description=__doc__)
    options.add_argument("--check", action="store_true", help="write nothing")
    is_check = options.parse_args(arguments).check
    try:
        changed = {page: text for page in pages() if (text := filled(page)) != page.read_text()}
    except RedraftError as error:
        print_note(f"error: {error}")
        sys.exit(2)
    for page, text in changed.items():
        name = page.relative_to(ROOT)
        if is_check:
            print_note(f"{name}: tables are out of date; run `python -m experiments.tables`")
        else:
            page.write_text(text, encoding="utf-8")
            print_note(f"{name}: tables written")
    if is_check and changed:
        sys.exit(1)


if __name__ == "__main__":
    main()
