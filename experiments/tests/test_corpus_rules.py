"""Each filter drops what it says, packages stay whole, and no order of arrival matters."""

import random
from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.corpus.mined_files import MinedFile, MinedFunction, MinedPackage, content_tokens
from experiments.corpus.rules import (
    SHARES,
    assign_sides,
    build,
    capped,
    first_of_each,
    fits,
    group_packages,
    select,
    shape,
    without_near_duplicates,
    without_repeated_files,
)
from redraft.errors import PairsError
from redraft.types import Example

names = st.text("abc-.", min_size=1, max_size=6)
sizes = st.dictionaries(names, st.integers(0, 200), max_size=20)


def function(body: str, *, package: str = "p", name: str = "f", line: int = 1) -> MinedFunction:
    x = {"docstring": "Do it.", "name": name, "arguments": ""}
    meta = {"file": f"{package}.py", "line": line, "package": package}
    return MinedFunction(Example(x, body, meta), len(content_tokens(body)), 3)


def sentence(number: int, *, length: int = 30) -> str:
    """A body like no other, whatever its names: it has none."""
    return " ".join(str(random.Random(f"{number} {at}").randrange(10**6)) for at in range(length))


def package(name: str, *files: list[MinedFunction]) -> MinedPackage:
    found = tuple(MinedFile(str([f.example.y for f in file]), tuple(file)) for file in files)
    return MinedPackage(name, found, sum(map(len, files)), 0, ())


def bodies(functions: object) -> list[str]:
    assert isinstance(functions, list)
    return [function.example.y for function in functions]


def test_a_file_counts_once_whichever_package_has_it() -> None:
    one = package("a", [function("x = 1")], [function("y = 2")])
    other = package("b", [function("y = 2", package="b")], [function("z = 3", package="b")])
    found = list(without_repeated_files([one, other]))
    assert [(f.package, f.example.y) for f in found] == [
        ("p", "x = 1"),
        ("p", "y = 2"),
        ("b", "z = 3"),
    ]


@pytest.mark.parametrize(("length", "expected"), [(4, False), (5, True), (150, True), (151, False)])
def test_bodies_have_five_to_a_hundred_and_fifty_tokens(length: int, expected: bool) -> None:
    assert fits(function(sentence(0, length=length))) == expected


def test_the_first_of_each_key_are_kept() -> None:
    functions = [function(body) for body in "abacaba"]
    assert bodies(first_of_each(functions, key=lambda f: f.example.y)) == ["a", "b", "c"]
    twice = first_of_each(functions, key=lambda f: f.example.y, most=2)
    assert bodies(twice) == ["a", "b", "a", "c", "b"]


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("x = f(x)", "y = g(y)", True),
        ("x = f(x)", "y = g(x)", False),
        ("x = f(x)", "x = f(1)", False),
        ("return x", "yield x", False),
        ("x = 1", "x = 2", False),
        ("return None", "return True", False),
        ("x = 'one'", "x = 'two'", True),
        ("x.a", "x + a", False),
    ],
)
def test_a_shape_forgets_names_alone(one: str, other: str, is_same: bool) -> None:
    assert (shape(content_tokens(one)) == shape(content_tokens(other))) == is_same


def test_bodies_that_are_nearly_the_same_are_dropped() -> None:
    original = sentence(1)
    near = original.rsplit(" ", 1)[0] + " last"
    functions = [function(body) for body in (original, sentence(2), near)]
    assert bodies(without_near_duplicates(functions)) == [original, sentence(2)]


@given(counts=st.dictionaries(names, st.integers(0, 12), max_size=6), most=st.integers(1, 10))
def test_the_cap_keeps_small_packages_whole_and_the_order(
    counts: dict[str, int], most: int
) -> None:
    functions = [
        function(f"{name} {line}", package=name, line=line)
        for name, count in counts.items()
        for line in range(count)
    ]
    kept = capped(functions, most=most)
    assert Counter(f.package for f in kept) == Counter(
        {name: min(count, most) for name, count in counts.items() if count}
    )
    rows = [functions.index(f) for f in kept]
    assert rows == sorted(rows)


