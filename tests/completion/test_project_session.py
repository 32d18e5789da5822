"""Completion from the code of a project, without a network."""

from pathlib import Path

import pytest

from redraft.completion.engine import CompletionEngine
from redraft.completion.project import Project, empty_model, index_project
from tests.baskets import NOUNS, method

SOURCES = Path(__file__).parents[2] / "src" / "redraft"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> CompletionEngine:
    folder = tmp_path_factory.mktemp("baskets")
    text = "class Basket:\n" + "\n".join(method(noun) for noun in NOUNS)
    (folder / "basket.py").write_text(text)
    model, _ = index_project(empty_model(), Project.read([folder]))
    return CompletionEngine(model)


BUFFER = "class Shelf:\n" + method("zorblax")


@pytest.mark.parametrize("typed", ["", "i", "if", "if zorblax in"])
def test_a_line_is_copied_with_the_names_of_the_function(
    engine: CompletionEngine, typed: str
) -> None:
    start = BUFFER.index("if zorblax")
    best = engine.complete(BUFFER[:start] + typed, start + len(typed))[0]
    whole = typed + best.text
    assert BUFFER[start:].startswith(whole)
    assert whole.startswith("if zorblax in self.all:")
    assert (best.probability or 0) > 0.3


def test_a_source_contains_what_is_suggested(engine: CompletionEngine) -> None:
    cited = 0
    for noun in NOUNS:
        text = "class Shelf:\n" + method(noun)
        for offset in range(text.index('"""\n') + 12, len(text), 5):
            for suggestion in engine.complete(text[:offset], offset):
                if suggestion.prototype is not None:
                    body = suggestion.prototype.example.y.replace("\n", "\n        ")
                    assert suggestion.text.strip() in body
                    cited += 1
    assert cited > 20


def test_without_anything_similar_nothing_is_suggested_with_confidence(
    engine: CompletionEngine,
) -> None:
    text = "def integrate(f, a, b, n):\n    h = (b - a) / n\n    "
    assert not [one for one in engine.complete(text, len(text)) if (one.probability or 0) > 0.4]


def test_an_empty_project_suggests_nothing() -> None:
    text = "def f(a):\n    "
    assert CompletionEngine(empty_model()).complete(text, len(text)) == []


def test_lines_of_a_real_project_are_completed() -> None:
    """In this package, one function after the other as it stands, the rest of the file unread."""
    model, _ = index_project(empty_model(), Project.read([SOURCES]))
    engine = CompletionEngine(model)
    path = SOURCES / "retrieval" / "bm25.py"
    text = path.read_text()
    starts = [i + 9 for i in range(len(text)) if text.startswith("\n        ", i)]
    shown = 0
    for offset in starts:
        for suggestion in engine.complete(text[:offset], offset, 1, file=str(path)):
            assert 0 < (suggestion.probability or 0) <= 1
            assert suggestion.text.strip()
            shown += 1
    assert shown > 10


def test_an_index_after_a_change_reuses_what_it_knows(engine: CompletionEngine) -> None:
    engine.prepare()
    model = engine.model
    again = CompletionEngine(model, engine)
    assert again.index.tokens.tolist() == engine.index.tokens.tolist()
    text = BUFFER[: BUFFER.index("if zorblax")]
    first, second = (one.complete(text, len(text)) for one in (engine, again))
    assert [one.text for one in first] == [one.text for one in second]


def test_tokens_of_any_length_may_stand_before_the_cursor(engine: CompletionEngine) -> None:
    start = BUFFER.index("if zorblax")
    data = f"data = '{'a' * 40_000}\0'\n        "
    text = BUFFER[:start] + data * 2
    assert all(one.text for one in engine.complete(text, len(text)))
