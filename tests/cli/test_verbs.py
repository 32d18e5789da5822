"""Every verb as a user runs it: results on stdout as JSON lines, the rest on stderr."""

import json
from pathlib import Path
from typing import Any

import pytest

from redraft import Example, read_pairs
from redraft.cli._console import shown_fact
from tests.conftest import Run

SOURCE = '''
def double(number):
    """Return twice the number."""
    return 2 * number


def undocumented():
    return 1
'''

VERBATIM = ("--editor", "verbatim")
FAST = ("--retriever", "lexical", *VERBATIM)
BM25 = ("--retriever", "bm25", *VERBATIM)
"""Parts that learn nothing."""


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def model(tmp_path: Path, redraft: Run, pairs_file: Path) -> Path:
    done = redraft("fit", pairs_file, "-o", tmp_path / "model", *FAST)
    assert done.returncode == 0, done.stderr
    return tmp_path / "model"


def test_fit_describes_the_model_it_wrote(tmp_path: Path, redraft: Run, pairs_file: Path) -> None:
    done = redraft("fit", pairs_file, "-o", tmp_path / "model", *BM25)
    (facts,) = rows(done.stdout)
    assert (facts["retriever"], facts["editor"], facts["examples"]) == ("bm25", "verbatim", 60)
    assert rows(redraft("info", tmp_path / "model").stdout) == [facts]
    shown = redraft("info", tmp_path / "model", "--format", "table").stdout
    assert "bm25" in shown
    size = facts["bytes"]
    assert f"│ {size / 1e3:,.1f} kB" in shown
    assert (shown_fact("bytes", 49_999), shown_fact("bytes", 12_345_678)) == ("50.0 kB", "12.3 MB")


def test_fit_again_replaces_the_model(tmp_path: Path, model: Path, redraft: Run) -> None:
    (tmp_path / "small.jsonl").write_text('{"x": "a", "y": "b"}\n')
    assert redraft("fit", tmp_path / "small.jsonl", "-o", model, *FAST).returncode == 0
    assert rows(redraft("info", model).stdout)[0]["examples"] == 1


def test_retrieve_ranks_prototypes_and_filters_them(model: Path, redraft: Run) -> None:
    done = redraft(
        "retrieve", model, "sum the first 2 items of decks", "-k", 3, "--where", "verb=max"
    )
    found = rows(done.stdout)
    assert [row["rank"] for row in found] == [1, 2, 3]
    assert {row["meta"]["verb"] for row in found} == {"max"}
    assert found[0]["y"] == "max(decks[:2])"
    shown = redraft("retrieve", model, "sum", "-k", 1, "--format", "table").stdout
    assert "distance" in shown


def test_predict_answers_one_input_and_explains(model: Path, redraft: Run) -> None:
    text = "sum the first 2 items of decks"
    (plain,) = rows(redraft("predict", model, text).stdout)
    assert plain["output"] == "sum(decks[:2])"
    assert "prototype" not in plain["candidates"][0]
    (explained,) = rows(redraft("predict", model, text, "--explain", "-k", 2).stdout)
    best = explained["candidates"][0]
    assert best["prototype"]["x"] == text
    assert best["diff"] == [{"change": "kept", "text": "sum(decks[:2])"}]
    assert "prototype" in redraft("predict", model, text, "--format", "table").stdout


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("inputs.jsonl", '{"x": "max cards"}\n"max cards"\n'),
        ("inputs.txt", "max cards\nmax cards\n"),
    ],
)
def test_predict_answers_a_file_line_by_line(
    name: str, content: str, tmp_path: Path, model: Path, redraft: Run
) -> None:
    (tmp_path / name).write_text(content)
    found = rows(redraft("predict", model, "--file", tmp_path / name).stdout)
    assert [row["output"] for row in found] == ["max(cards[:1])"] * 2


