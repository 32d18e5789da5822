"""`redraft config`: complete commented files that `fit --config` takes, and the page of them."""

import dataclasses
import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from docs.settings_page import settings_page
from redraft.cli.app import app
from redraft.config.reference import SETTINGS, TABLES
from redraft.config.toml import setting_names
from redraft.data.pairs import write_pairs
from redraft.training.editor_config import EditorConfig, default_config
from redraft.training.fit import FitOptions, check_settings, editor_config, retriever_config
from redraft.training.retriever_config import RetrieverConfig
from redraft.types import Example

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"
ALL = {
    f"{part}.{name}"
    for part, config in (("retriever", RetrieverConfig), ("editor", EditorConfig))
    for name in setting_names(config)
}


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


def pairs_of(count: int, path: Path, *, projects: int = 0) -> Path:
    """Write this many pairs, of some projects."""
    meta = [{"package": f"p{i}"} for i in range(projects)] or [{}]
    examples = [
        Example({"text": f"add {i}"}, f"x + {i}", meta[i % len(meta)]) for i in range(count)
    ]
    write_pairs(examples, path)
    return path


def printed(*arguments: object) -> str:
    done = call("config", *arguments)
    assert done.exit_code == 0, done.stderr
    return done.stdout


def names_of(text: str) -> dict[str, str]:
    """Return the comment of every setting of a printed file."""
    table, found = "", {}
    for line in text.splitlines():
        if heading := re.fullmatch(r"\[(.*)\]", line):
            table = heading[1]
        elif setting := re.fullmatch(r"(\w+) = .*?  # (.+)", line):
            found[f"{table}.{setting[1]}"] = setting[2]
    return found


def test_every_setting_has_a_description_and_nothing_else_has() -> None:
    assert set(SETTINGS) == ALL
    assert set(TABLES) == {name.rpartition(".")[0] for name in ALL}
    assert all(text and "\n" not in text for text in (*SETTINGS.values(), *TABLES.values()))


@pytest.mark.parametrize(
    ("count", "projects", "preset"), [(200, 0, "few"), (20_000, 0, "many"), (300, 3, "projects")]
)
def test_pairs_get_a_complete_commented_file(
    count: int, projects: int, preset: str, tmp_path: Path
) -> None:
    text = printed(pairs_of(count, tmp_path / "pairs.jsonl", projects=projects))
    held_out = min(count // 10, 300)
    trained = f"{count - held_out:,} training examples of pairs.jsonl"
    assert text.startswith(f"# redraft fit --config: preset {preset}, for the {trained}\n")
    assert names_of(text) == SETTINGS
    # what `fit` would use is what it uses with the file
    options = FitOptions(tomllib.loads(text))
    check_settings(count, options)
    train = count - held_out
    expected = default_config(train, projects=max(projects, 1))
    assert editor_config(train, options, projects=max(projects, 1)) == expected
    assert retriever_config(train, options) == retriever_config(train, FitOptions())


@pytest.mark.parametrize("preset", ["few", "many", "projects", "paper"])
def test_a_preset_can_be_named(preset: str, pairs_file: Path) -> None:
    for arguments in ([], [pairs_file]):
        text = printed(*arguments, "--preset", preset)
        assert f"preset {preset}, for " in text.splitlines()[0]
        assert names_of(text) == SETTINGS
        check_settings(60, FitOptions(tomllib.loads(text)))


def test_fit_takes_the_printed_file(tmp_path: Path, examples: Sequence[Example]) -> None:
    pairs = tmp_path / "pairs.jsonl"
    write_pairs(examples, pairs)
    text = printed(pairs)
    text = re.sub(r"(?m)^steps = \d+", "steps = 3", text)
    text = re.sub(r"(?m)^(word_|slot_)?width = \d+", r"\1width = 16", text)
    (tmp_path / "my.toml").write_text(text)
    done = call("fit", pairs, "-o", tmp_path / "model", "--config", tmp_path / "my.toml")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["examples"] == len(examples)


@pytest.mark.parametrize(
    ("content", "nearest"),
    [
        ("[editor.network]\nwidht = 8\n", "width"),
        ("[editor.training]\nbatchsize = 8\n", "batch_size"),
        ("[editor]\nsteps = 8\n", "training.steps"),
        ("[editor.netwrok]\nwidth = 8\n", "network"),
        ("[retriever.encoding]\nPieces = 8\n", "pieces"),
    ],
)
def test_a_wrong_key_names_the_nearest(
    content: str, nearest: str, pairs_file: Path, tmp_path: Path
) -> None:
    (tmp_path / "my.toml").write_text(content)
    done = call("fit", pairs_file, "-o", tmp_path / "model", "--config", tmp_path / "my.toml")
    assert done.exit_code == 2
    [line] = done.stderr.splitlines()
    assert line.startswith(f"error: {tmp_path / 'my.toml'}: [")
    assert f"did you mean {nearest}? " in line


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    wrong: list[tuple[list[Any], str]] = [
        (["--preset", "huge"], "choose one of: few, many, projects, paper"),
        ([tmp_path / "missing.jsonl"], "missing.jsonl: "),
        ([tmp_path / "empty.jsonl"], "empty.jsonl: "),
    ]
    for arguments, message in wrong:
        done = call("config", *arguments)
        assert done.exit_code == 2
        [line] = done.stderr.splitlines()
        assert message in line


def test_the_page_is_the_one_that_is_generated() -> None:
    assert settings_page() == PAGE.read_text(), "run: make settings"


def test_every_default_is_on_the_page() -> None:
    page = PAGE.read_text()
    for config in (RetrieverConfig(), EditorConfig()):
        for table in dataclasses.fields(config):
            for setting in dataclasses.fields(getattr(config, table.name)):
                assert f"| `{setting.name}` | " in page
