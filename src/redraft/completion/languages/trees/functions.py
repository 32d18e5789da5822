"""Functions in a syntax tree as examples: doc comment, name and arguments to body."""

import re

from redraft.completion.languages.trees.grammar import FunctionNode
from redraft.types import Input

_SPACE = re.compile(r"\s+")
_MARK = re.compile(r"^[ \t]*(?:/\*+!?|\*+/|\*|//+!?)?[ \t]?")
_END = re.compile(r"[ \t]*\*+/[ \t]*$")
_BLOCKS = ("block", "body", "program", "source_file")


def input_of(function: FunctionNode) -> Input:
    """Return the doc comment, the name and the arguments of a function."""
    lists = [function.text(node).strip()[1:-1] for node in function.arguments]
    arguments = ", ".join(_SPACE.sub(" ", one).strip().rstrip(",") for one in lists)
    return {
        "docstring": _doc_comment(function),
        "name": function.text(function.name).strip("\"'`"),
        "arguments": arguments.removeprefix(", ").removesuffix(", "),
    }


def indentation_of(line: str) -> str:
    """Return the white space at the start of a line."""
    return line[: len(line) - len(line.lstrip())]


def dedented(inside: str, indentation: str) -> list[str]:
    """Return the lines between the braces of a body without `indentation`."""
    first, *lines = inside.split("\n")
    first = first.lstrip()
    return ([first] if first.strip() else []) + [line.removeprefix(indentation) for line in lines]


def first_indentation(inside: str) -> str | None:
    """Return the indentation of the first line of a body below its brace, None without one."""
    lines = inside.split("\n")[1:]
    return next((indentation_of(line) for line in lines if line.strip()), None)


def body_of(function: FunctionNode) -> str:
    """Return the text between the braces of a body, without its indentation."""
    inside = function.text(function.body)[1:].removesuffix("}")
    lines = dedented(inside, first_indentation(inside) or "")
    return "\n".join(lines).strip("\n").rstrip()


def _doc_comment(function: FunctionNode) -> str:
    """Return the text of the comments directly above a function."""
    node = function.whole
    while (
        (parent := node.parent)
        and parent.start_point.row == node.start_point.row
        and not parent.type.endswith(_BLOCKS)
    ):
        node = parent
    comments: list[str] = []
    row = node.start_point.row
    above = node.prev_sibling
    while above and above.type == "decorator":
        row, above = above.start_point.row, above.prev_sibling
    while above and "comment" in above.type and above.end_point.row == row - 1:
        comments.append(function.text(above))
        row, above = above.start_point.row, above.prev_sibling
    lines = [_END.sub("", line) for comment in reversed(comments) for line in comment.split("\n")]
    return "\n".join(_MARK.sub("", line).rstrip() for line in lines).strip()
