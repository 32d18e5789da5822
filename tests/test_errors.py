"""Messages are one printable line of bounded length, whatever they quote."""

from hypothesis import given
from hypothesis import strategies as st

from redraft.errors import LONGEST, PairsError, listed, printable

texts = st.text(st.characters(), max_size=60) | st.text(max_size=60).map(lambda t: t * 100)


@given(texts)
def test_a_message_is_one_printable_line(text: str) -> None:
    shown = str(PairsError(text))
    assert len(shown.splitlines()) <= 1
    assert len(shown) <= LONGEST
    assert not any(ord(each) < 32 or 127 <= ord(each) < 160 for each in shown)
    shown.encode()
    assert printable(shown) == shown


@given(st.text("abcäöü 漢字🙂'\\\\\"", max_size=LONGEST))
def test_printable_text_is_left_as_it_is(text: str) -> None:
    assert printable(text) == text


def test_controls_are_escaped() -> None:
    assert printable("\x1b]0;t\x07\r\n\x9b\u202e\ud800") == r"\x1b]0;t\x07\r\n\x9b\u202e\ud800"


def test_a_long_message_keeps_both_ends() -> None:
    shown = printable("where: " + "z" * 1_000_000 + "; what to do")
    assert len(shown) == LONGEST
    assert shown.startswith("where: zzz")
    assert shown.endswith("zzz; what to do")


def test_a_list_names_the_first_and_counts_the_rest() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed(range(100_000), most=3) == "0, 1, 2, … and 99,997 more"
    assert len(listed(["z" * 10_000] * 9)) < 1_000