def test_evaluate_writes_rows_scores_and_a_report(
    tmp_path: Path, model: Path, redraft: Run, pairs_file: Path
) -> None:
    done = redraft("evaluate", model, pairs_file, "-o", tmp_path / "evaluation")
    (scores,) = rows(done.stdout)
    assert scores["exact"] == scores["bleu_yin"] == 100
    assert (scores["right"], scores["retrieval"]["right"]) == (60, 60)
    assert scores["interval"]["exact"] == [100, 100]
    assert scores["n_unseen"] == 0
    assert "warning: 60 of 60 pairs are stored in the model, which repeats them" in done.stderr
    assert json.loads((tmp_path / "evaluation" / "scores.json").read_text()) == scores
    assert len((tmp_path / "evaluation" / "rows.jsonl").read_text().splitlines()) == 60
    assert "<html" in (tmp_path / "evaluation" / "report.html").read_text()
    shown = redraft(
        "evaluate", model, pairs_file, "-o", tmp_path / "e2", "--format", "table"
    ).stdout
    assert shown.startswith("60 of 60 right (95 % interval 94–100 %); retrieval alone: 60 of 60\n")
    assert max(map(len, shown.splitlines()[2:])) < 80  # after the path of the pairs


def test_pairs_that_the_model_does_not_hold_are_evaluated_without_a_warning(
    tmp_path: Path, model: Path, redraft: Run
) -> None:
    (tmp_path / "new.jsonl").write_text('{"x": "sum the first 77 items of decks", "y": "b"}\n')
    done = redraft("evaluate", model, tmp_path / "new.jsonl", "-o", tmp_path / "evaluation")
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr


def test_predictions_can_be_scored_as_they_are(
    tmp_path: Path, model: Path, redraft: Run, pairs_file: Path
) -> None:
    predictions = tmp_path / "predictions.jsonl"
    predictions.write_text(redraft("predict", model, "--file", pairs_file).stdout)
    (scores,) = rows(redraft("score", predictions, pairs_file, "--train", pairs_file).stdout)
    assert scores["exact"] == 100
    assert scores["share_in_train"] == 100


def test_equality_is_chosen(tmp_path: Path, redraft: Run) -> None:
    outputs, truth = tmp_path / "outputs.jsonl", tmp_path / "truth.jsonl"
    outputs.write_text('{"output": "select A"}\n{"output": "SELECT \'B\';"}\n')
    truth.write_text('{"y": "SELECT a;"}\n{"y": "SELECT \'b\';"}\n')
    right = {
        name: rows(redraft("score", outputs, truth, "--equal", name).stdout)[0]["right"]
        for name in ("auto", "sql", "text", "json")
    }
    assert right == {"auto": 1, "sql": 1, "text": 0, "json": 0}
    done = redraft("score", outputs, truth, "--equal", "yaml")
    assert done.returncode == 2
    assert "'yaml' is not one of 'auto', 'text', 'sql', 'python', 'json'" in done.stderr


def test_score_takes_text_lines_with_marks_for_newlines(tmp_path: Path, redraft: Run) -> None:
    (tmp_path / "predictions.txt").write_text("if a:§    b()§\n\nreturn  1\n")
    (tmp_path / "references.txt").write_text("if a:§    b()§\nc()\nreturn 1\n")
    done = redraft("score", tmp_path / "predictions.txt", tmp_path / "references.txt")
    (scores,) = rows(done.stdout)
    assert scores["n"] == 3
    assert scores["exact"] == pytest.approx(66.6667)
    assert {"bleu_yin", "bleu_paper", "bleu_corpus", "exact", "parses", "interval"} < set(scores)


def test_score_adds_completion_metrics_where_rows_have_ranks(tmp_path: Path, redraft: Run) -> None:
    (tmp_path / "predictions.jsonl").write_text('{"output": "f(1)", "ranks": [0, 0, 20, 0]}\n')
    (tmp_path / "references.jsonl").write_text('{"x": "a", "y": "f(1)"}\n')
    done = redraft("score", tmp_path / "predictions.jsonl", tmp_path / "references.jsonl")
    (scores,) = rows(done.stdout)
    assert scores["avg_1"] == 1
    assert scores["longest_10"] == 2
    assert scores["exact"] == 100


