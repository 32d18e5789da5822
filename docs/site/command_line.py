"""Write the reference page of the command line from the commands themselves."""

import inspect
import re
from typing import Any

import typer

from redraft.cli.app import app


def command_line_page() -> str:
    """Return the page: every command with its description, arguments and options."""
    group: Any = typer.main.get_command(app)
    context = group.make_context("redraft", ["--version"], resilient_parsing=True)
    names = group.list_commands(context)
    lines = [
        "# Command line",
        "",
        group.help,
        "",
        "Results go to stdout as JSON lines, or as a table with `--format table`; progress and "
        "errors go to stderr. Exit codes: 0 success, 1 `check` found problems, 2 error, "
        "130 interrupted.",
        "",
        "| command | does |",
        "|---|---|",
    ]
    commands = {name: group.get_command(context, name) for name in names}
    for name, command in commands.items():
        lines.append(f"| [`redraft {name}`](#redraft-{name}) | {_first_sentence(command.help)} |")
    for name, command in commands.items():
        lines += ["", f"## redraft {name}", "", f"    {_usage(name, command)}", ""]
        lines += [command.help, *_parameters(command, context)]
    return "\n".join(lines) + "\n"


def _usage(name: str, command: Any) -> str:
    arguments = [_argument(one) for one in command.params if one.param_type_name == "argument"]
    return " ".join(["redraft", name, *arguments, "[OPTIONS]"])


def _argument(parameter: Any) -> str:
    name = parameter.name.upper() + ("..." if parameter.nargs == -1 else "")
    return name if parameter.required else f"[{name}]"


def _first_sentence(text: str) -> str:
    paragraph = " ".join(inspect.cleandoc(text).split("\n\n")[0].split())
    return re.split(r"(?<=[a-z`)])\.(?: |$)", paragraph)[0]


def _parameters(command: Any, context: Any) -> list[str]:
    lines: list[str] = []
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            names = f"`{_argument(parameter)}`"
        else:
            names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
            if not parameter.is_flag:
                names += " " + _value(parameter, context)
        help_text = " ".join((parameter.help or "").split())
        lines.append(f"| {names} | {_cell(help_text + _default(parameter))} |")
    return ["", "| argument or option | meaning |", "|---|---|", *lines] if lines else []


def _value(parameter: Any, context: Any) -> str:
    """Return the placeholder of an option's value, in words."""
    shown: str = parameter.metavar or parameter.display_type(context).strip("<>")
    if "|" in shown:
        return f"`{_cell(shown)}`"
    words = {"int": "number", "float": "number", "str": "text", "path": "path", "list": "text"}
    return words.get(re.split(r"[ \[]", shown)[0].lower(), shown)


def _default(parameter: Any) -> str:
    """Return the note on a parameter's default, if it says something."""
    if parameter.required:
        return " Required." if parameter.param_type_name == "option" else ""
    value = parameter.default
    if callable(value) or value is None or value in ("", ()) or isinstance(value, bool):
        return ""
    return f" Default: `{getattr(value, 'value', value)}`."


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("<", "&lt;")
