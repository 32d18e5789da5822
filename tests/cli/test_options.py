"""Numbers outside of an option's range, and files without an end, are one line and exit code 2."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from redraft.cli import _options as options
from redraft.cli.app import app
from redraft.errors import ConfigError

HUGE = "9" * 30
DIGITS = "9" * 5_000

NUMBERS = [
    *(("predict m x", option, "-1") for option in ("--sample", "--ttt-steps")),
    *(("predict m x", option, "0") for option in ("-k", "--beam", "--rows")),
    *(
        ("predict m x", option, value)
        for option in ("-k", "--beam", "--ttt-steps", "--rows")
        for value in ("1000000000", HUGE, DIGITS, "many", "1.5")
    ),
    *(("predict m x", "--sample", value) for value in (HUGE, DIGITS)),
    *(("predict m x", "--min-confidence", value) for value in ("-0.1", "1.1", "inf")),
    *(("predict m x", "--precision", value) for value in ("-0.1", "1.1", "inf")),
    *(("retrieve m x", "-k", value) for value in ("0", "1000000000", HUGE)),
    *(("complete m x:1:1", "-k", value) for value in ("0", "1000000000", HUGE)),
    *(("embed m x -o y", "--rows", value) for value in ("0", "1000000000", HUGE)),
    *(("fit x -o y", "--seed", value) for value in ("-1", HUGE)),
    *(("split x -o y", "--seed", value) for value in ("-1", HUGE)),
    *(("demo", "--questions", value) for value in ("0", "1000000000")),
    *(("serve m", "--port", value) for value in ("-1", "65536")),
    *(("serve m", "--time-limit", value) for value in ("0", "inf", "-1")),
    *(("lsp m", "--tcp", value) for value in ("0", "65536")),
]


def refused(*arguments: object) -> str:
    """The one line that a command ends with, its exit code being 2."""
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert len(line) <= 1_010
    return line


@pytest.mark.parametrize(
    ("command", "option", "value"), NUMBERS, ids=lambda text: text[:12].replace(" ", "_")
)
def test_a_number_outside_of_its_range_is_refused(command: str, option: str, value: str) -> None:
    verb, *rest = command.split()
    line = refused(verb, *rest, f"{option}={value}" if option != "-k" else f"-k{value}")
    assert option in line
    assert line.endswith(f" {verb} --help`")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["--nonsense"], "No such option: --nonsense"),
        (["fit", "--nonsense"], "No such option: --nonsense"),
        (["fit", "x"], "Missing option"),
        (["predict", "m", "x", "--format", "xml"], "'xml' is not one of 'json', 'table'"),
        (["complete", "m", "a.py"], "a.py: expected FILE:LINE:COL"),
        (["complete", "m", f"a.py:1:{DIGITS}"], ": expected FILE:LINE:COL"),
        (["complete", "m", "a.py:1:\u0663"], ": expected FILE:LINE:COL"),
        (["fit", "x", "-o", "y", "--budget", "9" * 400 + "h"], ": expected a time such as 90s"),
        (["complete", "m", "/dev/zero:1:1"], "/dev/zero: larger than 4,000,000 bytes"),
        (["mine"], "Missing argument 'paths'"),
        (["nonsense\x1b]0;pwn\x07\n"], r"No such command 'nonsense\x1b]0;pwn\x07"),
    ],
)
def test_a_mistake_in_the_arguments_is_one_line(arguments: list[str], message: str) -> None:
    line = refused(*arguments)
    assert message in line
    assert line.isprintable()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[editor.network]\nwidth = 0\n", "[editor]: network: width is 0; expected a whole number"),
        ("[editor.training]\nsteps = 0\n", "[editor]: training: steps is 0;"),
        ("[editor.training]\nbatch_size = -1\n", "[editor]: training: batch_size is -1;"),
        ("[retriever.training]\nlearning_rate = nan\n", "learning_rate is nan; expected a number"),
        ("[editor.network]\nwidth = 100\n", "width is 100; make it a multiple of 8"),
        (f"[editor]\nseed = {DIGITS}\n", "not TOML ("),
        (f"[editor]\nseed = {'[' * 5_000}\n", "not TOML ("),
    ],
)
def test_a_settings_file_is_refused_by_name(
    content: str, message: str, tmp_path: Path, pairs_file: Path
) -> None:
    config = tmp_path / "my.toml"
    config.write_text(content)
    line = refused("fit", pairs_file, "-o", tmp_path / "model", "--config", config)
    assert line.startswith(f"error: {config}: ")
    assert message in line
    assert not (tmp_path / "model").exists()


def test_a_budget_is_a_time_and_the_demo_takes_none() -> None:
    assert [options.seconds(text) for text in ("", "90s", "10m", "1h")] == [0, 90, 600, 3_600]
    assert options.seconds("0s", none="0s") == 0
    for text in ("0s", "soon", "1d", "-1s", "nans"):
        with pytest.raises(ConfigError, match=f"--budget {text}: expected a time such as 90s"):
            options.seconds(text)
