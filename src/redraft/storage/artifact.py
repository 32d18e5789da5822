"""A model directory: plain files, a manifest of their sizes and hashes, replaced as one.

Every file is stored under a name that contains its hash, so a new version never overwrites a file
of the old one; replacing `manifest.json` is the single step that switches. Killed at any moment,
the directory holds the old model or the new one. Writers hold the directory's lock (`locking`),
delete only files that our manifests list, and leave everything else in the directory alone.
Readers take no lock: they start over if the manifest was replaced. Knows nothing of the contents
of files.
"""

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from redraft import __version__
from redraft.errors import LockedError, ModelError
from redraft.storage.locking import LOCK, exclusive

MANIFEST = "manifest.json"
FORMAT = 2

_MAX_MANIFEST_BYTES = 16 * 1024 * 1024
_MAX_NAME = 255
_OPTIMISTIC_READS = 3
_JOURNAL = ".journal.json"
_STAGING = ".staging-"
_STAGING_NAME = re.compile(re.escape(_STAGING) + r"[a-z0-9_]{8}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_ADVICE = "copy or fit the model again"

Read = TypeVar("Read")


@dataclass(frozen=True)
class Entry:
    """A file of a manifest: where it is stored, its size and its SHA-256."""

    stored: str
    bytes: int
    sha256: str

    @classmethod
    def parse(cls, value: Any) -> "Entry":
        """Return the entry in `value`, or raise a ValueError."""
        if not isinstance(value, dict) or set(value) != {"stored", "bytes", "sha256"}:
            raise ValueError("an entry has the keys stored, bytes and sha256")
        entry = cls(value["stored"], value["bytes"], value["sha256"])
        is_typed = isinstance(entry.stored, str) and isinstance(entry.sha256, str)
        if not is_typed or type(entry.bytes) is not int or entry.bytes < 0:
            raise ValueError("an entry is a name, a size and a hash")
        if not _DIGEST.fullmatch(entry.sha256) or len(entry.stored) > _MAX_NAME:
            raise ValueError("a hash has 64 hexadecimal digits, a name is short")
        return entry

    @property
    def is_ours(self) -> bool:
        """True if the name contains the hash, as every name that a writer of ours gave."""
        path = PurePosixPath(self.stored)
        is_inside = not path.is_absolute() and ".." not in path.parts
        return is_inside and f".{self.sha256[:12]}" in path.name


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


def manifest_bytes(folder: Path, name: str = MANIFEST) -> bytes:
    """Return the manifest of a directory as it stands; other bytes are another version."""
    try:
        with (folder / name).open("rb") as stream:
            return stream.read(_MAX_MANIFEST_BYTES + 1)
    except OSError:
        return b""


def _open(folder: Path, only: str | None) -> Artifact:
    path = folder / MANIFEST
    if not path.is_file():
        raise ModelError(
            f"{folder}: not a model (no {MANIFEST}); name a folder `redraft fit` wrote"
        )
    try:
        manifest = _parse(manifest_bytes(folder))
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


@dataclass(frozen=True)
class _Manifest:
    format: int
    files: dict[str, Entry]


def _parse(content: bytes) -> _Manifest:
    """Return the manifest in `content`; a ValueError if it is not one of ours."""
    if len(content) > _MAX_MANIFEST_BYTES:
        raise ValueError("too large")
    try:
        value = json.loads(content)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(value, dict) or type(value.get("format")) is not int:
        raise ValueError("no format")
    if value["format"] > 1 and not isinstance(value.get("redraft"), str):
        raise ValueError("no version")
    if not isinstance(value.get("files"), dict):
        raise ValueError("no files")
    return _Manifest(
        value["format"], {name: Entry.parse(entry) for name, entry in value["files"].items()}
    )


def _stored_path(folder: Path, stored: str) -> Path:
    """Return the path of a stored file, which must be in the folder, also through links."""
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
        if _sha256(path) != entry.sha256:
            raise ModelError(f"{path}: altered (its hash does not match); {_ADVICE}")
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}); {_ADVICE}") from error


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def ensure_writable(folder: Path) -> None:
    """Raise a ModelError if a model may not be written to `folder`.

    It may if the folder is missing or empty, holds a model of ours (with whatever a user keeps
    beside it), or holds nothing but the remains of a writer that was killed.
    """
    if folder.is_file():
        raise ModelError(f"{folder}: is a file; name a folder for the model")
    if not folder.is_dir():
        return
    if (folder / MANIFEST).exists():
        try:
            _parse(manifest_bytes(folder))
        except ValueError:
            raise ModelError(
                f"{folder}: its {MANIFEST} was not written by redraft; "
                "name a new folder for the model"
            ) from None
        return
    if any(_foreign_files(folder)):
        raise ModelError(f"{folder}: holds other files; name a new folder for the model")


