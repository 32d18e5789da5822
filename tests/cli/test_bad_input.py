"""Every mistake ends with one clear line, exit code 2, and nothing written."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from redraft import Example, RetrieveAndEdit
from redraft.storage.artifact import open_artifact
from tests.conftest import Run

GOOD = '{"x": "a", "y": "b"}\n'


def missing_column(folder: Path) -> Path:
    (folder / "pairs.csv").write_text("question,answer\n1,2\n")
    return folder / "pairs.csv"


def broken_line(folder: Path) -> Path:
    (folder / "pairs.jsonl").write_text(GOOD * 6 + '{"x": "a", \n' + GOOD)
    return folder / "pairs.jsonl"


def empty_file(folder: Path) -> Path:
    (folder / "pairs.jsonl").touch()
    return folder / "pairs.jsonl"


def a_folder(folder: Path) -> Path:
    return folder


def no_file(folder: Path) -> Path:
    return folder / "nowhere.jsonl"


def long_line(folder: Path) -> Path:
    (folder / "pairs.jsonl").write_text(GOOD + '{"x": "' + "a" * 10_000_000 + '", "y": "b"}\n')
    return folder / "pairs.jsonl"


def latin_1(folder: Path) -> Path:
    (folder / "pairs.jsonl").write_bytes('{"x": "café", "y": "b"}\n'.encode("latin-1"))
    return folder / "pairs.jsonl"


def unknown_kind(folder: Path) -> Path:
    (folder / "pairs.xlsx").write_bytes(b"PK")
    return folder / "pairs.xlsx"


def truncated_gzip(folder: Path) -> Path:
    (folder / "pairs.jsonl.gz").write_bytes(gzip.compress(GOOD.encode() * 99)[:-9])
    return folder / "pairs.jsonl.gz"


MISTAKES = [
    (missing_column, "pairs.csv:1: no column 'x', found 'question', 'answer'; rename it"),
    (broken_line, "pairs.jsonl:7: not JSON"),
    (empty_file, "pairs.jsonl: holds no pairs"),
    (a_folder, ": is a folder; name one file of pairs in it"),
    (no_file, "nowhere.jsonl: no such file; check the path"),
    (long_line, "pairs.jsonl:2: longer than 1,048,576 bytes; shorten or split it"),
    (latin_1, "pairs.jsonl:1: not UTF-8 (byte 0xe9 at column 11); save the file as UTF-8"),
    (unknown_kind, "pairs.xlsx: is a spreadsheet; save the sheet as CSV and name that file"),
    (truncated_gzip, "pairs.jsonl.gz: damaged gzip file"),
]


def assert_refused(run: Run, expected: str, *arguments: object) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("error: ")
    assert expected in lines[0]


@pytest.mark.parametrize(
    ("make", "expected"), MISTAKES, ids=lambda each: getattr(each, "__name__", "")
)
def test_pairs_that_cannot_be_used_are_refused_by_fit(
    make: Callable[[Path], Path], expected: str, tmp_path: Path, redraft: Run
) -> None:
    assert_refused(redraft, expected, "fit", make(tmp_path), "-o", tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("make", "expected"), MISTAKES, ids=lambda each: getattr(each, "__name__", "")
)
def test_pairs_that_cannot_be_used_are_refused_by_evaluate(
    make: Callable[[Path], Path],
    expected: str,
    tmp_path: Path,
    redraft: Run,
    examples: list[Example],
) -> None:
    RetrieveAndEdit.fit(examples, retriever="lexical", editor="verbatim").save(tmp_path / "m")
    out = tmp_path / "evaluation"
    assert_refused(redraft, expected, "evaluate", tmp_path / "m", make(tmp_path), "-o", out)
    assert not out.exists()


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def alter(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [truncate, alter, Path.unlink])
@pytest.mark.parametrize("name", ["examples.jsonl", "model.toml", "retriever/data.csr.npy"])
def test_a_damaged_model_is_refused(
    damage: Callable[[Path], None], name: str, tmp_path: Path, redraft: Run, examples: list[Example]
) -> None:
    RetrieveAndEdit.fit(examples, retriever="lexical", editor="verbatim").save(tmp_path / "model")
    path = open_artifact(tmp_path / "model").path(name)
    damage(path)
    for verb in (["info"], ["predict"], ["retrieve"]):
        text = [] if verb == ["info"] else ["sum"]
        assert_refused(redraft, f"{path.name}: ", *verb, tmp_path / "model", *text)


def test_a_folder_with_other_files_is_not_overwritten(
    tmp_path: Path, redraft: Run, pairs_file: Path
) -> None:
    expected = "holds other files; name a new folder for the model"
    assert_refused(redraft, expected, "fit", pairs_file, "-o", tmp_path)


def test_a_wrong_name_of_a_part_lists_the_right_ones(
    tmp_path: Path, redraft: Run, pairs_file: Path
) -> None:
    arguments = ("fit", pairs_file, "-o", tmp_path / "model", "--retriever", "psychic")
    assert_refused(
        redraft, "choose one of: bow, bm25, reranked, encoder, auto, task, input, none", *arguments
    )
    assert not (tmp_path / "model").exists()


def test_inputs_that_do_not_fit_the_model_are_refused(tmp_path: Path, redraft: Run) -> None:
    cards = [Example({"name": "Wisp", "cost": "0"}, "Wisp()")]
    RetrieveAndEdit.fit(cards, retriever="lexical", editor="verbatim").save(tmp_path / "cards")
    predict = ("predict", tmp_path / "cards")
    fields = """has several fields; give them as JSON: '{"name": "…", "cost": "…"}'"""
    assert_refused(redraft, fields, *predict, "Wisp")
    assert_refused(
        redraft, "no field 'colour'; its fields are: name, cost", *predict, '{"colour": ""}'
    )
    assert_refused(redraft, "give either one INPUT or --file FILE", *predict)
    (tmp_path / "inputs.jsonl").write_text('{"x": {"name": "Wisp"}}\n{"y": 1}\n')
    assert_refused(
        redraft, "inputs.jsonl:2: expected", *predict, "--file", tmp_path / "inputs.jsonl"
    )
    assert_refused(redraft, "--where verb: expected KEY=VALUE", *predict, "{}", "--where", "verb")


def test_scoring_refuses_what_does_not_match(tmp_path: Path, redraft: Run) -> None:
    (tmp_path / "one.txt").write_text("a\n")
    (tmp_path / "two.txt").write_text("a\nb\n")
    (tmp_path / "no_output.jsonl").write_text('{"answer": "a"}\n')
    (tmp_path / "ranks.jsonl").write_text('{"output": "a", "ranks": [0, "b"]}\n')
    run = (redraft, "1 outputs for 2 references; they must match")
    assert_refused(*run, "score", tmp_path / "one.txt", tmp_path / "two.txt")
    keys = "no_output.jsonl:1: expected one of the keys output, prediction, y"
    assert_refused(redraft, keys, "score", tmp_path / "no_output.jsonl", tmp_path / "one.txt")
    numbers = "ranks.jsonl: ranks must be lists of whole numbers"
    assert_refused(redraft, numbers, "score", tmp_path / "ranks.jsonl", tmp_path / "one.txt")


def test_mining_what_holds_no_function_is_refused(tmp_path: Path, redraft: Run) -> None:
    (tmp_path / "empty.py").write_text("x = 1\n")
    assert_refused(
        redraft, "no documented function in 1 Python files", "mine", tmp_path / "empty.py"
    )
    assert_refused(redraft, "no such file or folder", "mine", tmp_path / "nowhere")
