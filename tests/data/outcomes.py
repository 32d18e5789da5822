"""The rows of a file without their lines, as most tests compare them."""

from collections.abc import Iterator
from pathlib import Path

from redraft.data.pairs import scan_numbered
from redraft.data.rows import BadRow
from redraft.data.tables import Columns
from redraft.types import Example


def scan_pairs(path: Path, columns: Columns | None = None) -> Iterator[Example | BadRow]:
    """Yield every row of a file: an example or a BadRow."""
    return (outcome for _, outcome in scan_numbered(path, columns))
