"""The text of `--help`: examples as commands to copy, one on a line."""

import inspect
import re

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
