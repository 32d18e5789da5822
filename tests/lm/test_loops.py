"""Loops of a language model: found early, and not where outputs repeat themselves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.lm.loops import INTERVAL, LEAST, LONGEST_UNIT, REPEATS, LoopCheck, has_loop
from redraft.lm.stream import LmPiece

SELECT = 'SELECT name FROM author AS a , paper AS p WHERE a.id = p.author AND a.name = "Lee" ;'


@given(st.text(max_size=50), st.text("abc", min_size=1, max_size=LONGEST_UNIT))
def test_a_unit_that_repeats_often_enough_is_a_loop(start: str, unit: str) -> None:
    assert has_loop(start + unit * max(REPEATS, -(-LEAST // len(unit))))


def test_a_loop_that_counts_is_one() -> None:
    assert has_loop("FROM " + ", ".join(f"field AS field{i}" for i in range(8, 20)))


@pytest.mark.parametrize(
    "text", ["", "a" * (LEAST - 1), SELECT, SELECT * (REPEATS - 1), "\N{GRINNING FACE}", "\ud800"]
)
def test_other_texts_have_none(text: str) -> None:
    assert not has_loop(text)


def events(text: str) -> list[LmPiece]:
    return [LmPiece(character, None) for character in text]


def test_a_generation_ends_soon_after_it_began_to_loop() -> None:
    looping = events(SELECT[:-1] + "AND a.id = p.author " * 50)
    check = LoopCheck([SELECT])
    ended = next(i for i in range(len(looping)) if check(looping[:i]))
    assert ended <= len(SELECT) + LEAST + 20 + INTERVAL
    assert check.found


def test_where_outputs_loop_themselves_nothing_is_ended() -> None:
    check = LoopCheck([SELECT, "ab" * LEAST])
    assert not any(check(events("ab" * i)) for i in range(200))
    assert not check.found
