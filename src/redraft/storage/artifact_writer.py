"""Writes model directories: a new version replaces the old one in a single step.

Files carry their hash in their names, and replacing `manifest.json` switches to them: killed at any
moment, the directory holds the old model or the new one. Writers hold the directory's lock
(`locking`), delete only files that our manifests list, and leave everything else in the directory
alone.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from redraft.errors import ModelError
from redraft.storage.locking import LOCK, exclusive
from redraft.storage.manifest import (
    MANIFEST,
    Entry,
    hash_file,
    listed_entries,
    manifest_bytes,
    parse_manifest,
    synchronise,
    write_manifest,
)

_JOURNAL = ".journal.json"
_STAGING = ".staging-"
_STAGING_NAME = re.compile(re.escape(_STAGING) + r"[a-z0-9_]{8}")


def ensure_writable(folder: Path) -> None:
    """Raise a ModelError if a model may not be written to `folder`.

    It may if the folder is missing or empty, holds a model of ours (a user's other files are no
    obstacle), or holds only the files of a writer that was killed.
    """
    if folder.is_file():
        raise ModelError(f"{folder}: is a file; name a folder for the model")
    if not folder.is_dir():
        return
    if (folder / MANIFEST).exists():
        try:
            parse_manifest(manifest_bytes(folder))
        except ValueError:
            raise ModelError(
                f"{folder}: its {MANIFEST} was not written by redraft; "
                "name a new folder for the model"
            ) from None
        return
    if any(_foreign_files(folder)):
        raise ModelError(f"{folder}: holds other files; name a new folder for the model")


def _foreign_files(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder without a manifest, except those of killed writers."""
    ours = {folder / LOCK}
    staged = _abandoned(folder)
    for staging in staged:
        ours |= {folder / entry.stored for entry in listed_entries(staging, _JOURNAL)}
    for path in folder.iterdir():
        if path not in staged:
            files = path.rglob("*") if path.is_dir() and not path.is_symlink() else [path]
            yield from (file for file in files if not file.is_dir() and file not in ours)


@contextmanager
def write_artifact(folder: Path) -> Iterator[Path]:
    """Yield a folder to write files into; on a normal exit they replace the model atomically.

    Holds the lock of `folder` meanwhile.
    """
    ensure_writable(folder)
    with exclusive(folder):
        for abandoned in _abandoned(folder):
            _discard(abandoned, folder)
        before = listed_entries(folder)
        staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=folder))
        try:
            yield staging
            _commit(staging, folder, before)
        finally:
            _discard(staging, folder)


def remove_artifact(folder: Path) -> None:
    """Delete a model directory's own files, and the directory if nothing else is in it."""
    if not folder.is_dir():
        return
    with exclusive(folder):
        entries = listed_entries(folder)
        if entries:
            (folder / MANIFEST).unlink()
        _remove(folder, entries)
        for abandoned in _abandoned(folder):
            _discard(abandoned, folder)
    with suppress(OSError):  # not empty
        folder.rmdir()


def _commit(staging: Path, folder: Path, before: set[Entry]) -> None:
    """Move the staged files into the folder and switch to them."""
    files = {}
    sources = sorted(path for path in staging.rglob("*") if path.is_file())
    for source in sources:
        name, digest = source.relative_to(staging), hash_file(source)
        stored = name.with_name(f"{name.stem}.{digest[:12]}{name.suffix}")
        files[name.as_posix()] = Entry(stored.as_posix(), source.stat().st_size, digest)
    # Old and new files are listed before any is moved: if this writer is killed, the next one
    # deletes those that the manifest does not name.
    write_manifest(staging / _JOURNAL, {e.stored: e for e in (*before, *files.values())})
    manifest = staging / MANIFEST
    write_manifest(manifest, files)
    # the mode of the umask: some libraries write files that only their owner can read
    mode = manifest.stat().st_mode
    for source, entry in zip(sources, files.values(), strict=True):
        target = folder / entry.stored
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.stat().st_mode != mode:
            source.chmod(mode)
        synchronise(source)
        source.replace(target)
    manifest.replace(folder / MANIFEST)
    synchronise(folder)


def _discard(staging: Path, folder: Path) -> None:
    """Delete a staging folder, and the files of its writer that the manifest does not name."""
    _remove(folder, listed_entries(staging, _JOURNAL) - listed_entries(folder))
    shutil.rmtree(staging, ignore_errors=True)


def _abandoned(folder: Path) -> list[Path]:
    """Return the staging folders of killed writers: a living one would hold the lock."""
    return [
        path
        for path in folder.iterdir()
        if _STAGING_NAME.fullmatch(path.name) and path.is_dir() and not path.is_symlink()
    ]


def _remove(folder: Path, entries: set[Entry]) -> None:
    """Delete stored files, and their folders once empty; errors are ignored."""
    for entry in entries:
        if entry.is_ours:
            path = folder / entry.stored
            with suppress(OSError, ValueError):
                path.unlink()
            with suppress(OSError, ValueError):
                while path.parent != folder:
                    path = path.parent
                    path.rmdir()
