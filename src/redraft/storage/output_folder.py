"""Folders that a command writes results into: never a folder with other contents.

A folder is ours if it is missing or empty, or if its marker file says that the same kind of
command wrote it before. Model directories have their manifest for that (`artifact`), bulk jobs
their `job.json`.
"""

import json
from collections.abc import Collection
from pathlib import Path

from redraft import __version__
from redraft.errors import OutputError

MARKER = ".redraft.json"
_MAX_MARKER_BYTES = 4_096


def ensure_ours(folder: Path, kind: str, *, inputs: Collection[str] = ()) -> None:
    """Raise an OutputError unless results of this `kind` may be written to `folder`.

    Entries named in `inputs` may be there before the first run.
    """
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder}: is a file; name a folder")
    if not folder.is_dir() or _kind(folder) == kind:
        return
    if any(path.name not in inputs for path in folder.iterdir()):
        raise OutputError(f"{folder}: holds other files; name a new folder")


def claim(folder: Path, kind: str, *, inputs: Collection[str] = ()) -> None:
    """Create `folder` if it is missing, and mark it as written by this `kind` of command."""
    ensure_ours(folder, kind, inputs=inputs)
    folder.mkdir(parents=True, exist_ok=True)
    marker = {"kind": kind, "redraft": __version__}
    (folder / MARKER).write_text(json.dumps(marker) + "\n", encoding="utf-8")


def _kind(folder: Path) -> str | None:
    """Return the kind of command that wrote the folder; None if it has no good marker."""
    try:
        with (folder / MARKER).open("rb") as stream:
            return str(json.loads(stream.read(_MAX_MARKER_BYTES))["kind"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