def test_check_lists_what_is_wrong_and_its_exit_code_says_how_bad(
    tmp_path: Path, redraft: Run, pairs_file: Path
) -> None:
    clean = redraft("check", pairs_file)
    assert clean.returncode == 0
    assert rows(clean.stdout) == [{"kind": "summary", "rows": 60, "good": 60, "bad": 0}]
    twice = tmp_path / "twice.jsonl"
    twice.write_text(pairs_file.read_text() * 2)
    found = redraft("check", twice)
    assert found.returncode == 1
    assert rows(found.stdout)[-1]["duplicate"] == 60
    bad = tmp_path / "bad.jsonl"
    bad.write_text(pairs_file.read_text() + '{"x": ""}\n{"x": "a", "y": 1}\n')
    broken = redraft("check", bad)
    assert broken.returncode == 2
    assert [row["line"] for row in rows(broken.stdout)[:-1]] == [61, 62]
    assert "2 bad rows of 62" in broken.stderr


def test_check_finds_leaks_between_two_files(
    tmp_path: Path, redraft: Run, pairs_file: Path
) -> None:
    test = tmp_path / "test.jsonl"
    test.write_text(pairs_file.read_text().splitlines()[10] + "\n")
    done = redraft("check", pairs_file, "--against", test, "--format", "table")
    assert done.returncode == 1
    assert "leak" in done.stdout


def test_mine_writes_the_documented_functions(tmp_path: Path, redraft: Run) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "good.py").write_text(SOURCE)
    (tmp_path / "src" / "old.py").write_text("print 'hello'\n")
    done = redraft("mine", tmp_path / "src", "-o", tmp_path / "pairs.jsonl")
    assert "1 functions from 1 files, 1 files skipped" in done.stderr
    assert "skipped old.py:1: not Python 3" in done.stderr
    (example,) = read_pairs(tmp_path / "pairs.jsonl")
    assert example == Example(
        {"docstring": "Return twice the number.", "name": "double", "arguments": "number"},
        "return 2 * number",
        {"file": "good.py", "line": 2, "package": "good"},
    )
    assert rows(redraft("mine", tmp_path / "src").stdout) == [example.to_json()]


def test_split_writes_every_part(tmp_path: Path, redraft: Run, pairs_file: Path) -> None:
    done = redraft(
        "split",
        pairs_file,
        "-o",
        tmp_path / "parts",
        "--shares",
        "train=0.7,test=0.3",
        "--by",
        "verb",
    )
    assert {row["part"]: row["pairs"] for row in rows(done.stdout)} == {"train": 40, "test": 20}
    verbs = [
        {e.meta["verb"] for e in read_pairs(tmp_path / "parts" / f"{p}.jsonl")}
        for p in ("train", "test")
    ]
    assert not verbs[0] & verbs[1]


@pytest.mark.parametrize(
    "verb",
    [
        *("check", "mine", "split", "fit", "retrieve", "predict", "embed", "evaluate", "score"),
        *("add", "remove", "index", "complete", "info", "serve", "lsp", "demo"),
    ],
)
def test_every_verb_has_help_with_a_worked_example(verb: str, redraft: Run) -> None:
    done = redraft(verb, "--help")
    assert done.returncode == 0
    assert "Example" in done.stdout
    assert f"redraft {verb}" in done.stdout


def test_usage_errors_and_the_version(redraft: Run) -> None:
    assert redraft("--version").stdout.startswith("redraft 0.")
    assert redraft("nonsense").returncode == 2
    assert redraft("fit").returncode == 2


TINY = """
[retriever.network]
word_width = 16
embedding_dim = 32
width = 8
[retriever.training]
steps = 8
batch_size = 8
"""


