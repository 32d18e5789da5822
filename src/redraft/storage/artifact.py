"""A model directory: plain files and a manifest of their sizes and hashes. Opens and checks one.

Readers take no lock: they start over if a writer (`artifact_writer`) replaced the manifest
meanwhile. Knows nothing of the contents of files.
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from redraft.errors import LockedError, ModelError
from redraft.storage.locking import exclusive
from redraft.storage.manifest import (
    FORMAT,
    MANIFEST,
    Entry,
    hash_file,
    manifest_bytes,
    parse_manifest,
)

_OPTIMISTIC_READS = 3
_ADVICE = "copy or fit the model again"

Read = TypeVar("Read")


@dataclass(frozen=True)
class Artifact:
    """An open model directory, every file checked against its size and hash."""

    folder: Path
    files: dict[str, Path]

    def path(self, name: str) -> Path:
        """Return the path under which the file `name` is stored."""
        if name not in self.files:
            raise ModelError(f"{self.folder}: the model lacks {name}; fit or copy it again")
        return self.files[name]

    def part(self, prefix: str) -> "Artifact":
        """Return the files below the folder `prefix` as an artifact of their own."""
        start = prefix + "/"
        files = {n.removeprefix(start): p for n, p in self.files.items() if n.startswith(start)}
        return Artifact(self.folder, files)

    def json(self, name: str) -> Any:
        """Return the value in the JSON file `name`."""
        return json.loads(self.path(name).read_text(encoding="utf-8"))


def open_artifact(folder: Path, *, only: str | None = None) -> Artifact:
    """Open a model directory and check the size and hash of every file, or of the file `only`."""
    return read_artifact(folder, lambda artifact: artifact, only=only)


def read_artifact(
    folder: Path, read: Callable[[Artifact], Read], *, only: str | None = None
) -> Read:
    """Return `read(artifact)` of the directory, starting over if a writer replaces it meanwhile.

    After a few tries the directory is locked, so a busy writer cannot keep a reader out forever.
    """
    for _ in range(_OPTIMISTIC_READS):
        manifest = manifest_bytes(folder)
        try:
            return read(_open(folder, only))
        except Exception:
            # a writer may have deleted the files of the old version; all other errors are real
            if manifest_bytes(folder) == manifest:
                raise
    try:
        with exclusive(folder):
            return read(_open(folder, only))
    except LockedError:
        raise
    except ModelError:
        if os.access(folder, os.W_OK):
            raise
        return read(_open(folder, only))  # a directory that may only be read cannot be locked


def _open(folder: Path, only: str | None) -> Artifact:
    path = folder / MANIFEST
    if not path.is_file():
        raise ModelError(
            f"{folder}: not a model (no {MANIFEST}); name a folder `redraft fit` wrote"
        )
    try:
        manifest = parse_manifest(manifest_bytes(folder))
    except ValueError as error:
        raise ModelError(f"{path}: damaged; {_ADVICE}") from error
    if manifest.format != FORMAT:
        raise ModelError(
            f"{folder}: saved in model format {manifest.format}, this version of redraft reads "
            f"format {FORMAT}; fit the model again: redraft fit PAIRS -o {folder}"
        )
    files = {}
    for name, entry in manifest.files.items():
        if only is None or name == only:
            files[name] = _stored_path(folder, entry.stored)
            _verify(files[name], entry)
    return Artifact(folder, files)


def _stored_path(folder: Path, stored: str) -> Path:
    """Return the path of a stored file, which must be in the folder, links resolved."""
    parts = PurePosixPath(stored)
    path = folder / parts
    try:
        is_inside = path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):  # too long, a NUL, a loop of links
        is_inside = False
    if parts.is_absolute() or ".." in parts.parts or not is_inside:
        raise ModelError(f"{folder / MANIFEST}: names a file outside the model; do not trust it")
    return path


def _verify(path: Path, entry: Entry) -> None:
    try:
        if not path.is_file():
            raise ModelError(f"{path}: missing; {_ADVICE}")
        if path.stat().st_size != entry.bytes:
            raise ModelError(
                f"{path}: truncated or altered ({entry.bytes:,} bytes expected); {_ADVICE}"
            )
        if hash_file(path) != entry.sha256:
            raise ModelError(f"{path}: altered (its hash does not match); {_ADVICE}")
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}); {_ADVICE}") from error
