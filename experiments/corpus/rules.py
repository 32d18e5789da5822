"""Build a corpus from mined packages: two filter rules, and one split by groups of packages.

The paper's rule removes duplicate pairs of function and docstring. The strict rule also removes
bodies that are equal, nearly equal, or equal up to renaming, to reduce leakage from train to test.
Both limit the functions per package. Pure: knows no archives and no folders.
"""

import hashlib
import keyword
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType

from experiments.corpus.mined_files import MinedFunction, MinedPackage
from experiments.corpus.near_duplicates import near_duplicates
from experiments.corpus.packages import normalise
from redraft.errors import PairsError
from redraft.text.tokenizer import is_word

SHORTEST, LONGEST = 5, 150
"""Length limits of a body in tokens, white space not counted."""

MOST_OF_A_PACKAGE = 1_000
MOST_OF_A_SHAPE = 3
"""Maximum number of bodies that are equal up to renaming, in the strict rule."""

NEAR = 0.9
"""Bodies with at least this token similarity are near-duplicates."""

SHARED = 0.05
"""Packages that share more than this fraction of the smaller one's bodies form a group."""

SHARES = {"train": 0.88, "dev": 0.06, "test": 0.06}

Functions = Sequence[MinedFunction]
Sides = Mapping[str, str]
"""The split (train, dev or test) of each package, by its name."""

NONE_NAMED: Sides = MappingProxyType({})


@dataclass(frozen=True)
class Selection:
    """The functions that a rule keeps, and the number left after each of its filters."""

    functions: Functions
    stages: Mapping[str, int]


@dataclass(frozen=True)
class Corpus:
    """The selection of each rule, and the group and split of each package."""

    rules: Mapping[str, Selection]
    groups: Mapping[str, str]
    sides: Sides

    def part(self, rule: str, side: str) -> Functions:
        """Return the functions that `rule` keeps in one split."""
        return [f for f in self.rules[rule].functions if self.sides[f.package] == side]


def build(packages: Sequence[MinedPackage], *, seed: int, named: Sides = NONE_NAMED) -> Corpus:
    """Build a corpus; `named` fixes the split of some packages. Independent of their order."""
    packages = sorted(packages, key=lambda mined: mined.package)
    rules = select(packages)
    groups = group_packages({p.package: [f for f in p.functions if fits(f)] for p in packages})
    sizes = Counter(function.package for function in rules["strict"].functions)
    return Corpus(rules, groups, assign_sides(groups, sizes, seed=seed, named=named))


def select(packages: Sequence[MinedPackage]) -> dict[str, Selection]:
    """Return the selections of the two rules, by name."""
    functions = list(without_repeated_files(packages))
    fitting = [function for function in functions if fits(function)]
    pairs = first_of_each(fitting, key=lambda function: function.example.identity)
    shared = {
        "functions with a docstring": sum(mined.seen for mined in packages),
        "documented, not trivial": sum(1 for mined in packages for _ in mined.functions),
        "duplicate files out": len(functions),
        f"bodies of {SHORTEST} to {LONGEST} tokens": len(fitting),
        "duplicate (function, docstring) out": len(pairs),
    }
    paper = capped(pairs)
    bodies = first_of_each(pairs, key=lambda function: function.example.y)
    shapes = first_of_each(bodies, key=lambda f: shape(f.tokens), most=MOST_OF_A_SHAPE)
    distinct = without_near_duplicates(shapes)
    strict = capped(distinct)
    cap = f"at most {MOST_OF_A_PACKAGE:,} a package"
    return {
        "paper": Selection(paper, shared | {cap: len(paper)}),
        "strict": Selection(
            strict,
            shared
            | {
                "duplicate bodies out": len(bodies),
                f"at most {MOST_OF_A_SHAPE} the same but for names": len(shapes),
                "near-duplicate bodies out": len(distinct),
                cap: len(strict),
            },
        ),
    }


def without_repeated_files(packages: Iterable[MinedPackage]) -> Iterator[MinedFunction]:
    """Yield the functions of every file that is not a byte-identical copy of an earlier one."""
    seen: set[str] = set()
    for mined in packages:
        for file in mined.files:
            if file.digest not in seen:
                seen.add(file.digest)
                yield from file.functions


def fits(function: MinedFunction) -> bool:
    """Return True if the length of the body is within the limits."""
    return SHORTEST <= function.body_length <= LONGEST


def first_of_each(
    functions: Iterable[MinedFunction],
    *,
    key: Callable[[MinedFunction], Hashable],
    most: int = 1,
) -> Functions:
    """Return the first `most` functions of each key, in order."""
    seen: Counter[Hashable] = Counter()
    first: list[MinedFunction] = []
    for function in functions:
        value = key(function)
        seen[value] += 1
        if seen[value] <= most:
            first.append(function)
    return first


