"""Options of the commands that ask a language model, and the client that they describe."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redraft.cli._console import print_note
from redraft.cli._options import ranged
from redraft.config.ranges import Range
from redraft.errors import ConfigError

if TYPE_CHECKING:
    from redraft.completion.lm_completion import LmCompleter
    from redraft.editing.lm_editor import LmEditor
    from redraft.lm.client import LmClient
    from redraft.model import RetrieveAndEdit
    from redraft.types import Example

TIME_LIMIT = 60.0
"""The default of `redraft.lm.client`, which needs httpx."""

LmOption = Annotated[
    str | None,
    typer.Option(
        "--lm",
        metavar="ADDRESS",
        help="OpenAI-compatible address of a language model, such as http://localhost:11434/v1. "
        "Inputs and examples are sent there. A key comes from REDRAFT_LM_KEY.",
        show_default=False,
    ),
]
LmModel = Annotated[
    str | None,
    typer.Option(help="Name of the language model. [the only one there]", show_default=False),
]
LmRemote = Annotated[
    bool,
    typer.Option(
        "--lm-remote",
        help="Confirm an address outside of this machine and of private networks.",
    ),
]
LmChat = Annotated[
    bool, typer.Option("--lm-chat", help="Ask by chat instead of completing a prompt.")
]
LmShots = Annotated[int, ranged(Range(0, 100), "Examples in a prompt, at most.")]
LmFunctions = Annotated[
    int, ranged(Range(0, 100), "Similar functions in the prompt of a completion, at most.")
]
LmContext = Annotated[
    int, ranged(Range(64, 1_000_000), "Context window of the language model, in tokens.")
]
LmTemplate = Annotated[
    Path | None,
    typer.Option(
        help="File with another prompt: a text with {x} and {y}, whose last paragraph repeats for "
        "each example."
    ),
]
LmTimeLimit = Annotated[
    float, ranged(Range(0.1, 3600.0), "Seconds to wait for an answer of the language model.")
]
LmRequests = Annotated[
    int | None,
    ranged(Range(1, 1_000_000_000), "Requests to the language model, at most. [no limit]"),
]


@dataclass(frozen=True)
class LmOptions:
    """Where a language model is, and how long it may take."""

    address: str
    is_remote: bool = False
    time_limit: float = TIME_LIMIT
    requests: int | None = None

    def client(self) -> "LmClient":
        """Return a client; sends nothing yet."""
        from redraft.lm.address import LmAddress

        address = LmAddress.parse(self.address, allow_remote=self.is_remote)
        from redraft.lm.client import LmClient

        return LmClient(address, time_limit=self.time_limit, requests=self.requests)


@dataclass(frozen=True)
class PromptOptions:
    """How a language model is asked."""

    model: str | None
    is_chat: bool
    shots: int
    context: int
    template: Path | None


def lm_editor(
    client: "LmClient", options: PromptOptions, examples: "Sequence[Example]"
) -> "LmEditor":
    """Return an editor that asks at the address of `client` for outputs like those of `examples`.

    Raises an error if nothing answers there, or if it is not clear which model is meant.
    """
    from redraft.editing.lm_editor import LmEditor
    from redraft.lm.prompt import TEMPLATE, PromptTemplate
    from redraft.lm.settings import LmSettings

    template = TEMPLATE
    if options.template is not None:
        try:
            template = options.template.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ConfigError(f"--lm-template {options.template}: is not UTF-8 text") from error
        PromptTemplate.parse(template, source=f"--lm-template {options.template}")
    settings = LmSettings.of(
        examples,
        model=client.find_model(options.model),
        is_chat=options.is_chat,
        shots=options.shots,
        context=options.context,
        template=template,
    )
    return LmEditor(settings, client)


def completer(
    options: LmOptions | None, model: str | None, *, shots: int, context: int
) -> "LmCompleter | None":
    """Return a completer that asks at the address; None without one. Sends nothing yet."""
    if options is None:
        return None
    from redraft.completion.lm_completion import LmCompleter, LmCompletionSettings

    return LmCompleter(options.client(), LmCompletionSettings(model, shots, context))


def connected(model: "RetrieveAndEdit", options: LmOptions | None) -> "RetrieveAndEdit":
    """Return a model that asks its language model, if an address is given for it.

    Without one, a note says that a model fitted with a language model answers without it.
    """
    from redraft.predictor import connect_lm, lm_name

    if options is not None:
        return connect_lm(model, options.client())
    name = lm_name(model)
    if name is not None and model.editor.name != "lm":
        print_note(f"answering without the language model {name}; --lm ADDRESS asks it as well")
    return model
