"""The completion experiment: cutting projects, what is right, and the exported trees."""

import json
import random
from pathlib import Path

import lightgbm
import numpy as np
import pytest

from experiments.completion.measurement import BARE, REDRAFT, Answer, Suggestion, similarity
from experiments.completion.peers import continued
from experiments.completion.projects import (
    MISSING,
    PLACEHOLDER,
    Cursor,
    archives,
    buffer_of,
    cursors,
    cut,
    indexed_model,
    is_right,
    read_wheel,
    write_project,
)
from experiments.completion.recorded import Recorded, read_recorded, write_cursors
from experiments.completion.summary import rows_of, summary, typing_rows
from experiments.completion.training import (
    IndexedProject,
    Ranking,
    exported,
    fit_similarity,
    fit_trees,
    rankings,
)
from experiments.completion.typing import replay, typed
from experiments.tests.wheels import write_wheel
from redraft.completion.engine import CompletionEngine
from redraft.editing.session import VerbatimSession
from redraft.errors import PairsError
from redraft.mining.python_functions import mine_content
from redraft.types import Example, Prototype

SOURCE = "".join(
    f'def twice_{n}(a):\n    """Twice {n}."""\n    count = len(a)\n    total = {n} * count\n'
    "    if total > 10:\n        print(total)\n    return total\n\n"
    for n in range(8)
)


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    files = {"pack/code.py": SOURCE, "pack/tests/test_code.py": SOURCE, "pack/bad.py": "def ("}
    return write_wheel(tmp_path, "pack-1.0", files)


def test_a_cut_project_parses_and_gives_back_its_bodies(wheel: Path) -> None:
    sources = read_wheel(wheel)
    assert list(sources) == ["pack/code.py"]
    project = cut("pack", sources, 3, random.Random(0))
    assert len(project.asked) == 3
    text = project.files["pack/code.py"]
    assert text.count(PLACEHOLDER) == 3
    mined = mine_content(text, name="code.py", package="pack")
    assert isinstance(mined, list)
    for asked in project.asked:
        assert asked.example.y not in [example.y for example in mined]
        whole, offset = buffer_of(text, asked, asked.example.y)
        lines = asked.example.y.replace("\n", "\n" + asked.indentation)
        assert whole[:offset].endswith(lines)
        assert lines in SOURCE


def test_cursors_are_where_their_names_say() -> None:
    body = "a = 1\nb = 2\nc = 3\nreturn a"
    found = {cursor.name: cursor for cursor in cursors(body, random.Random(0))}
    assert found["empty body"].prefix == ""
    assert found["after line 1"].prefix == "a = 1\n"
    assert found["after line 3"].prefix == "a = 1\nb = 2\nc = 3\n"
    assert body.startswith(found["random token"].prefix)
    missing = found[MISSING]
    assert f"{missing.prefix}{missing.rest}\n{missing.following}" == body


def test_the_lines_after_the_cursor_stand_in_the_buffer(wheel: Path) -> None:
    project = cut("pack", read_wheel(wheel), 1, random.Random(0))
    [asked] = project.asked
    [missing] = [one for one in cursors(asked.example.y, random.Random(0)) if one.following]
    text = project.files[asked.file]
    whole, offset = buffer_of(text, asked, missing.prefix, missing.following)
    line = asked.indentation + missing.rest.lstrip()
    assert whole[:offset].rstrip() + "\n" + line in SOURCE or missing.rest.startswith(" ")
    assert whole[offset:].startswith("\n" + asked.indentation)
    assert missing.following.split("\n")[0] in whole[offset:]


def test_the_files_of_asked_functions_may_be_left_out(wheel: Path, tmp_path: Path) -> None:
    project = cut("pack", read_wheel(wheel), 1, random.Random(0))
    write_project(project, tmp_path / "with")
    write_project(project, tmp_path / "without", with_asked=False)
    assert (tmp_path / "with" / "pack" / "code.py").exists()
    assert not (tmp_path / "without" / "pack" / "code.py").exists()


