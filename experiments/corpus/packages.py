"""Download the archives of a list of pinned packages with pip.

Only wheels are downloaded: for a source archive pip would run its set-up code. Source archives
that are already in the folder are used. Nothing is installed.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.corpus.archives import ENDINGS, WHEEL
from redraft.errors import PairsError
from redraft.storage.reading import read_at_most

BATCH = 16
"""Packages per run of pip: few runs, and little is lost on an interruption."""

_PIP = (
    *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-input"),
    *("--only-binary=:all:", "--disable-pip-version-check"),
)
_LINE = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9][A-Za-z0-9.!+_-]*)(?:\s+([^\s=]+))?")

MOST_BYTES = 4_000_000
"""Maximum size of a package list."""

SIDES = ("train", "dev", "test")
"""The splits that a line may name."""


@dataclass(frozen=True)
class Pinned:
    """A package with its version and, if given, the split that it is assigned to."""

    name: str
    version: str
    side: str | None = None

    def __str__(self) -> str:
        return f"{self.name}=={self.version}"

    @property
    def stem(self) -> str:
        """The prefix of names of files about the package."""
        return f"{self.name}-{self.version}"


@dataclass(frozen=True)
class Fetched:
    """A package with its archive, or with the reason of the failed download."""

    package: Pinned
    archive: Path | None
    reason: str = ""


def normalise(name: str) -> str:
    """Return the normalised name of a package (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_list(path: Path) -> list[Pinned]:
    """Read a package list and return its packages, sorted by name.

    A line is NAME==VERSION or NAME==VERSION SPLIT; # starts a comment.
    """
    try:
        lines = read_at_most(path, MOST_BYTES).decode().splitlines()
    except (OSError, ValueError) as error:  # too large, or not UTF-8
        raise PairsError(f"{path}: cannot be read ({error}); name a list of packages") from error
    packages: dict[str, Pinned] = {}
    for number, line in enumerate(lines, start=1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        package = _read_line(text, where=f"{path}:{number}")
        if package.name in packages:
            raise PairsError(f"{path}:{number}: {package.name} is named twice; keep one line")
        packages[package.name] = package
    if not packages:
        raise PairsError(f"{path}: names no package; a line is NAME==VERSION")
    return [packages[name] for name in sorted(packages)]


def _read_line(text: str, *, where: str) -> Pinned:
    """Parse a line of a package list; errors begin with `where`."""
    match = _LINE.fullmatch(text)
    if match is None:
        raise PairsError(
            f"{where}: expected NAME==VERSION or NAME==VERSION SPLIT, got {text[:80]!r}"
        )
    name, version, side = match.groups()
    if side is not None and side not in SIDES:
        raise PairsError(
            f"{where}: {normalise(name)} has the unknown split {side[:80]!r}; "
            f"write {', '.join(SIDES[:-1])} or {SIDES[-1]}, or leave it out"
        )
    return Pinned(normalise(name), version, side)


def find_archive(package: Pinned, folder: Path) -> Path | None:
    """Return the archive of a package in `folder`, preferably a wheel, or None."""
    for ending in ENDINGS:
        for path in sorted(folder.glob(f"*{ending}")):
            if _holds(path.name.removesuffix(ending), package, is_wheel=ending == WHEEL):
                return path
    return None


def _holds(stem: str, package: Pinned, *, is_wheel: bool) -> bool:
    """Return True if `stem`, an archive's name without its ending, matches the package."""
    if is_wheel:
        name, _, rest = stem.partition("-")
        version = rest.partition("-")[0]
    else:
        name, _, version = stem.rpartition("-")
    return normalise(name) == package.name and _version(version) == _version(package.version)


def _version(text: str) -> str:
    """Return a version in a normal form: equal versions compare equal."""
    return re.sub(r"(\.0)+$", "", text.lower().replace("_", "+"))


def fetch(packages: Sequence[Pinned], folder: Path) -> Iterator[Fetched]:
    """Yield every package with its archive; missing archives are downloaded in batches."""
    folder.mkdir(parents=True, exist_ok=True)
    missing: list[Pinned] = []
    for package in packages:
        if archive := find_archive(package, folder):
            yield Fetched(package, archive)
        else:
            missing.append(package)
    for start in range(0, len(missing), BATCH):
        batch = missing[start : start + BATCH]
        reasons = dict.fromkeys(batch, _download(batch, folder))
        if len(batch) > 1 and any(reasons.values()):  # one failure fails the batch
            reasons = {package: _download([package], folder) for package in batch}
        for package, reason in reasons.items():
            archive = find_archive(package, folder)
            yield Fetched(package, archive, "" if archive else reason or "pip wrote no archive")


def _download(packages: Sequence[Pinned], folder: Path) -> str:
    """Download the wheels of the packages atomically; return the error message, or ""."""
    with tempfile.TemporaryDirectory(prefix=".download-", dir=folder) as partial:
        done = subprocess.run(
            [*_PIP, "--dest", partial, *map(str, packages)],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"pip exited with {done.returncode}"]
            errors = [line for line in lines if line.startswith("ERROR: ")]
            return (errors or lines)[-1].removeprefix("ERROR: ")
        for path in Path(partial).iterdir():
            path.replace(folder / path.name)
    return ""
