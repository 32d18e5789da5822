"""Parts of a set: nothing lost, nothing torn, the same every time."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.data.split import similar_inputs, split
from redraft.errors import PairsError
from redraft.types import Example

SHARES: list[dict[str, float]] = [
    {"train": 0.8, "dev": 0.1, "test": 0.1},
    {"train": 0.5, "test": 0.5},
    {"all": 1.0},
    {"train": 1, "test": 0},
    dict.fromkeys("abcdefghij", 0.1),
]
shares_of_parts = st.sampled_from(SHARES)
seeds = st.integers(0, 1000)


def numbered(groups: list[int]) -> list[Example]:
    return [
        Example({"text": f"input {row}"}, f"output {row}", {"row": row, "group": group})
        for row, group in enumerate(groups)
    ]


examples_of_groups = st.lists(st.integers(0, 8), max_size=60).map(numbered)
groupings = st.sampled_from([None, "group"])


@given(examples_of_groups, shares_of_parts, seeds, groupings)
def test_every_example_is_in_exactly_one_part(
    examples: list[Example], shares: dict[str, float], seed: int, by: str | None
) -> None:
    parts = split(examples, shares, seed=seed, by=by)
    assert list(parts) == list(shares)
    assert sorted(e.meta["row"] for part in parts.values() for e in part) == [*range(len(examples))]


@given(examples_of_groups, shares_of_parts, seeds, groupings)
def test_a_part_keeps_the_order_of_the_file(
    examples: list[Example], shares: dict[str, float], seed: int, by: str | None
) -> None:
    for part in split(examples, shares, seed=seed, by=by).values():
        rows = [example.meta["row"] for example in part]
        assert rows == sorted(rows)


@given(examples_of_groups, shares_of_parts, seeds, groupings)
def test_the_same_seed_gives_the_same_parts(
    examples: list[Example], shares: dict[str, float], seed: int, by: str | None
) -> None:
    first = split(examples, shares, seed=seed, by=by)
    assert first == split(list(examples), dict(shares), seed=seed, by=by)


def test_another_seed_gives_other_parts() -> None:
    examples = numbered([0] * 50)
    assert split(examples, SHARES[0], seed=1) != split(examples, SHARES[0], seed=2)


@given(examples_of_groups, shares_of_parts, seeds)
def test_no_group_is_torn(examples: list[Example], shares: dict[str, float], seed: int) -> None:
    parts = split(examples, shares, seed=seed, by="group")
    homes = {(name, example.meta["group"]) for name, part in parts.items() for example in part}
    assert len(homes) == len({group for _, group in homes})


@given(examples_of_groups, shares_of_parts, seeds, groupings)
def test_shares_are_met_within_one_largest_group(
    examples: list[Example], shares: dict[str, float], seed: int, by: str | None
) -> None:
    sizes = Counter(example.meta["group" if by else "row"] for example in examples)
    largest = max(sizes.values(), default=0)
    for name, part in split(examples, shares, seed=seed, by=by).items():
        assert abs(len(part) - shares[name] * len(examples)) <= largest


def test_a_part_without_a_share_stays_empty() -> None:
    assert split(numbered([0] * 9), {"train": 1, "test": 0}, seed=0)["test"] == []


@pytest.mark.parametrize(
    "shares", [{}, {"a": 0.5}, {"a": 1.5, "b": -0.5}, {"a": 0.6, "b": 0.6}, {"a": float("nan")}]
)
def test_shares_that_make_no_whole_are_an_error(shares: dict[str, float]) -> None:
    with pytest.raises(PairsError) as caught:
        split(numbered([0]), shares, seed=0)
    expected = f"shares of a split must be positive and sum to 1, got {shares}"
    assert str(caught.value) == expected


def test_an_example_without_the_key_is_named() -> None:
    examples = [*numbered([0, 1]), Example({"text": "x"}, "y")]
    with pytest.raises(PairsError) as caught:
        split(examples, {"all": 1}, seed=0, by="group")
    assert str(caught.value) == "pair 3 has no meta key 'group' to split by (it has: none)"
    with pytest.raises(PairsError) as caught:
        split(examples, {"all": 1}, seed=0, by="packge")
    assert str(caught.value) == "pair 1 has no meta key 'packge' to split by (it has: row, group)"


def similar(*inputs: str) -> list[Example]:
    return [Example({"text": text}, f"output {row}") for row, text in enumerate(inputs)]


def test_equal_and_nearly_equal_inputs_are_one_group() -> None:
    long = (
        "please show every order of the customer that was sent before the first of {} and not paid"
    )
    examples = similar("Sum a list.", "sum  a list", "sum a dict", long.format("May"), *"bcdefghi")
    examples += similar(long.format("May") + " yet", "SUM A LIST")
    groups = {tuple(rows) for rows in similar_inputs(examples).values()}
    assert {rows for rows in groups if len(rows) > 1} == {(0, 1, 13), (3, 12)}
    assert sorted(row for rows in groups for row in rows) == [*range(len(examples))]


def test_a_template_that_most_inputs_share_is_not_one_group() -> None:
    long = " ".join(f"word{n}" for n in range(40))
    examples = similar(*(f"{long} {n % 10}" for n in range(20)))
    groups = similar_inputs(examples)
    assert sorted(map(list, groups.values())) == [[n, n + 10] for n in range(10)]


def test_groups_stay_together() -> None:
    examples = similar(*(f"input {n % 5}" for n in range(20)))
    parts = split(examples, {"a": 0.5, "b": 0.5}, seed=1, groups=similar_inputs(examples))
    texts = [{example.x["text"] for example in part} for part in parts.values()]
    assert not texts[0] & texts[1]
    assert all(texts)
