"""When the language server stays quiet, and how much of a suggestion it offers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.server.lsp.quiet import is_off, offered, worth_showing
from redraft.server.lsp.settings import LspSettings, read_settings
from redraft.server.responses import CompletionSchema


def settings(**options: object) -> LspSettings:
    found, warnings = read_settings(options)
    assert not warnings
    return found


def completion(text: str, probability: float | None) -> CompletionSchema:
    return CompletionSchema(token=text, text=text, probability=probability, prototype=None)


@pytest.mark.parametrize(
    ("off", "path", "language", "expected"),
    [
        ([], "/a/b.go", "go", False),
        (["go"], "/a/b.go", "go", True),
        (["go"], "/a/go", "python", False),
        (["*.test.ts"], "/a/b.test.ts", "typescript", True),
        (["*.test.ts"], "/a/b.ts", "typescript", False),
        (["gen/*.go"], "/a/gen/b.go", "go", True),
        (["**/gen/**"], "/a/gen/b/c.go", "go", True),
        (["gen/*.go"], "/a/regen/b.go", "go", False),
        (["*"], None, "go", False),
    ],
)
def test_suggestions_are_off_by_language_and_by_glob(
    off: list[str], path: str | None, language: str, expected: bool
) -> None:
    assert is_off(settings(off=off), path, language) is expected


def test_a_suggestion_must_be_probable_and_save_enough() -> None:
    ranked = [completion("return nil", 0.5), completion("x", 0.9), completion("maybe()", None)]
    assert worth_showing(settings(), ranked) == ranked
    assert worth_showing(settings(leastProbability=0.6), ranked) == ranked[1:]
    assert worth_showing(settings(leastKeystrokes=5), ranked) == [ranked[0], ranked[2]]
    assert worth_showing(settings(leastKeystrokes=5.1), ranked) == ranked[2:]


def test_equal_words_are_offered_once() -> None:
    ranked = [completion("return nil\n}", 0.5), completion("return err", 0.4)]
    assert [one.text for one in worth_showing(settings(accept="word"), ranked)] == ["return"]
    assert [one.text for one in worth_showing(settings(accept="line"), ranked)] == [
        "return nil",
        "return err",
    ]


@given(st.text(alphabet="ab.( \n\té", min_size=1).filter(str.strip))
def test_accepting_part_by_part_gives_all(text: str) -> None:
    for accept in ("word", "line"):
        rest = text
        while rest.strip():
            part = offered(rest, accept)
            assert part.strip()
            rest = rest[len(part) :]
        assert text.startswith(text[: len(text) - len(rest)])
        assert offered(text, "all") == text


def test_wrong_settings_are_named() -> None:
    _, warnings = read_settings({"accept": "letter", "leastProbability": 2, "leastKeystrokes": -1})
    assert len(warnings) == 3
    assert "setting 'accept' is ignored: input should be 'all', 'line' or 'word'" in warnings
