"""Read Hearthstone cards from a folder in the public card2code format."""

from pathlib import Path

from redraft.data import hearthstone
from redraft.data.pairs import read_pairs
from redraft.errors import PairsError
from redraft.types import Example


def read_splits(folder: Path, *names: str) -> list[list[Example]]:
    """Return the cards of the named splits of `folder`, one list per split."""
    found = hearthstone.splits(folder)
    for name in names:
        if name not in found:
            present = ", ".join(found) or "none"
            raise PairsError(f"{folder}: has no {name}_hs.in; splits that are there: {present}")
    return [read_pairs(found[name]) for name in names]
