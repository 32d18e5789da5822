"""The lower bounds of the dependencies are those that `make test-lowest` installs."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
REQUIREMENTS = [
    requirement
    for text in [*PROJECT["dependencies"], *(line for lines in EXTRAS.values() for line in lines)]
    if (requirement := Requirement(text)).name != PROJECT["name"]
]


def read_versions(name: str) -> dict[NormalizedName, Version]:
    """Read the constraints file `name`; returns the pinned version of each package."""
    lines = (ROOT / name).read_text().splitlines()
    pins = [Requirement(line) for line in lines if line and not line.startswith("#")]
    versions = {canonicalize_name(pin.name): single_version(pin, "==") for pin in pins}
    assert len(versions) == len(pins), f"{name}: a package is pinned twice"
    return versions


def single_version(requirement: Requirement, operator: str) -> Version:
    """Return the version of `requirement`, whose only specifier must use `operator`.

    Besides it, single versions may be excluded.
    """
    [specifier] = (one for one in requirement.specifier if one.operator != "!=")
    assert specifier.operator == operator, f"{requirement}: expected {operator}"
    return Version(specifier.version)


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=str)
def test_a_lower_bound_is_the_version_that_is_tested(requirement: Requirement) -> None:
    bound = single_version(requirement, ">=")
    assert read_versions("constraints-lowest.txt")[canonicalize_name(requirement.name)] == bound


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=str)
def test_the_pinned_version_is_within_the_bounds(requirement: Requirement) -> None:
    pinned = read_versions("constraints.txt")[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(pinned)


def test_only_direct_dependencies_have_a_lowest_version() -> None:
    names = {canonicalize_name(requirement.name) for requirement in REQUIREMENTS}
    assert set(read_versions("constraints-lowest.txt")) == names


def test_the_build_backend_has_the_bound_that_is_tested() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]
    [backend] = map(Requirement, build["requires"])
    lowest = read_versions("constraints-lowest.txt")[canonicalize_name(backend.name)]
    assert single_version(backend, ">=") == lowest
