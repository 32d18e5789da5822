"""A list of pinned packages to their archives in a folder, by pip's own download.

Only wheels are downloaded: to tell what a source archive is, pip would run its set-up code. A
source archive that lies in the folder already is used. Nothing is installed.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from redraft.data.archives import ENDINGS, WHEEL
from redraft.errors import PairsError

BATCH = 16
"""Packages that one run of pip downloads: few runs, and little is lost when one is stopped."""

_PIP = (
    *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-input"),
    *("--only-binary=:all:", "--disable-pip-version-check"),
)
_LINE = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9][A-Za-z0-9.!+_-]*)(?:\s+([^\s=]+))?")

SIDES = ("train", "dev", "test")
"""The sides of a split."""


@dataclass(frozen=True)
class Pinned:
    """A package and its version, and the side of the split that it must be on, if any."""

    name: str
    version: str
    side: str | None = None

    def __str__(self) -> str:
        return f"{self.name}=={self.version}"

    @property
    def stem(self) -> str:
        """How the names of files about it begin."""
        return f"{self.name}-{self.version}"


@dataclass(frozen=True)
class Fetched:
    """A package with its archive, or with the reason why there is none."""

    package: Pinned
    archive: Path | None
    reason: str = ""


def normalise(name: str) -> str:
    """The one spelling of a package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_list(path: Path) -> list[Pinned]:
    """The packages of a list, sorted by name; a line is NAME==VERSION, perhaps with a side.

    A # begins a comment.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise PairsError(f"{path}: cannot be read ({error}); name a list of packages") from error
    found: dict[str, Pinned] = {}
    for number, line in enumerate(lines, start=1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        package = _read_line(text, where=f"{path}:{number}")
        if package.name in found:
            raise PairsError(f"{path}:{number}: {package.name} is named twice; keep one line")
        found[package.name] = package
    if not found:
        raise PairsError(f"{path}: names no package; a line is NAME==VERSION")
    return [found[name] for name in sorted(found)]


def _read_line(text: str, *, where: str) -> Pinned:
    """The package that a line names."""
    match = _LINE.fullmatch(text)
    if match is None:
        raise PairsError(
            f"{where}: expected NAME==VERSION or NAME==VERSION SIDE, got {text[:80]!r}"
        )
    name, version, side = match.groups()
    if side is not None and side not in SIDES:
        raise PairsError(
            f"{where}: {normalise(name)} has the unknown side {side[:80]!r}; "
            f"write {', '.join(SIDES[:-1])} or {SIDES[-1]}, or leave it out"
        )
    return Pinned(normalise(name), version, side)


def find_archive(package: Pinned, folder: Path) -> Path | None:
    """The package's archive in the folder, a wheel before any other, if there is one."""
    for ending in ENDINGS:
        for path in sorted(folder.glob(f"*{ending}")):
            if _holds(path.name.removesuffix(ending), package, is_wheel=ending == WHEEL):
                return path
    return None


def _holds(stem: str, package: Pinned, *, is_wheel: bool) -> bool:
    """Whether an archive's name, without its ending, is that of the package."""
    if is_wheel:
        name, _, rest = stem.partition("-")
        version = rest.partition("-")[0]
    else:
        name, _, version = stem.rpartition("-")
    return normalise(name) == package.name and _version(version) == _version(package.version)


def _version(text: str) -> str:
    """A version without what does not tell versions apart."""
    return re.sub(r"(\.0)+$", "", text.lower().replace("_", "+"))


def fetch(packages: Sequence[Pinned], folder: Path) -> Iterator[Fetched]:
    """Every package with its archive, downloaded unless it is there; in batches, in order."""
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
        if len(batch) > 1 and any(reasons.values()):  # one that cannot be had fails them all
            reasons = {package: _download([package], folder) for package in batch}
        for package, reason in reasons.items():
            archive = find_archive(package, folder)
            yield Fetched(package, archive, "" if archive else reason or "no archive came")


def _download(packages: Sequence[Pinned], folder: Path) -> str:
    """Download the packages' wheels, whole or not at all; returns what went wrong, if anything."""
    with tempfile.TemporaryDirectory(prefix=".download-", dir=folder) as partial:
        done = subprocess.run(
            [*_PIP, "--dest", partial, *map(str, packages)],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"pip left with {done.returncode}"]
            errors = [line for line in lines if line.startswith("ERROR: ")]
            return (errors or lines)[-1].removeprefix("ERROR: ")
        for path in Path(partial).iterdir():
            path.replace(folder / path.name)
    return ""
