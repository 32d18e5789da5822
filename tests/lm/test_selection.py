"""Few-shot selection: nearest last, no duplicates, a set that covers the input, within a budget."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import redraft
from redraft import Example, FewShotSelector
from redraft.errors import ConfigError, PairsError
from redraft.lm.selection import covering, ngrams
from tests.shop import shop

PAIRS = [
    ("list the users of Rome", "A"),
    ("list the users of Oslo", "B"),
    ("list the users of Lima", "C"),
    ("delete old orders", "D"),
    ("count tickets", "E"),
]


def texts(examples: list[Example]) -> list[str]:
    return [example.x["text"] for example in examples]


def test_the_nearest_comes_last() -> None:
    chosen = redraft.select(PAIRS, "list the users of Rome today", k=2, method="nearest")
    assert texts(chosen) == ["list the users of Oslo", "list the users of Rome"]


def test_a_set_covers_the_input() -> None:
    x = "list the users of Rome and delete old orders"
    nearest = redraft.select(PAIRS, x, k=3, method="nearest")
    cover = redraft.select(PAIRS, x, k=2)
    assert "delete old orders" in texts(cover)
    assert "list the users of Rome" in texts(cover)
    assert "list the users of Oslo" in texts(nearest)


def test_inputs_are_different() -> None:
    pairs = [*PAIRS, ("List the  users of Rome?", "F"), ("list the users of Rome", "A")]
    chosen = redraft.select(pairs, "list the users of Rome", k=5)
    assert len({text.lower().replace("  ", " ").strip("?") for text in texts(chosen)}) == 5


def test_the_budget_counts_tokens_and_skips_what_does_not_fit() -> None:
    pairs = [("list all users", "long " * 50), ("list users", "short")]
    chosen = redraft.select(pairs, "list all users", k=2, max_tokens=20)
    assert texts(chosen) == ["list users"]
    assert redraft.select(pairs, "list all users", k=2, max_tokens=20, count=lambda _: 99) == []


def test_everything_is_selected_if_k_allows_it() -> None:
    assert len(redraft.select(PAIRS, "unrelated question", k=10)) == len(PAIRS)
    assert redraft.select(PAIRS, "list", k=0) == []


@given(st.text(max_size=30), st.integers(0, 8), st.sampled_from(["cover", "nearest"]))
def test_any_input_gets_different_examples(x: str, k: int, method: str) -> None:
    selector = FewShotSelector(PAIRS, method=method)  # type: ignore[arg-type]
    chosen = selector.select(x, k)
    assert len(chosen) == min(k, len(PAIRS))
    assert len(set(texts(chosen))) == len(chosen)
    assert chosen == selector.select(x, k)


def test_examples_with_several_fields_are_selected_as_well() -> None:
    pairs = [Example({"name": "sum", "doc": "adds numbers"}, "A"), Example({"name": "b"}, "B")]
    assert redraft.select(pairs, {"name": "sum", "doc": "adds"}, k=1) == pairs[:1]


def test_a_cover_of_retrieved_items_keeps_their_order() -> None:
    examples = shop()
    inputs = [example.x for example in examples]
    rows = covering({"text": "total revenue of Rome and Oslo"}, range(len(examples)), inputs, 4)
    assert len(rows) == 4
    assert rows == sorted(rows)


def test_ngrams_have_one_to_four_words() -> None:
    assert ngrams(["a", "b", "c", "d", "e"])[-2:] == ["a b c d", "b c d e"]
    assert len(ngrams(["a", "b", "c", "d", "e"])) == 5 + 4 + 3 + 2


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(PairsError, match="no pairs to select from; give at least one"):
        redraft.select([], "x")
    with pytest.raises(ConfigError, match="method is 'best'; choose one of: cover, nearest"):
        FewShotSelector(PAIRS, method="best")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="k is -1; expected 0 or more"):
        redraft.select(PAIRS, "x", k=-1)
