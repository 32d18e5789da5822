"""The surroundings of a cursor."""

import pytest

from redraft.completion.surroundings import Surroundings, code_after

BUFFER = """import os
from pathlib import (
    Path,
    PurePath as Pure,
)


def f(a):
    local = a
    return local
"""


def test_visible_names_are_those_of_the_module() -> None:
    found = Surroundings.of(BUFFER, BUFFER.index("local"))
    assert {"os", "Path", "PurePath", "Pure", "f", "len"} <= found.visible
    assert "local" not in found.visible
    assert {"local", "a"} <= found.names
    assert found.line == 9


@pytest.mark.parametrize(
    ("text", "after"),
    [
        (
            "def f():\n    a = ¦\n    b = 2\n\n    return b\n\n\ndef g():\n    pass\n",
            "b = 2\n\nreturn b",
        ),
        ("def f():\n    a = ¦\n\n\ndef g():\n    pass\n", ""),
        ("def f():\n    if a:¦\n        b\n    c\n", "    b\nc"),
    ],
)
def test_the_code_after_the_cursor_ends_with_its_block(text: str, after: str) -> None:
    offset = text.index("¦")
    assert code_after(text.replace("¦", ""), offset, "    ") == after
