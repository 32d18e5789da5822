"""The completion engine on a buffer that is being typed, with a model that learned."""

from collections.abc import Sequence

import pytest

from redraft import RetrieveAndEdit
from redraft.completion.engine import MAX_SESSIONS, CompletionEngine
from redraft.editing.base import VerbatimEditor
from redraft.editing.session import CompletionSession
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.types import Example, Input, Prototype
from tests.baskets import NOUNS, basket_model, method


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> CompletionEngine:
    return CompletionEngine(basket_model(tmp_path_factory.getbasetemp()))


class CompletingEditor(VerbatimEditor):
    """An editor that the engine asks for completions."""

    completes = True


BUFFER = "class Shelf:\n" + method("zorblax")


@pytest.mark.parametrize(
    "typed", ["if", "            return", "        return self.put(", "        return self.p", "No"]
)
def test_the_first_suggestion_is_the_rest_of_the_line(engine: CompletionEngine, typed: str) -> None:
    offset = BUFFER.index(typed) + len(typed)
    rest = BUFFER[offset : BUFFER.index("\n", offset)]
    best = engine.complete(BUFFER[:offset], offset)[0]
    assert best.text == rest
    assert (best.probability or 0) > 0.3
    assert best.prototype is not None
    assert best.prototype.example.meta["file"] == "basket.py"


def test_a_new_line_is_indented_as_its_place_demands(engine: CompletionEngine) -> None:
    offset = BUFFER.index("            return None")
    for indentation in ("        ", "            "):
        text = BUFFER[:offset] + indentation
        best = engine.complete(text, len(text))[0]
        assert indentation + best.text == "            return None"
    header = 'def add_zorblax(self, zorblax):\n    """Add the zorblax."""\n'
    for indentation in ("  ", "    "):
        text = header + indentation
        best = engine.complete(text, len(text))[0]
        assert indentation + best.text == "    if zorblax in self.all:"


def test_what_follows_the_cursor_is_not_suggested_again(engine: CompletionEngine) -> None:
    offset = BUFFER.index("self.put(") + len("self.put(")
    assert engine.complete(BUFFER[:offset], offset)[0].text == "zorblax)"
    assert engine.complete(BUFFER[:offset] + ")\n", offset)[0].text == "zorblax"
    whole = [suggestion.text for suggestion in engine.complete(BUFFER, offset)]
    assert "zorblax)" not in whole
    line = BUFFER.index("if zorblax")
    again = BUFFER[:line] + "\n        " + BUFFER[line:]
    assert "if zorblax in self.all:" not in [each.text for each in engine.complete(again, line)]


@pytest.mark.parametrize("prefix", ["", "        x = 1\n"])
def test_nothing_is_suggested_that_no_statement_begins_with(
    engine: CompletionEngine, prefix: str
) -> None:
    text = BUFFER[: BUFFER.index("if")] + prefix.lstrip()
    for suggestion in engine.complete(text, len(text), 20):
        assert suggestion.text.lstrip()[0] not in "=)]},.:;+%/<>|&^!"


@pytest.mark.parametrize(
    "text", ["", "\n", "import os\n", "def f(", 'def f():\n    """Doc', "x = (", "class A:\n    "]
)
def test_there_is_an_answer_wherever_the_cursor_stands(engine: CompletionEngine, text: str) -> None:
    for suggestion in engine.complete(text, len(text), k=3):
        assert suggestion.text.strip()
        assert 0 <= (suggestion.probability or 0) <= 1


@pytest.mark.parametrize("text", ["def f(", "def f(a, ", 'def f():\n    """Doc', "class A(B"])
def test_within_a_header_or_a_docstring_nothing_is_suggested(
    engine: CompletionEngine, text: str
) -> None:
    assert engine.complete(text, len(text)) == []


def test_no_two_suggestions_are_alike_and_there_are_at_most_k(engine: CompletionEngine) -> None:
    offset = BUFFER.index("if")
    for k in (1, 3, 8):
        texts = [each.text for each in engine.complete(BUFFER, offset, k)]
        assert len(texts) == len(set(texts)) <= k


def test_prototypes_are_retrieved_once_for_a_function(engine: CompletionEngine) -> None:
    class Counting(CompletingEditor):
        begun = 0

        def start_session(self, x: Input, prototypes: Sequence[Prototype]) -> CompletionSession:
            Counting.begun += 1
            return super().start_session(x, prototypes)

    counting = CompletionEngine(RetrieveAndEdit(engine.model.retriever, Counting()))
    for offset in range(BUFFER.index("if"), len(BUFFER) - 1, 3):
        counting.complete(BUFFER, offset, 1)
    assert Counting.begun == 1
    for noun in NOUNS[: MAX_SESSIONS + 1]:
        counting.complete("class A:\n" + method(noun), len(method(noun)), 1)
    assert Counting.begun == MAX_SESSIONS + 2
    counting.complete(BUFFER, BUFFER.index("if"), 1)
    assert Counting.begun == MAX_SESSIONS + 3  # the first session was evicted


def test_a_function_does_not_borrow_from_itself_as_it_was_indexed(
    engine: CompletionEngine,
) -> None:
    text = "class Basket:\n" + method("olive")
    best = engine.complete(text, text.index("if"))[0]
    assert best.prototype is not None
    assert best.prototype.example.x["name"] != "add_olive"


def test_the_first_suggestion_goes_on_until_its_brackets_are_closed() -> None:
    lines = "total = add(\n    1,\n    2,\n)\nreturn total"
    example = Example({"docstring": "Add.", "name": "f", "arguments": ""}, lines)
    engine = CompletionEngine(RetrieveAndEdit(Bm25Retriever.build([example]), CompletingEditor()))
    text = 'def g():\n    """Add."""\n    total ='
    assert engine.complete(text, len(text))[0].text == " add(\n        1,\n        2,\n    )"


def test_a_suggestion_as_json(engine: CompletionEngine) -> None:
    row = engine.complete(BUFFER, BUFFER.index("if"))[0].to_json()
    assert set(row) == {"text", "token", "probability", "prototype"}
    assert row["prototype"]["meta"]["file"] == "basket.py"
