"""The help of the commands: its examples can be copied."""

import re
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from redraft.cli._help import with_examples
from redraft.cli.app import app

GROUP: Any = typer.main.get_command(app)


def test_examples_stand_on_lines_of_their_own() -> None:
    written = """Do it.

    Examples: `redraft do a`, then with `--more`
    `redraft do b --more
    c`
    """
    assert with_examples(written) == (
        "Do it.\n\nExamples:\n\n```sh\nredraft do a\nredraft do b --more c\n```"
    )
    assert with_examples("Do it.\n\n    As an example: no.") == "Do it.\n\nAs an example: no."
    assert with_examples(None) == ""


@pytest.mark.parametrize("name", sorted(set(GROUP.commands) - {"lsp"}))
def test_every_command_has_examples_that_begin_with_redraft(name: str) -> None:
    _, found, block = GROUP.commands[name].help.partition("\n\nExamples:\n\n```sh\n")
    assert found
    examples = block.removesuffix("\n```").splitlines()
    assert examples
    assert any(example.startswith(f"redraft {name}") for example in examples)
    assert "`" not in "".join(examples)


@pytest.mark.parametrize("name", sorted(GROUP.commands))
def test_the_help_is_whole_in_80_columns(name: str) -> None:
    done = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "80", "LINES": "50"})
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert not any(line.rstrip(" │").endswith("…") for line in lines), "a word is cut"
    parameters = GROUP.commands[name].params
    options = [each for each in parameters if each.param_type_name == "option" and not each.hidden]
    for option in options:
        heads = [
            i for i, line in enumerate(lines) if re.match(rf"  (-\w, )?{option.opts[0]}\b", line)
        ]
        assert heads, option.opts
        assert lines[heads[-1] + 1].startswith(" " * 6), "its meaning stands below it"


def test_the_help_is_a_table_in_a_wide_terminal() -> None:
    done = CliRunner().invoke(app, ["fit", "--help"], env={"COLUMNS": "120", "LINES": "50"})
    [budget] = [line for line in done.stdout.splitlines() if "--budget  " in line]
    assert "Take no longer than this" in budget