def test_cursors_are_written_for_systems_that_are_asked_apart(wheel: Path, tmp_path: Path) -> None:
    project = cut("pack", read_wheel(wheel), 3, random.Random(0))
    write_cursors([project], random.Random(0), tmp_path / "asked")
    lines = (tmp_path / "asked" / "cursors.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == 3 * 5
    assert rows[0]["text"][: rows[0]["offset"]].endswith(rows[0]["indentation"])
    assert (tmp_path / "asked" / "projects" / "pack" / "pack" / "code.py").exists()


def test_recorded_suggestions_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "suggestions.jsonl"
    one = Recorded("total = 1", 3.5, "count = 0")
    path.write_text(one.to_json() + "\n")
    assert list(read_recorded(path)) == [one]
    path.write_text('{"words": 1}\n')
    with pytest.raises(PairsError, match=r"suggestions.jsonl:1: expected text, milliseconds"):
        list(read_recorded(path))


def test_a_short_completion_is_continued_until_it_counts() -> None:
    example = Example({"name": "f"}, "a = 1\nb = 22\nc = 333\n")
    session = VerbatimSession([Prototype(example, 0.0)])
    assert continued(session, "") == ("a = 1\nb = 22\n", example.y)
    assert continued(VerbatimSession([]), "") == ("", None)


def test_a_right_suggestion_saves_its_keys_but_one() -> None:
    body = "if a:\n    return a"

    def suggest(prefix: str) -> Suggestion:
        return Suggestion("return a" if prefix.rstrip(" ").endswith(":\n") else "wrong")

    assert replay(body, suggest) == (len(body) - 4, len("if a:\n") + 1)


def test_functions_are_typed_with_suggestions(wheel: Path) -> None:
    project = cut("pack", read_wheel(wheel), 2, random.Random(0))
    functions = list(typed(project, CompletionEngine(indexed_model(project))))
    assert [one.system for one in functions] == [REDRAFT, BARE] * 2
    first, bare, lead = typing_rows(functions, "test", 0)
    assert first.metrics["keys_saved"] > 20
    assert first.metrics["avg_10"] >= first.metrics["avg_1"] > 0
    difference = first.metrics["keys_saved"] - bare.metrics["keys_saved"]
    assert lead.metrics["keys_saved"] == pytest.approx(difference, abs=0.02)


@pytest.mark.parametrize(
    ("suggestion", "rest", "expected"),
    [
        ("return total", "    return total\n", True),
        ("return tot", "    return total\n", False),
        ("return total + 1", "return total", False),
        ("  ", "return", False),
    ],
)
def test_a_suggestion_is_right_if_the_rest_begins_with_it(
    suggestion: str, rest: str, expected: bool
) -> None:
    assert is_right(suggestion, rest) == expected


def test_wheels_are_found_by_the_names_of_packages(wheel: Path) -> None:
    assert archives(wheel.parent, ["Pack==1.0", "missing==2"]) == [wheel]


def test_continuations_of_a_project_are_ranked(wheel: Path) -> None:
    indexed = IndexedProject.of(cut("pack", read_wheel(wheel), 3, random.Random(0)))
    weights = fit_similarity([indexed])
    assert np.isfinite(weights).all()
    rows = list(rankings(indexed, weights, random.Random(0)))
    assert {row.cursor for row in rows} >= {"after line 1", "after line 3"}
    assert any(row.is_right.any() for row in rows)


def test_exported_trees_give_the_probabilities_of_their_trainer() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(500, 5)).astype(np.float32)
    labels = features[:, 0] * features[:, 1] + rng.normal(size=500) / 3 > 0
    settings = {"objective": "binary", "max_depth": 4, "verbose": -1, "num_threads": 1}
    booster = lightgbm.train(settings, lightgbm.Dataset(features, labels), 20)
    trees = exported(booster.dump_model()["tree_info"], 4)
    np.testing.assert_allclose(
        trees.probabilities(features), np.asarray(booster.predict(features)), rtol=1e-4, atol=1e-5
    )


def test_trees_learn_what_is_right() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(1000, 5)).astype(np.float32)
    labels = features[:, 0] > 0
    trees = fit_trees([Ranking("empty body", features, labels, np.ones(1000))], seed=0)
    assert ((trees.probabilities(features) > 0.5) == labels).mean() > 0.95


def test_rows_count_long_right_suggestions_and_what_is_shown() -> None:
    cursor = Cursor("empty body", "", "return total\nmore()")

    def answer(system: str, text: str, milliseconds: float) -> Answer:
        return Answer.of("p", system, cursor, Suggestion(text, 0.5), milliseconds)

    answers = [
        answer(REDRAFT, "return total", 40),
        answer(REDRAFT, "return", 100),
        answer(REDRAFT, "", 1),
        answer(BARE, "return other", 1),
        answer(BARE, "return total", 200),
        answer(BARE, "return x + y", 1),
    ]
    first, second, lead = rows_of(answers, "test", 0)
    assert first.metrics["right"] == pytest.approx(33.33)
    assert first.metrics["right_50"] == pytest.approx(33.33)
    assert first.metrics["shown"] == pytest.approx(66.67)
    assert first.metrics["precision"] == 100
    assert first.metrics["line"] == pytest.approx(33.33)
    assert second.metrics["precision"] == pytest.approx(33.33)
    assert second.metrics["right_150"] == 0
    assert second.metrics["right_300"] == pytest.approx(33.33)
    assert lead.metrics["right"] == 0
    assert "precision 100.0" in summary(answers, ["empty body"])
    assert (similarity("abcd", "abcd"), similarity("abcd", "wxyz")) == (100, 0)
