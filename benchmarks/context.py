"""The context of a cursor at the end of 5,000 lines: real modules, and one class without end."""

import ast
import sysconfig
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.measurement import Measurement, best_seconds
from redraft.completion.languages.python.cursor_context import find_context

LINES = 5000
METHOD = '''    def method(self, names, *, limit={}):
        """Do something."""
        found = self.look_up(names[limit], (limit, "text"))  # why
        return [each for each in found]

'''


def real_code() -> str:
    """The first lines of the standard library, module after module."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    lines: list[str] = []
    for path in sorted(folder.glob("*.py")):
        if len(lines) >= LINES:
            break
        lines += path.read_text(encoding="utf-8").split("\n")
    return "\n".join(lines[:LINES])


def parse(text: str) -> None:
    """The yardstick: a parser that needs the code to be whole; it may give up halfway."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except SyntaxError:
            return


def run() -> Iterator[Measurement]:
    """Milliseconds a cursor, beside the parser of the standard library."""
    one_class = "class Long:\n" + METHOD * (LINES // METHOD.count("\n"))
    for name, text in (("real modules", real_code()), ("one class", one_class)):
        tasks: dict[str, Callable[[], object]] = {
            "find": partial(find_context, text, len(text)),
            "parse": partial(parse, text),
        }
        seconds = best_seconds(tasks, rounds=9)
        ratio = seconds["find"] / seconds["parse"]
        yield Measurement(
            f"context in {LINES:,} lines, {name}", 1000 * seconds["find"], "ms", ratio, "ast.parse"
        )