def test_retrieve_explains_what_two_inputs_share(model: Path, redraft: Run) -> None:
    text = "sum the last 2 items of decks"
    (row,) = rows(redraft("retrieve", model, text, "-k", 1, "--explain").stdout)
    assert row["shared"] == {"text": ["sum", "the", "2", "items", "of", "decks"]}
    assert {"change": "removed", "text": " first"} in row["input_diff"]
    shown = redraft("retrieve", model, text, "-k", 1, "--explain", "--format", "table").stdout
    assert "shared words: sum, the, 2, items, of, decks" in shown


@pytest.mark.parametrize("retriever", ["task", "input"])
def test_learned_retrievers_are_fitted_and_used(
    retriever: str, tmp_path: Path, redraft: Run, pairs_file: Path
) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    arguments = ("fit", pairs_file, "-o", tmp_path / "model", "--retriever", retriever, *VERBATIM)
    done = redraft(*arguments, "--config", tmp_path / "tiny.toml", "--seed", 3)
    assert done.returncode == 0, done.stderr
    assert "step 8 of 8" in done.stderr
    assert "padding" in done.stderr
    assert rows(done.stdout)[0]["retriever"] == retriever
    (answer,) = rows(
        redraft("predict", tmp_path / "model", "max the first 2 items of decks").stdout
    )
    assert "[:" in answer["output"]


def test_settings_that_do_not_exist_are_refused(
    tmp_path: Path, redraft: Run, pairs_file: Path
) -> None:
    (tmp_path / "wrong.toml").write_text("[retriever.network]\nwidht = 3\n")
    arguments = ("fit", pairs_file, "-o", tmp_path / "model", "--retriever", "task")
    done = redraft(*arguments, "--config", tmp_path / "wrong.toml")
    assert done.returncode == 2
    assert "[retriever]: network: unknown setting 'widht'" in done.stderr
    done = redraft(*arguments, "--device", "abacus")
    assert done.returncode == 2
    assert "no device 'abacus' here; choose auto or one of: cpu" in done.stderr


@pytest.mark.parametrize("retriever", ["bm25", "task"])
def test_examples_are_added_and_removed_without_training(
    retriever: str, tmp_path: Path, redraft: Run, pairs_file: Path
) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    model = tmp_path / "model"
    arguments = ("fit", pairs_file, "-o", model, "--retriever", retriever, *VERBATIM)
    assert redraft(*arguments, "--config", tmp_path / "tiny.toml").returncode == 0
    new = tmp_path / "new.jsonl"
    new.write_text(
        '{"x": "shuffle every zebra", "y": "shuffle(zebras)", "meta": {"verb": "shuffle"}}\n'
    )
    (added,) = rows(redraft("add", model, new).stdout)
    assert (added["added"], added["examples"]) == (1, 61)
    (answer,) = rows(redraft("predict", model, "shuffle every zebra").stdout)
    assert answer["output"] == "shuffle(zebras)"
    (removed,) = rows(redraft("remove", model, "--where", "verb=shuffle").stdout)
    assert (removed["removed"], removed["examples"]) == (1, 60)
    (answer,) = rows(redraft("predict", model, "shuffle every zebra").stdout)
    assert answer["output"] != "shuffle(zebras)"


def test_adding_other_fields_and_removing_everything_are_refused(
    tmp_path: Path, model: Path, redraft: Run
) -> None:
    new = tmp_path / "new.jsonl"
    new.write_text('{"x": {"name": "a"}, "y": "b"}\n')
    assert "expected an input with the fields text" in redraft("add", model, new).stderr
    assert "no examples selected; add --where KEY=VALUE" in redraft("remove", model).stderr
    (tmp_path / "one.jsonl").write_text('{"x": "a", "y": "b", "meta": {"k": 1}}\n')
    redraft("fit", tmp_path / "one.jsonl", "-o", tmp_path / "one", *FAST)
    done = redraft("remove", tmp_path / "one", "--where", "k=1")
    assert done.returncode == 2
    assert "that would remove every example" in done.stderr
