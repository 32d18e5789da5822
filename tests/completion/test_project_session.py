"""Completion from the code of a project, without a network."""

import time
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
    assert again.index_of("python").tokens.tolist() == engine.index_of("python").tokens.tolist()
    text = BUFFER[: BUFFER.index("if zorblax")]
    first, second = (one.complete(text, len(text)) for one in (engine, again))
    assert [one.text for one in first] == [one.text for one in second]


def test_tokens_of_any_length_may_stand_before_the_cursor(engine: CompletionEngine) -> None:
    start = BUFFER.index("if zorblax")
    data = f"data = '{'a' * 40_000}\0'\n        "
    text = BUFFER[:start] + data * 2
    assert all(one.text for one in engine.complete(text, len(text)))


PROJECT = {
    "shop.py": """import json
from pathlib import Path


class Shop:
    name: str
    path: Path

    def load(self, path, orders=None):
        if orders is None:
            orders = json.loads(path.read_text())
        return orders


class Stall:
    name: str
    path: Path
""",
    "cellar.py": """import json
from pathlib import Path


class Cellar:
    name: str
    path: Path

    def load(self, path, bottles=None):
        if bottles is None:
            bottles = json.loads(path.read_text())
        return bottles
""",
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> CompletionEngine:
    folder = tmp_path_factory.mktemp("shop")
    for name, text in PROJECT.items():
        (folder / name).write_text(text)
    return CompletionEngine(index_project(empty_model(), Project.read([folder]))[0])


def texts(engine: CompletionEngine, text: str) -> list[str]:
    """The whole lines that are suggested at the mark."""
    offset = text.index("¦")
    buffer = text.replace("¦", "")
    line = buffer[buffer.rfind("\n", 0, offset) + 1 : offset]
    found = engine.complete(buffer, offset, 5)
    return [(line + one.text).strip().split("\n")[0] for one in found]


def test_locals_are_renamed_to_those_of_the_prefix(shop: CompletionEngine) -> None:
    text = "def fetch(path, coins=None):\n    if coins is None:\n        ¦"
    assert any(line.startswith("coins = json") for line in texts(shop, text))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("import json\nfrom path¦", "from pathlib import"),
        ("class Attic:\n    name: str\n    ¦", "path: Path"),
        ("class Attic:\n    name: str\n    path: Path\n\n    def load(¦", "def load(self, path,"),
    ],
)
def test_modules_classes_and_headers_are_completed(
    shop: CompletionEngine, text: str, line: str
) -> None:
    assert any(found.startswith(line) for found in texts(shop, text))


def test_a_function_that_is_not_indexed_is_completed_from_itself() -> None:
    text = "def f(a):\n    total = measure(a, 1)\n    total = mea"
    engine = CompletionEngine(empty_model())
    assert all(one.text for one in engine.complete(text, len(text)))


def test_a_long_line_after_the_cursor_takes_no_time() -> None:
    line = "    first.append(second)\n    second = first\n"
    text = f"def f(first, second):\n{line * 6}    first.append"
    engine = CompletionEngine(empty_model())
    start = time.process_time()
    [one] = engine.complete(text + "y" * 1_000_000, len(text))  # such as data in one line
    assert one.text == "(second)"
    assert time.process_time() - start < 10
