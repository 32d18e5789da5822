"""Prototypes of the example's own project, of other projects, and none: who gets which."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redraft.retrieval.base import Retriever
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.retrieval.bow import BowRetriever
from redraft.training import prototype_sampling as prototypes
from redraft.training.prototype_sampling import (
    Find,
    MixedPrototypes,
    NoPrototypes,
    TopPrototypes,
    across_projects,
    in_project,
)
from redraft.types import Example

WORDS = ("draw", "a", "card", "deal", "damage")
KEY = "package"

Builder = Callable[[Retriever, Sequence[Example], str], Find]
both = pytest.mark.parametrize("find_in", [in_project, across_projects])

corpora = st.lists(
    st.builds(
        lambda x, y, project: Example(
            {"text": " ".join(x)}, y, {KEY: project} if project else {"other": "1"}
        ),
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=3),
        st.sampled_from(["y1", "y2", "y3", "y4"]),
        st.sampled_from(["p", "q", "r", None]),
    ),
    min_size=1,
    max_size=20,
)


def project(example: Example) -> object:
    return example.meta.get(KEY)


def belongs(find_in: Builder, example: Example, other: Example) -> bool:
    return (project(example) == project(other)) == (find_in is in_project)


@both
@settings(max_examples=40, deadline=None)
@given(examples=corpora, k=st.integers(1, 4))
def test_all_outputs_of_the_right_projects_are_found_and_never_the_examples_own(
    find_in: Builder, examples: list[Example], k: int
) -> None:
    find = find_in(BowRetriever.build(examples), examples, KEY)
    rows = range(len(examples))
    for example, found in zip(examples, find(rows, k), strict=True):
        right = {each.y for each in examples if belongs(find_in, example, each)} - {example.y}
        assert len(found) == min(k, len(right))
        assert {each.example.y for each in found} <= right
        assert all(belongs(find_in, example, each.example) for each in found)
        assert [each.distance for each in found] == sorted(each.distance for each in found)


def corpus() -> list[Example]:
    """Ten methods in each of four projects."""
    return [
        Example({"text": f"{WORDS[at % 5]} {WORDS[at % 3]} x{at}"}, f"y{at}", {KEY: f"p{at % 4}"})
        for at in range(40)
    ]


def test_in_project_search_equals_an_index_of_only_that_project() -> None:
    examples = corpus()
    find = in_project(Bm25Retriever.build(examples), examples, KEY)
    rows = [5, 2, 9, 6]
    for row, found in zip(rows, find(rows, 3), strict=True):
        own = [each for each in examples if project(each) == project(examples[row])]
        alone = Bm25Retriever.build(own).retrieve([examples[row].x], 3, exclude=[examples[row]])
        assert [each.example for each in found] == [each.example for each in alone[0]]


@both
def test_batched_search_equals_single_searches(find_in: Builder) -> None:
    examples = corpus()
    find = find_in(BowRetriever.build(examples), examples, KEY)
    rows = [7, 0, 39, 7, 1]
    assert find(rows, 2) == [find([row], 2)[0] for row in rows]


def test_an_unknown_project_has_no_prototypes() -> None:
    known = corpus()
    asked = [Example({"text": "draw a card"}, "y", {KEY: "new"}), known[0]]
    find = in_project(BowRetriever.build(known), asked, KEY)
    found = find([0, 1], 2)
    assert [len(each) for each in found] == [0, 2]


def test_cross_project_search_uses_a_sample_of_many_examples(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prototypes, "MOST_ACROSS", 12)
    examples = corpus()
    find = across_projects(BowRetriever.build(examples), examples, KEY)
    found = find(range(40), 40)
    assert len({each.example.y for row in found for each in row}) == 12
    for example, row in zip(examples, found, strict=True):
        assert all(project(each.example) != project(example) for each in row)


def mixed(examples: Sequence[Example]) -> MixedPrototypes:
    retriever = BowRetriever.build(examples)
    own = TopPrototypes(in_project(retriever, examples, KEY), top=2)
    others = TopPrototypes(across_projects(retriever, examples, KEY), top=2)
    return MixedPrototypes([(0.5, own), (0.3, others), (0.2, NoPrototypes())])


def test_the_shares_of_a_mixture_hold() -> None:
    examples = corpus()
    source, epochs = mixed(examples), 50
    counts = {"own": 0, "other": 0, "none": 0}
    for seed in range(epochs):
        for example, found in zip(examples, source.draw(range(40), seed=seed), strict=True):
            is_own = found and project(found[0]) == project(example)
            counts["own" if is_own else "other" if found else "none"] += 1
    total = epochs * len(examples)
    for count, share in zip(counts.values(), (0.5, 0.3, 0.2), strict=True):
        # four deviations
        assert count / total == pytest.approx(share, abs=4 * (share * (1 - share) / total) ** 0.5)


def test_the_same_seed_draws_the_same_and_another_one_something_else() -> None:
    examples = corpus()
    rows = range(len(examples))
    source = mixed(examples)
    drawn = [source.draw(rows, seed=seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] == mixed(examples).draw(rows, seed=1)
    assert drawn[0] != drawn[2]


def test_an_example_changes_its_source_from_epoch_to_epoch() -> None:
    source = mixed(corpus())
    assert {len(source.draw([0], seed=seed)[0]) for seed in range(30)} == {0, 1}


def test_no_prototypes_are_none_for_each() -> None:
    assert NoPrototypes().draw([4, 2], seed=0) == [[], []]
    assert NoPrototypes().draw([], seed=0) == []
