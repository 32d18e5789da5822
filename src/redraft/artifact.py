"""A model directory: plain files, a manifest of their sizes and hashes, replaced as one.

Every file is stored under a name that holds its hash, so that a new version never overwrites a
file of the old one; replacing `manifest.json` is the single step that switches. Killed at any
moment, the directory holds the old model or the new one. Knows nothing of what the files mean.
"""

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from redraft.errors import ModelError

MANIFEST = "manifest.json"
FORMAT = 1
_STAGING = ".staging-"
_STORED = re.compile(r"\.[0-9a-f]{12}(\.[^.]*)?$")


@dataclass(frozen=True)
class Artifact:
    """An open model directory, every file checked against its size and hash."""

    folder: Path
    files: dict[str, Path]

    def path(self, name: str) -> Path:
        """Where the file with this name is stored."""
        if name not in self.files:
            raise ModelError(f"{self.folder}: the model lacks {name}; fit or copy it again")
        return self.files[name]

    def part(self, prefix: str) -> "Artifact":
        """The files whose names begin with this folder, as an artifact of their own."""
        start = prefix + "/"
        kept = {n.removeprefix(start): p for n, p in self.files.items() if n.startswith(start)}
        return Artifact(self.folder, kept)

    def json(self, name: str) -> Any:
        """The value in a JSON file."""
        return json.loads(self.path(name).read_text(encoding="utf-8"))


def open_artifact(folder: Path, *, only: str | None = None) -> Artifact:
    """The model directory, after a check of every size and hash; or only one of its files."""
    manifest_path = folder / MANIFEST
    if not manifest_path.is_file():
        raise ModelError(
            f"{folder}: not a model (no {MANIFEST}); name a folder `redraft fit` wrote"
        )
    try:
        manifest = json.loads(manifest_path.read_text(encoding="utf-8"))
        entries = {
            name: (_inside(folder, entry["stored"]), entry["bytes"], entry["sha256"])
            for name, entry in manifest["files"].items()
        }
        version = manifest["format"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"{manifest_path}: damaged; copy or fit the model again") from error
    if version != FORMAT:
        raise ModelError(
            f"{folder}: model format {version}, this redraft reads {FORMAT}; fit again"
        )
    if only is not None:
        entries = {name: entry for name, entry in entries.items() if name == only}
    for path, size, digest in entries.values():
        _verify(path, size, digest)
    return Artifact(folder, {name: path for name, (path, _, _) in entries.items()})


def _inside(folder: Path, stored: str) -> Path:
    parts = PurePosixPath(stored)
    if parts.is_absolute() or ".." in parts.parts:
        raise ModelError(f"{folder / MANIFEST}: names a file outside the model; do not trust it")
    return folder / parts


def _verify(path: Path, size: int, digest: str) -> None:
    advice = "copy or fit the model again"
    if not path.is_file():
        raise ModelError(f"{path}: missing; {advice}")
    if path.stat().st_size != size:
        raise ModelError(f"{path}: truncated or altered ({size:,} bytes expected); {advice}")
    if _sha256(path) != digest:
        raise ModelError(f"{path}: altered (its hash does not match); {advice}")


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def ensure_writable(folder: Path) -> None:
    """Refuse to write a model over something that is not one."""
    if folder.is_file():
        raise ModelError(f"{folder}: is a file; name a folder for the model")
    if folder.is_dir() and not (folder / MANIFEST).exists() and not _is_ours(folder):
        raise ModelError(f"{folder}: holds other files; name a new folder for the model")


def _is_ours(folder: Path) -> bool:
    """Whether a folder without a model is empty, or holds only what a killed writer left."""
    entries = list(folder.iterdir())
    staged = [path for path in entries if path.name.startswith(_STAGING)]
    others = [path for path in entries if path not in staged]
    files = [each for path in others for each in (path, *path.rglob("*")) if not each.is_dir()]
    return not entries or (bool(staged) and all(_STORED.search(path.name) for path in files))


@contextmanager
def write_artifact(folder: Path) -> Iterator[Path]:
    """A folder to write files into; left without an error, they become the model at once."""
    ensure_writable(folder)
    existed = folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=folder))
    try:
        yield staging
        _commit(staging, folder)
    finally:
        shutil.rmtree(staging)
        if (folder / MANIFEST).exists():
            _remove_unused(folder)
        elif not existed:
            shutil.rmtree(folder)


def _commit(staging: Path, folder: Path) -> None:
    files = {}
    for source in sorted(path for path in staging.rglob("*") if path.is_file()):
        name, digest = source.relative_to(staging), _sha256(source)
        stored = name.with_name(f"{name.stem}.{digest[:12]}{name.suffix}")
        files[name.as_posix()] = {
            "stored": stored.as_posix(),
            "bytes": source.stat().st_size,
            "sha256": digest,
        }
        (folder / stored).parent.mkdir(parents=True, exist_ok=True)
        _synchronise(source)
        source.replace(folder / stored)
    manifest = staging / MANIFEST
    text = json.dumps({"format": FORMAT, "files": files}, indent=2) + "\n"
    manifest.write_text(text, encoding="utf-8")
    _synchronise(manifest)
    manifest.replace(folder / MANIFEST)


def _synchronise(path: Path) -> None:
    with path.open("rb") as stream:
        os.fsync(stream.fileno())


def _remove_unused(folder: Path) -> None:
    """Delete what no manifest names: older versions, and what a killed writer left."""
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    used = {folder / entry["stored"] for entry in manifest["files"].values()} | {folder / MANIFEST}
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_file() and path not in used:
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()