def test_the_cap_does_not_prefer_the_first_functions() -> None:
    functions = [function(f"x = {line}", line=line) for line in range(100)]
    lines = [f.example.meta["line"] for f in capped(functions, most=20)]
    assert len(lines) == 20
    assert max(lines) > 50
    assert capped(functions[::-1], most=20) == capped(functions, most=20)[::-1]


def test_a_common_prefix_makes_a_group() -> None:
    found = group_packages({name: [] for name in ("azure-core", "azure.storage", "azurite", "b")})
    assert found == {
        "azure-core": "azure-core",
        "azure.storage": "azure-core",
        "azurite": "azurite",
        "b": "b",
    }


@pytest.mark.parametrize(("shared", "is_one"), [(1, False), (5, False), (6, True)])
def test_packages_that_share_bodies_are_a_group(shared: int, is_one: bool) -> None:
    large = [function(f"x = {row}") for row in range(300)]
    small = [function(f"x = {row if row < shared else -row}") for row in range(100)]
    found = group_packages({"large": large, "small": small})
    assert (found["large"] == found["small"]) == is_one


@given(
    packages=st.dictionaries(
        names, st.lists(st.sampled_from([f"x = {n}" for n in range(40)]), max_size=5), max_size=8
    )
)
def test_groups_are_closed_and_named_by_their_first_member(packages: dict[str, list[str]]) -> None:
    found = group_packages({n: [function(b) for b in own] for n, own in packages.items()})
    members = defaultdict(list)
    for name, group in found.items():
        members[group].append(name)
    assert all(group == min(own) for group, own in members.items())
    for one, own in packages.items():
        for other, others in packages.items():
            if set(own) & set(others):  # one of at most five is more than a twentieth
                assert found[one] == found[other]
    backwards = dict(reversed(list(packages.items())))
    assert group_packages({n: [function(b) for b in o] for n, o in backwards.items()}) == found


@given(sizes=sizes, seed=st.integers(0, 5))
def test_groups_stay_whole_and_test_and_dev_within_their_shares(
    sizes: dict[str, int], seed: int
) -> None:
    groups = {name: name[0] for name in sizes}
    sides = assign_sides(groups, sizes, seed=seed)
    assert set(sides) == set(sizes)
    for one in sizes:
        for other in sizes:
            if groups[one] == groups[other]:
                assert sides[one] == sides[other]
    total = sum(sizes.values())
    for side in ("dev", "test"):
        assert sum(sizes[n] for n in sizes if sides[n] == side) <= SHARES[side] * total + 1e-9
    assert assign_sides(dict(reversed(groups.items())), sizes, seed=seed) == sides


def test_many_small_groups_fill_the_shares() -> None:
    sizes = {f"p{number}": 10 + number % 7 for number in range(400)}
    groups = {name: name for name in sizes}
    total = sum(sizes.values())
    assigned = [assign_sides(groups, sizes, seed=seed) for seed in range(3)]
    assert len({tuple(sides.values()) for sides in assigned}) == 3
    for sides in assigned:
        for side, share in SHARES.items():
            found = sum(sizes[name] for name in sizes if sides[name] == side)
            assert found / total == pytest.approx(share, abs=0.01)


def test_the_split_without_named_sides_never_changes() -> None:
    """Corpora that are built again must come out as they were: these sides are recorded."""
    sizes = {f"p{number}": 10 + number % 7 for number in range(40)}
    recorded = {
        0: {"p10": "dev", "p32": "test", "p33": "test", "p5": "dev"},
        1: {"p10": "dev", "p11": "dev", "p6": "test", "p7": "test"},
    }
    for seed, expected in recorded.items():
        sides = assign_sides({name: name for name in sizes}, sizes, seed=seed)
        assert {name: side for name, side in sides.items() if side != "train"} == expected


