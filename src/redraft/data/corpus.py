"""Mined packages to a corpus: two rules for what is kept, one split by groups of packages.

The paper's rule drops repeated pairs of function and docstring; the strict rule also drops bodies
that are the same, nearly the same, or the same but for names, so that little of test stands in
train. Both cap packages. Pure: knows no archives and no folders.
"""

import hashlib
import keyword
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType

from redraft.data.mined import MinedFunction, MinedPackage
from redraft.data.near_duplicates import near_duplicates
from redraft.data.packages import normalise
from redraft.data.tokenizer import is_word
from redraft.errors import PairsError

SHORTEST, LONGEST = 5, 150
"""Tokens of a body that is kept, white space not counted."""

MOST_OF_A_PACKAGE = 1_000
MOST_OF_A_SHAPE = 3
"""How many bodies may be the same but for their names, in the strict rule."""

NEAR = 0.9
"""From this similarity of tokens on, two bodies are near-duplicates."""

SHARED = 0.05
"""Packages that share more than this part of the smaller one's bodies belong together."""

SHARES = {"train": 0.88, "dev": 0.06, "test": 0.06}

Functions = Sequence[MinedFunction]
Sides = Mapping[str, str]
"""The side of the split that a package is on, by the package's name."""

NONE_NAMED: Sides = MappingProxyType({})


@dataclass(frozen=True)
class Selection:
    """The functions that a rule keeps, and how many were left after each of its filters."""

    functions: Functions
    stages: Mapping[str, int]


@dataclass(frozen=True)
class Corpus:
    """What each rule keeps, and the group and the side of the split that each package is in."""

    rules: Mapping[str, Selection]
    groups: Mapping[str, str]
    sides: Sides

    def part(self, rule: str, side: str) -> Functions:
        """The functions of a rule on one side of the split."""
        return [f for f in self.rules[rule].functions if self.sides[f.package] == side]


def build(packages: Sequence[MinedPackage], *, seed: int, named: Sides = NONE_NAMED) -> Corpus:
    """The corpus of some packages, some perhaps on a named side; their order does not matter."""
    packages = sorted(packages, key=lambda mined: mined.package)
    rules = select(packages)
    groups = group_packages({p.package: [f for f in p.functions if fits(f)] for p in packages})
    sizes = Counter(function.package for function in rules["strict"].functions)
    return Corpus(rules, groups, assign_sides(groups, sizes, seed=seed, named=named))


def select(packages: Sequence[MinedPackage]) -> dict[str, Selection]:
    """What the two rules keep of the packages."""
    found = list(without_repeated_files(packages))
    fitting = [function for function in found if fits(function)]
    pairs = first_of_each(fitting, key=lambda function: function.example.identity)
    shared = {
        "functions with a docstring": sum(mined.seen for mined in packages),
        "documented, not trivial": sum(1 for mined in packages for _ in mined.functions),
        "duplicate files out": len(found),
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
    """The functions of every file whose bytes no earlier file has."""
    seen: set[str] = set()
    for mined in packages:
        for file in mined.files:
            if file.digest not in seen:
                seen.add(file.digest)
                yield from file.functions


def fits(function: MinedFunction) -> bool:
    """Whether the body is neither too short nor too long."""
    return SHORTEST <= function.body_length <= LONGEST


def first_of_each(
    functions: Iterable[MinedFunction],
    *,
    key: Callable[[MinedFunction], Hashable],
    most: int = 1,
) -> Functions:
    """The functions without those that come after `most` others of the same key."""
    seen: Counter[Hashable] = Counter()
    kept = []
    for function in functions:
        value = key(function)
        seen[value] += 1
        if seen[value] <= most:
            kept.append(function)
    return kept


def shape(tokens: Iterable[str]) -> str:
    """The tokens with every name numbered by its first use; words of strings are names too."""
    names: dict[str, str] = {}
    return " ".join(
        names.setdefault(token, f"${len(names)}") if _is_name(token) else token for token in tokens
    )


def _is_name(token: str) -> bool:
    return is_word(token) and not token[0].isdigit() and not keyword.iskeyword(token)


def without_near_duplicates(functions: Functions) -> Functions:
    """The functions without those whose body is nearly that of an earlier one that is kept."""
    dropped = near_duplicates([function.tokens for function in functions], threshold=NEAR)
    return [function for row, function in enumerate(functions) if row not in dropped]


def capped(functions: Functions, *, most: int = MOST_OF_A_PACKAGE) -> Functions:
    """At most so many functions of each package, chosen as if at random, in their old order."""
    packages: dict[str, list[int]] = defaultdict(list)
    for row, function in enumerate(functions):
        packages[function.package].append(row)
    kept = {
        row
        for rows in packages.values()
        for row in sorted(rows, key=lambda row: (functions[row].example.identity, row))[:most]
    }
    return [function for row, function in enumerate(functions) if row in kept]


def group_packages(packages: Mapping[str, Functions]) -> dict[str, str]:
    """The group of each package, named by one of its members: those that share code are one."""
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
    for one, other in _sharing(packages):
        join(one, other)
    return {name: leader(name) for name in sorted(packages)}


def _sharing(packages: Mapping[str, Functions]) -> Iterator[tuple[str, str]]:
    """Pairs of packages that have too many bodies in common."""
    bodies = {name: {f.example.y for f in packages[name]} for name in sorted(packages)}
    owners: dict[str, list[str]] = defaultdict(list)
    for name, own in bodies.items():
        for body in own:
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
    """The side of each package: groups stay whole, and go in random order where they fit.

    A group with a named side goes there, before all others. Of the others test and dev never get
    more than is left of their shares; train gets what fits in neither.
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
    """The one side that the members of a group name, if any does."""
    found: dict[str, str] = {}  # each side with the first member that names it
    for package in members:
        if package in named:
            found.setdefault(named[package], package)
    if len(found) > 1:
        (side, one), (other_side, other), *_ = found.items()
        raise PairsError(
            f"{one} is to be in {side} and {other} in {other_side}, but they are in one group of "
            "packages that share code or a prefix; give both the same side, or leave one out"
        )
    return next(iter(found), None)


def _rank(name: str, seed: int) -> bytes:
    """A place in an order that depends on the name and the seed alone."""
    return hashlib.blake2b(f"{seed} {name}".encode(), digest_size=8).digest()
