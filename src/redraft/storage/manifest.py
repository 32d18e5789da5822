"""The manifest of a model directory: its files, with their sizes and hashes.

Every file is stored under a name that contains its hash, so that a new version never overwrites a
file of the old one. Knows neither how the files are replaced nor what they contain.
"""

import hashlib
import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from redraft import __version__

MANIFEST = "manifest.json"
FORMAT = 4

_MAX_BYTES = 16 * 1024 * 1024
_MAX_NAME = 255
_DIGEST = re.compile(r"[0-9a-f]{64}")


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
        """True if the name contains the hash, as in every name given by our writers."""
        path = PurePosixPath(self.stored)
        is_inside = not path.is_absolute() and ".." not in path.parts
        return is_inside and f".{self.sha256[:12]}" in path.name


@dataclass(frozen=True)
class Manifest:
    """The format of a model directory, and its files by name."""

    format: int
    files: dict[str, Entry]


def parse_manifest(content: bytes) -> Manifest:
    """Return the manifest in `content`; raise a ValueError if it is not one of ours."""
    if len(content) > _MAX_BYTES:
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
    return Manifest(
        value["format"], {name: Entry.parse(entry) for name, entry in value["files"].items()}
    )


def manifest_bytes(folder: Path, name: str = MANIFEST) -> bytes:
    """Return the bytes of a manifest, which differ between versions; b"" if there is none."""
    try:
        with (folder / name).open("rb") as stream:
            return stream.read(_MAX_BYTES + 1)
    except OSError:
        return b""


def write_manifest(path: Path, files: dict[str, Entry]) -> None:
    """Write a manifest of `files` to `path`, and wait until it is on disk."""
    entries = {name: asdict(entry) for name, entry in files.items()}
    content = {"redraft": __version__, "format": FORMAT, "files": entries}
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    synchronise(path)


def listed_entries(folder: Path, name: str = MANIFEST) -> set[Entry]:
    """Return the files that the manifest of a folder lists; none if it has no good manifest."""
    try:
        return set(parse_manifest(manifest_bytes(folder, name)).files.values())
    except ValueError:
        return set()


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def synchronise(path: Path) -> None:
    """Wait until a file or folder is on disk (fsync)."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