def shape(tokens: Iterable[str]) -> str:
    """Return the tokens with each name replaced by a number; words in strings count as names."""
    names: dict[str, str] = {}
    return " ".join(
        names.setdefault(token, f"${len(names)}") if _is_name(token) else token for token in tokens
    )


def _is_name(token: str) -> bool:
    return is_word(token) and not token[0].isdigit() and not keyword.iskeyword(token)


def without_near_duplicates(functions: Functions) -> Functions:
    """Return the functions whose body is not a near-duplicate of an earlier one kept."""
    dropped = near_duplicates([function.tokens for function in functions], threshold=NEAR)
    return [function for row, function in enumerate(functions) if row not in dropped]


def capped(functions: Functions, *, most: int = MOST_OF_A_PACKAGE) -> Functions:
    """Return at most `most` functions per package, chosen by hash, in their original order."""
    packages: dict[str, list[int]] = defaultdict(list)
    for row, function in enumerate(functions):
        packages[function.package].append(row)
    chosen = {
        row
        for rows in packages.values()
        for row in sorted(rows, key=lambda row: (functions[row].example.identity, row))[:most]
    }
    return [function for row, function in enumerate(functions) if row in chosen]


def group_packages(packages: Mapping[str, Functions]) -> dict[str, str]:
    """Return the group of each package; packages that share code or a name prefix form a group.

    A group is named after one of its packages.
    """
    leaders = {name: name for name in packages}

    def leader(name: str) -> str:
        while leaders[name] != name:
            name = leaders[name]
        return name

    def join(one: str, other: str) -> None:
        first, second = sorted((leader(one), leader(other)))
        leaders[second] = first

    prefixes: dict[str, str] = {}
    for name in sorted(packages):
        join(name, prefixes.setdefault(normalise(name).partition("-")[0], name))
    for one, other in _sharing_packages(packages):
        join(one, other)
    return {name: leader(name) for name in sorted(packages)}


def _sharing_packages(packages: Mapping[str, Functions]) -> Iterator[tuple[str, str]]:
    """Yield pairs of packages that have more than `SHARED` of their bodies in common."""
    bodies = {name: {f.example.y for f in packages[name]} for name in sorted(packages)}
    owners: dict[str, list[str]] = defaultdict(list)
    for name, package_bodies in bodies.items():
        for body in package_bodies:
            owners[body].append(name)
    shared: Counter[tuple[str, str]] = Counter()
    for names in owners.values():
        shared.update(combinations(names, 2))
    for (one, other), count in sorted(shared.items()):
        if count > SHARED * min(len(bodies[one]), len(bodies[other])):
            yield one, other


def assign_sides(
    groups: Mapping[str, str], sizes: Mapping[str, int], *, seed: int, named: Sides = NONE_NAMED
) -> dict[str, str]:
    """Return the split of each package; groups stay together and are assigned in random order.

    Groups with a named split are assigned first. The others go to test or dev while they fit into
    the remaining share, and to train otherwise.
    """
    members: dict[str, list[str]] = defaultdict(list)
    for package in sorted(groups):
        members[groups[package]].append(package)
    total = sum(sizes.get(package, 0) for package in groups)
    room = {side: SHARES[side] * total for side in ("test", "dev")}
    fixed = {name: side for name in members if (side := _named_side(members[name], named))}
    names = sorted(members, key=lambda name: (name not in fixed, _rank(name, seed)))
    sides: dict[str, str] = {}
    for name in names:
        size = sum(sizes.get(package, 0) for package in members[name])
        fitting = (side for side in room if 0 < size <= room[side])
        side = fixed.get(name) or next(fitting, "train")
        if side in room:
            room[side] -= size
        sides.update(dict.fromkeys(members[name], side))
    return dict(sorted(sides.items()))


def _named_side(members: Iterable[str], named: Sides) -> str | None:
    """Return the split named for the packages of a group, or None; two splits are an error."""
    sides: dict[str, str] = {}  # each split with the first package that names it
    for package in members:
        if package in named:
            sides.setdefault(named[package], package)
    if len(sides) > 1:
        (side, one), (other_side, other), *_ = sides.items()
        raise PairsError(
            f"{one} is assigned to {side} and {other} to {other_side}, but they are in one group "
            "of packages that share code or a prefix; assign both to one split, or leave one out"
        )
    return next(iter(sides), None)


def _rank(name: str, seed: int) -> bytes:
    """Return a sort key that depends only on the name and the seed."""
    return hashlib.blake2b(f"{seed} {name}".encode(), digest_size=8).digest()
