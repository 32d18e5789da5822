"""The n-gram index against a search through all positions."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from redraft.completion.context_tables import END, START, is_among
from redraft.completion.ngram_index import ORDERS, NgramIndex
from redraft.completion.word_classes import NAME
from redraft.types import Example

TEXTS = st.lists(st.text("ab =(\n", max_size=25), min_size=1, max_size=6)


def indexed(texts: list[str]) -> NgramIndex:
    return NgramIndex.build([Example({"name": "f"}, text, {"file": "f.py"}) for text in texts])


def before(index: NgramIndex, position: int, order: int) -> list[int]:
    """The tokens before a position, with START before the beginning of its output."""
    start = position
    while index.tokens[start] != START:
        start -= 1
    tokens: list[int] = index.tokens[start:position].tolist()
    return ([START] * order + tokens)[-order:]


@given(TEXTS, st.data())
def test_matches_are_the_positions_after_the_same_context(
    texts: list[str], data: st.DataObject
) -> None:
    index = indexed(texts)
    source = data.draw(st.sampled_from([row[0] for row in index.encoded.values()]))
    end = data.draw(st.integers(1, len(source) - 1))
    context = source[1:end].tolist()
    matches = index.contexts.matches(context)
    for order, positions in zip(ORDERS, matches, strict=False):
        wanted = ([START] * order + context)[-order:]
        expected = [
            position
            for position in range(len(index.tokens))
            if index.tokens[position] != START and before(index, position, order) == wanted
        ]
        assert positions.tolist() == expected
    assert len(matches) == len(ORDERS)  # the context itself is in the index


@given(st.lists(st.integers(0, 20)), st.sets(st.integers(0, 20)))
def test_positions_are_found_in_a_sorted_array(positions: list[int], sought: set[int]) -> None:
    found = is_among(np.asarray(positions, np.int32), np.asarray(sorted(sought), np.int32))
    assert found.tolist() == [position in sought for position in positions]


@given(TEXTS)
def test_the_names_of_an_example_are_those_of_its_tokens(texts: list[str]) -> None:
    index = indexed(texts)
    for row, text in enumerate(texts):
        tokens = index.encoded[text][0].tolist()
        names = {token for token in tokens if index.classes[token] == NAME}
        assert index.names_of(row) == names


@given(TEXTS, TEXTS)
def test_an_index_with_reused_tokens_is_the_same(old: list[str], new: list[str]) -> None:
    examples = [Example({"name": "f"}, text, {}) for text in new]
    fresh, reused = NgramIndex.build(examples), NgramIndex.build(examples, indexed(old))
    assert [fresh.words[i] for i in fresh.tokens] == [reused.words[i] for i in reused.tokens]
    assert fresh.widths.tolist() == reused.widths.tolist()
    assert fresh.rows.tolist() == reused.rows.tolist()


def test_no_examples_are_indexed_too() -> None:
    index = NgramIndex.build([])
    assert index.contexts.matches([2, 3]) == []
    assert index.rows_of_file == {}


def test_a_path_names_the_indexed_file_that_it_ends_with() -> None:
    names = ["cards.py", "shop/cards.py"]
    index = NgramIndex.build([Example({"name": "f"}, "pass", {"file": name}) for name in names])
    assert index.file_named("/home/ann/shop/cards.py") == "shop/cards.py"
    assert index.file_named("/home/ann/other/cards.py") == "cards.py"
    assert index.file_named("/home/ann/shop/decks.py") is None
    assert index.tokens[-1] == END
