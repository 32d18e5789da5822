"""The text of `--help`: examples as commands to copy, and a list for narrow terminals."""

import inspect
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

WIDE = 100
"""Columns of a terminal that hold the options of `fit` with their meaning beside them."""

_INDENT = 6

_EXAMPLES = re.compile(r"\n\nExamples?: (?P<commands>`.*)\Z", flags=re.DOTALL)


def with_examples(docstring: str | None) -> str:
    """Return a command's docstring with its last paragraph of examples as a block of code."""
    text = inspect.cleandoc(docstring or "")
    found = _EXAMPLES.search(text)
    if found is None:
        return text
    commands = re.findall(r"`(.+?)`", found["commands"], flags=re.DOTALL)
    block = "\n".join(" ".join(command.split()) for command in commands if "redraft" in command)
    return f"{text[: found.start()]}\n\nExamples:\n\n```sh\n{block}\n```"


def narrow_help(command: Any, context: Any) -> "RenderableType":
    """Return the help of a command for a narrow terminal: each meaning stands below its option."""
    from rich.console import Group
    from rich.markdown import Markdown
    from rich.padding import Padding
    from rich.text import Text

    parts: list[RenderableType] = [
        Text(command.get_usage(context), style="bold"),
        Text(),
        Markdown(command.help or ""),
    ]
    titles = {"argument": "Arguments", "option": "Options"}
    shown = [param for param in command.get_params(context) if not getattr(param, "hidden", False)]
    for kind, title in titles.items():
        records = [
            param.get_help_record(context) for param in shown if param.param_type_name == kind
        ]
        if records:
            parts += [Text(), Text(title, style="bold")]
        for name, meaning in filter(None, records):
            parts.append(Padding(Text(name, style="cyan"), (0, 0, 0, 2)))
            parts.append(Padding(Text(meaning.replace("`", "")), (0, 0, 0, _INDENT)))
    return Group(*parts)