def _foreign_files(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder without a manifest that no killed writer left there."""
    ours = {folder / LOCK}
    staged = _abandoned(folder)
    for staging in staged:
        ours |= {folder / entry.stored for entry in _entries(staging, _JOURNAL)}
    for path in folder.iterdir():
        if path not in staged:
            files = path.rglob("*") if path.is_dir() and not path.is_symlink() else [path]
            yield from (file for file in files if not file.is_dir() and file not in ours)


@contextmanager
def write_artifact(folder: Path) -> Iterator[Path]:
    """Yield a folder to write files into; left without an error, they replace the model at once.

    Holds the lock of `folder` meanwhile.
    """
    ensure_writable(folder)
    with exclusive(folder):
        for abandoned in _abandoned(folder):
            _discard(abandoned, folder)
        before = _entries(folder)
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
        entries = _entries(folder)
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
        name, digest = source.relative_to(staging), _sha256(source)
        stored = name.with_name(f"{name.stem}.{digest[:12]}{name.suffix}")
        files[name.as_posix()] = Entry(stored.as_posix(), source.stat().st_size, digest)
    # Old and new files are listed before any is moved: if this writer is killed, the next one
    # deletes those that the manifest does not name.
    _write_manifest(staging / _JOURNAL, {e.stored: e for e in (*before, *files.values())})
    manifest = staging / MANIFEST
    _write_manifest(manifest, files)
    mode = manifest.stat().st_mode  # that of the umask; some libraries write for the owner alone
    for source, entry in zip(sources, files.values(), strict=True):
        target = folder / entry.stored
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.stat().st_mode != mode:
            source.chmod(mode)
        _synchronise(source)
        source.replace(target)
    manifest.replace(folder / MANIFEST)
    _synchronise(folder)


def _write_manifest(path: Path, files: dict[str, Entry]) -> None:
    entries = {name: asdict(entry) for name, entry in files.items()}
    content = {"redraft": __version__, "format": FORMAT, "files": entries}
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    _synchronise(path)


def _synchronise(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _entries(folder: Path, name: str = MANIFEST) -> set[Entry]:
    """Return the files that the manifest of a folder lists; none if it has no good manifest."""
    try:
        return set(_parse(manifest_bytes(folder, name)).files.values())
    except ValueError:
        return set()


def _discard(staging: Path, folder: Path) -> None:
    """Delete a staging folder, and the files of its writer that the manifest does not name."""
    _remove(folder, _entries(staging, _JOURNAL) - _entries(folder))
    shutil.rmtree(staging, ignore_errors=True)


def _abandoned(folder: Path) -> list[Path]:
    """Return the staging folders of killed writers: a living one would hold the lock."""
    return [
        path
        for path in folder.iterdir()
        if _STAGING_NAME.fullmatch(path.name) and path.is_dir() and not path.is_symlink()
    ]


def _remove(folder: Path, entries: set[Entry]) -> None:
    """Delete stored files, and their folders once empty; what cannot be deleted stays."""
    for entry in entries:
        if entry.is_ours:
            path = folder / entry.stored
            with suppress(OSError, ValueError):
                path.unlink()
            with suppress(OSError, ValueError):
                while path.parent != folder:
                    path = path.parent
                    path.rmdir()