@given(sizes=sizes, seed=st.integers(0, 5), data=st.data())
def test_groups_go_to_the_side_that_a_member_names(
    sizes: dict[str, int], seed: int, data: st.DataObject
) -> None:
    groups = {name: name[0] for name in sizes}
    chosen = {group: data.draw(st.sampled_from([*SHARES, None])) for group in set(groups.values())}
    named = {
        name: side
        for name, group in groups.items()
        if (side := chosen[group]) and (name == min(n for n in groups if groups[n] == group))
    }
    sides = assign_sides(groups, sizes, seed=seed, named=named)
    assert list(sides) == sorted(sizes)
    for name, group in groups.items():
        assert chosen[group] in (None, sides[name])
        assert sides[name] == sides[min(n for n in groups if groups[n] == group)]
    for side in ("dev", "test"):
        fixed = sum(sizes[n] for n in sizes if chosen[groups[n]] == side)
        found = sum(sizes[n] for n in sizes if sides[n] == side)
        assert found <= max(fixed, SHARES[side] * sum(sizes.values()) + 1e-9)


@given(sizes=sizes, seed=st.integers(0, 5))
def test_naming_the_sides_that_the_seed_gives_changes_nothing(
    sizes: dict[str, int], seed: int
) -> None:
    groups = {name: name[0] for name in sizes}
    sides = assign_sides(groups, sizes, seed=seed)
    assert assign_sides(groups, sizes, seed=seed + 1, named=sides) == sides
    others = {"not mined": "test"}
    assert assign_sides(groups, sizes, seed=seed, named=others) == sides


def test_a_group_that_names_two_sides_is_an_error_with_both_packages() -> None:
    groups = {"a": "a", "b": "a", "c": "a", "d": "a", "e": "e"}
    named = {"b": "dev", "c": "dev", "d": "test", "e": "train"}
    with pytest.raises(PairsError) as caught:
        assign_sides(groups, {}, seed=0, named=named)
    assert str(caught.value) == (
        "b is assigned to dev and d to test, but they are in one group of packages that share code "
        "or a prefix; assign both to one split, or leave one out"
    )


def test_the_two_rules_drop_what_they_say() -> None:
    shapes = [function(f"a{n} = b{n} . {'c' * (n + 1)} ( 'word{n}' )") for n in range(5)]
    near = sentence(1).rsplit(" ", 1)[0] + " last"
    unlike = [function(body) for body in (sentence(1), sentence(2), near)]
    again = [function(sentence(2)), function(sentence(2), name="other")]
    short = [function("x")]
    rules = select([package("a", shapes, unlike, again, short), package("b", short)])
    paper, strict = rules["paper"], rules["strict"]
    assert list(paper.stages.values()) == [12, 12, 11, 10, 9, 9]
    assert list(strict.stages.values()) == [12, 12, 11, 10, 9, 8, 6, 5, 5]
    assert len(paper.functions) == 9
    assert [f.example.y for f in strict.functions] == [
        *(f.example.y for f in shapes[:3]),
        sentence(1),
        sentence(2),
    ]


def packages_of(count: int) -> list[MinedPackage]:
    return [
        package(
            f"p{number}",
            [
                function(sentence(100 * number + row), package=f"p{number}", line=row)
                for row in range(10)
            ],
        )
        for number in range(count)
    ]


@settings(max_examples=10, deadline=None)
@given(order=st.permutations(range(30)))
def test_the_order_of_packages_does_not_matter(order: list[int]) -> None:
    packages = packages_of(30)
    expected = build(packages, seed=0)
    assert build([packages[at] for at in order], seed=0) == expected


def test_named_sides_move_packages_and_keep_the_same_functions() -> None:
    packages = packages_of(10)
    plain = build(packages, seed=0)
    named = {"p3": "dev", "p4": "test", "p5": "test"} | dict.fromkeys(("p0", "p1", "p2"), "train")
    corpus = build(packages, seed=0, named=named)
    assert (corpus.rules, corpus.groups) == (plain.rules, plain.groups)
    assert {name: corpus.sides[name] for name in named} == named
    assert build(packages, seed=0, named={}) == plain


def test_both_rules_put_a_package_on_the_same_side() -> None:
    corpus = build(packages_of(40), seed=0)
    for rule in ("paper", "strict"):
        sides = {side: {f.package for f in corpus.part(rule, side)} for side in SHARES}
        assert {side: len(found) for side, found in sides.items()} == {
            "train": 36,
            "dev": 2,
            "test": 2,
        }
        assert all(corpus.sides[name] == side for side, own in sides.items() for name in own)
