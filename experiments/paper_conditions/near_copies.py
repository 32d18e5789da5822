"""A corpus with near-copies across packages: ordinary packages and generated client libraries.

Each package is on the side of the split that its list names. As in the paper, only equal pairs of
function and docstring are removed; generated sources stay, since their near-copies are the point.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from experiments.autocomplete.settings import Functions
from experiments.corpus.mined_files import MinedFunction, MinedPackage, mine_archive
from experiments.corpus.packages import Pinned, fetch, read_list
from experiments.corpus.rules import capped, first_of_each, fits, without_repeated_files
from redraft.cli._console import print_note, progress
from redraft.data.pairs import write_pairs
from redraft.errors import RedraftError
from redraft.storage.output_folder import claim

PACKAGES = Path(__file__).parent / "packages.txt"

SIDES = ("train", "dev", "test")

MOST_OF_A_PACKAGE = 150
"""Functions of a package: a client library has thousands, and would drown the others."""


def read_corpus(folder: Path) -> Functions:
    """Return the corpus in `folder`, downloaded and mined unless it is there."""
    if not (folder / f"{SIDES[-1]}.jsonl").exists():
        write_corpus(read_list(PACKAGES), folder)
    return Functions.read(folder)


def write_corpus(packages: Sequence[Pinned], folder: Path) -> None:
    """Download and mine the packages, and write the pairs of each side to `folder`."""
    claim(folder, "corpus", inputs=("archives",))
    mined = list(progress(_mine(packages, folder), "mining", total=len(packages)))
    sides = {package.name: package.side or SIDES[0] for package in packages}
    functions = select(mined)
    for side in SIDES:
        own = (each.example for each in functions if sides[each.package] == side)
        write_pairs(own, folder / f"{side}.jsonl")


def _mine(packages: Sequence[Pinned], folder: Path) -> Iterator[MinedPackage]:
    for fetched in fetch(packages, folder / "archives"):
        name = fetched.package.name
        if fetched.archive is None:
            print_note(f"skipped {fetched.package}: cannot be downloaded ({fetched.reason})")
            continue
        try:
            yield mine_archive(fetched.archive, name, keeps_generated=True)
        except RedraftError as error:
            print_note(f"skipped {error}")


def select(packages: Iterable[MinedPackage]) -> Sequence[MinedFunction]:
    """Return the functions that the paper's rule keeps, `MOST_OF_A_PACKAGE` of each package."""
    functions = filter(fits, without_repeated_files(packages))
    pairs = first_of_each(functions, key=lambda function: function.example.identity)
    return capped(pairs, most=MOST_OF_A_PACKAGE)
