"""Excerpts of other files: their functions are found although the excerpts do not parse."""

import time

from redraft.completion.extra_context import (
    MAX_CHARACTERS,
    MAX_ENGINES,
    Excerpt,
    ExtraContext,
    merged,
    mine_excerpt,
)
from redraft.types import Completion

EXCERPT = '''        return self._old
    # a comment

    @property
    def total(
        self,
        rate,
    ) -> float:
        """Return the total."""
        return self.net * rate

    async def load(self):
        await self.read()

    def cut(self):
        lines = self.lines()
        return [line for line in
'''


def test_functions_are_cut_out_of_an_excerpt_and_parsed_alone() -> None:
    functions = mine_excerpt(Excerpt(EXCERPT, "a.py"))
    assert [(one.x["name"], one.y) for one in functions] == [
        ("total", "return self.net * rate"),
        ("load", "await self.read()"),
        ("cut", "lines = self.lines()"),
    ]
    assert all(one.meta == {"file": "a.py"} for one in functions)


def test_text_without_functions_has_none() -> None:
    for text in ("", "\n", "x = 1\n", "def", "def \n", "# def f():\n#     pass\n", "\ufeff\r\n"):
        assert mine_excerpt(Excerpt(text)) == []


def test_engines_are_cached_and_bounded() -> None:
    extra = ExtraContext()
    first = extra.engine([Excerpt(EXCERPT)])
    assert extra.engine([Excerpt(EXCERPT)]) is first
    for i in range(MAX_ENGINES):
        extra.engine([Excerpt(f"def f{i}():\n    return {i}\n")])
    assert extra.engine([Excerpt(EXCERPT)]) is not first


def test_the_last_excerpts_are_read_up_to_the_limit() -> None:
    excerpts = [Excerpt("def first():\n    return 1\n"), Excerpt("#" * MAX_CHARACTERS)]
    assert not ExtraContext().engine(excerpts).model.retriever.examples
    assert ExtraContext().engine(excerpts[::-1]).model.retriever.examples


def test_code_that_never_parses_costs_no_more_than_a_few_readings() -> None:
    hostile = "".join(f"{' ' * (i % 50)}def f{i}(:\n" for i in range(6000))
    began = time.process_time()
    assert mine_excerpt(Excerpt(hostile)) == []
    assert time.process_time() - began < 5


def test_ranked_lists_are_merged_by_probability_without_repetitions() -> None:
    def suggestions(**texts: float) -> list[Completion]:
        return [Completion(text, text, log_prob, None) for text, log_prob in texts.items()]

    found = merged([suggestions(a=-1.0, b=-3.0), suggestions(b=-2.0, c=-4.0)], 3)
    assert [(one.text, one.log_prob) for one in found] == [("a", -1.0), ("b", -2.0), ("c", -4.0)]
