"""Read Hearthstone cards from a folder in the public card2code format."""

from pathlib import Path

from redraft.data.pairs import read_pairs
from redraft.errors import PairsError
from redraft.types import Example


def read_splits(folder: Path, *names: str) -> list[list[Example]]:
    """Return the cards of the named splits of `folder`, one list per split."""
    paths = splits(folder)
    for name in names:
        if name not in paths:
            present = ", ".join(paths) or "none"
            raise PairsError(f"{folder}: has no {name}_hs.in; splits that are there: {present}")
    return [read_pairs(paths[name]) for name in names]


def splits(folder: Path) -> dict[str, Path]:
    """Return the splits in the folder with their input files."""
    paths = {path.name.removesuffix("_hs.in"): path for path in folder.glob("*_hs.in")}
    return {name: paths[name] for name in ("train", "dev", "test") if name in paths}
