"""The help of the commands: its examples can be copied."""

from typing import Any

import pytest
import typer

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
