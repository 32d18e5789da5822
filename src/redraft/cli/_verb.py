"""Base class of all commands: records the output path for errors that do not name it."""

from typing import Any

from typer.core import TyperCommand

_WRITTEN = "redraft.written"


class Verb(TyperCommand):
    """A command that stores its output path, `--out` or the model, in its context."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        path = ctx.params.get("out") or ctx.params.get("model")
        ctx.meta[_WRITTEN] = None if path is None else str(path)
        return super().invoke(ctx)


def written(ctx: Any) -> str | None:
    """Return the output path of the command run in `ctx`; None if it has not started."""
    path: str | None = ctx.meta.get(_WRITTEN)
    return path
