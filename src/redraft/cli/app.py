"""The `redraft` command: its verbs, and what becomes of an error."""

import logging
import sys
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from redraft.cli import (
    add,
    check,
    complete,
    demo,
    embed,
    evaluate,
    experiment,
    fit,
    index,
    info,
    lsp,
    mine,
    predict,
    remove,
    retrieve,
    score,
    serve,
    split,
)
from redraft.errors import RedraftError, TrainingInterrupted


class Verbs(TyperGroup):
    """The verbs, with every error of a user's as one line and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the verb."""
        try:
            return super().invoke(ctx)
        except TrainingInterrupted as stop:
            typer.echo(str(stop), err=True)
            ctx.exit(130)
        except RedraftError as error:
            typer.echo(f"error: {error}", err=True)
            ctx.exit(2)
        except KeyboardInterrupt:
            typer.echo("interrupted; nothing half-written was left behind", err=True)
            ctx.exit(130)


app = typer.Typer(
    cls=Verbs,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Learn from input → output pairs: retrieve the example that is easiest to edit into "
    "the answer, edit it, and show the source.\n\n"
    "Start with `redraft demo`, or with your own pairs: `redraft check`, `fit`, `predict`.",
)
for verb in (
    *(check, mine, split, fit, retrieve, predict, embed, complete, evaluate, score),
    *(add, remove, index, info, serve, lsp, experiment, demo),
):
    cls = getattr(verb, "cls", TyperCommand)
    app.command(verb.__name__.rpartition(".")[2], cls=cls)(verb.command)


@app.callback(invoke_without_command=True)
def version(
    show: bool = typer.Option(False, "--version", help="Print the version and leave."),
) -> None:
    """What holds for every verb: the library's remarks go to stderr."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    logging.getLogger("redraft").setLevel(logging.INFO)
    if show:
        from redraft import __version__

        typer.echo(f"redraft {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command and leave: 0 done, 1 found something, 2 could not, 130 interrupted."""
    app(prog_name="redraft")
