"""The `redraft` command: registers the subcommands and turns errors into exit codes."""

import logging
import signal
import sys
import traceback
from importlib import import_module
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from redraft.cli import _failures, _streams
from redraft.cli._console import print_note
from redraft.cli._help import with_examples
from redraft.errors import RedraftError, TrainingInterrupted, missing_neural

_UsageError: Any = typer.BadParameter.__base__
"""Taken from typer, which may bundle its own click."""

EXIT_INTERRUPTED = 130
EXIT_READER_GONE = 141
"""The shell's exit code for a program ended by SIGPIPE."""


class Verbs(TyperGroup):
    """The command group. User and system errors print one line and exit with code 2."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments before the subcommand."""
        if not args:
            return super().parse_args(ctx, args)  # prints the help
        try:
            return super().parse_args(ctx, args)
        except _UsageError as error:
            _fail(_usage(error))

    def invoke(self, ctx: Any) -> Any:
        """Run the subcommand and turn its errors into one line and an exit code."""
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort):
            raise
        except TrainingInterrupted as stop:
            print_note(str(stop))
            raise typer.Exit(EXIT_INTERRUPTED) from stop
        except RedraftError as error:
            _fail(str(error))
        except _UsageError as error:
            _fail(_usage(error))
        except (Exception, KeyboardInterrupt) as error:
            if _streams.is_reader_gone(error):
                raise typer.Exit(EXIT_READER_GONE) from error
            if _failures.is_interrupt(error):
                print_note("interrupted; no partial output was left behind")
                raise typer.Exit(EXIT_INTERRUPTED) from error
            missing = missing_neural(error, purpose=f"`redraft {ctx.invoked_subcommand}`")
            system = _failures.describe(error, written=_failures.written(ctx))
            described = system if missing is None else str(missing)
            if described is None:
                raise
            _fail(described)


def _fail(message: str) -> NoReturn:
    print_note(f"error: {_failures.one_line(message)}")
    raise typer.Exit(2)


def _usage(error: Any) -> str:
    """Return the message of a usage error, with a pointer to `--help`."""
    command = getattr(error.ctx, "command_path", "redraft")
    message = error.format_message().replace("Value error, ", "").rstrip(".")
    return f"{message}; see `{command} --help`"


app = typer.Typer(
    cls=Verbs,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Learn from input → output pairs: retrieve the most similar example, edit its output "
    "into the answer, and show where the answer comes from.\n\n"
    "Start with `redraft demo`, or with your own pairs: `redraft check`, `fit`, `predict`.",
)
for name in (
    *("check", "mine", "split", "config", "fit", "retrieve", "predict", "embed", "complete"),
    *(
        "evaluate",
        "compare",
        "score",
        "add",
        "remove",
        "index",
        "info",
        "serve",
        "lsp",
        "lm",
        "demo",
    ),
):
    verb = import_module(f"redraft.cli.{name}")
    about = with_examples(verb.command.__doc__)
    app.command(name, cls=getattr(verb, "cls", _failures.Verb), help=about)(verb.command)


@app.callback(invoke_without_command=True)
def version(
    show: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    """Send the library's log to stderr, and handle `--version`."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    logging.getLogger("redraft").setLevel(logging.INFO)
    if show:
        from redraft import __version__

        typer.echo(f"redraft {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command and exit: 0 success, 1 findings, 2 error, 130 interrupted, 141 no reader."""
    _streams.prepare()
    code: int | str | None = 0
    try:
        app(prog_name="redraft")
    except SystemExit as leave:
        # Rich, which prints --help, exits with 1 if the reader is gone
        is_gone = isinstance(leave.__context__, BrokenPipeError)
        code = EXIT_READER_GONE if is_gone else leave.code
    except BrokenPipeError:  # from --help
        code = EXIT_READER_GONE
    except Exception as error:
        described = _failures.describe(error, written=_streams.STDOUT)  # from --help
        if described is None:  # a bug: show the traceback
            traceback.print_exc()
        else:
            print_note(f"error: {described}")
        code = 2
    broken = _streams.finish_stdout()
    if broken is not None and _streams.is_reader_gone(broken):
        code = EXIT_READER_GONE
    elif broken is not None and code in (None, 0, 1):
        print_note(f"error: {_failures.describe(broken)}")
        code = 2
    _streams.finish_stderr()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback while Python shuts down
    sys.exit(code)
