"""The pairs that the demo ships are those that their script makes."""

from experiments.messy.support_pairs import held_out, stored_rows
from redraft.cli.demo import SUPPORT
from redraft.data.pairs import read_pairs


def test_the_shipped_pairs_are_those_of_their_script() -> None:
    assert (SUPPORT / "pairs.jsonl").read_bytes() == b"".join(
        example.to_line() for example in stored_rows(0)
    )


def test_the_shipped_questions_are_those_that_have_an_answer() -> None:
    made = [example for example in held_out(0) if example.meta["kind"] != "unanswerable"]
    shipped = read_pairs(SUPPORT / "questions.jsonl")
    assert [(example.x, example.y) for example in shipped] == [(e.x, e.y) for e in made]
