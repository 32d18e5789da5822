"""When to stay quiet, and how much of a suggestion to offer, as the editor's settings say."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import PurePath

from redraft.completion.languages.registry import names
from redraft.server.lsp.settings import LspSettings
from redraft.server.responses import CompletionSchema

_WORD = re.compile(r"\s*(?:\w+|[^\w\s]+)")
_LINE = re.compile(r"\s*[^\n]*")


def is_off(settings: LspSettings, path: str | None, language: str) -> bool:
    """Return True if suggestions are off for a language, or for a file by a glob.

    A glob without `/` is compared with the name of the file, another one with the end of its path.
    """
    if language in settings.off:
        return True
    globs = [glob for glob in settings.off if glob not in names()]
    return path is not None and any(_matches(path, glob) for glob in globs)


def _matches(path: str, glob: str) -> bool:
    file = PurePath(path).as_posix()
    if "/" not in glob:
        return fnmatchcase(PurePath(path).name, glob)
    return fnmatchcase(file, glob) or fnmatchcase(file, f"*/{glob.removeprefix('/')}")


def worth_showing(
    settings: LspSettings, completions: Sequence[CompletionSchema]
) -> list[CompletionSchema]:
    """Return the completions that are probable and long enough, each as far as is offered."""
    shown: dict[str, CompletionSchema] = {}
    for completion in completions:
        if _is_worth(settings, completion):
            text = offered(completion.text, settings.accept)
            shown.setdefault(text, completion.model_copy(update={"text": text}))
    return list(shown.values())


def _is_worth(settings: LspSettings, completion: CompletionSchema) -> bool:
    """Return True if a completion passes both limits; one without a probability always does."""
    if completion.probability is None:
        return True
    saved = completion.probability * len(completion.text.strip())
    return completion.probability >= settings.least_probability and (
        saved >= settings.least_keystrokes
    )


def offered(text: str, accept: str) -> str:
    """Return the first word or line of a suggestion, or all of it."""
    if accept == "all":
        return text
    match = (_WORD if accept == "word" else _LINE).match(text)
    return match[0] if match else text
