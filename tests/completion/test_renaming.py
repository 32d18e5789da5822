"""Names of a retrieved function, replaced by those of the function at the cursor."""

import pytest

from redraft.completion.languages.python.language import PYTHON
from redraft.completion.renaming import Renaming


def function(name: str, arguments: str) -> dict[str, str]:
    return {"docstring": "", "name": name, "arguments": arguments}


@pytest.mark.parametrize(
    ("source", "target", "body", "renamed"),
    [
        (
            function("get_user", "self, user_id"),
            function("get_order", "self, order_id"),
            "user = self.users[user_id]\nreturn UserCard(user, USER_KIND)",
            "order = self.users[order_id]\nreturn OrderCard(order, ORDER_KIND)",
        ),
        (function("load", "path"), function("load", "path"), "open(path)", "open(path)"),
        (function("f", "a, b=None"), function("f", "x, b=None"), "a + ab", "x + ab"),
        (function("add_one", "n"), function("subtract", "n"), "n + one", "n + one"),
    ],
)
def test_what_differs_between_the_headers_is_renamed(
    source: dict[str, str], target: dict[str, str], body: str, renamed: str
) -> None:
    assert Renaming.between(source, target).apply(body) == renamed


def test_arguments_are_read_without_annotations_and_defaults() -> None:
    arguments = "self, pairs: Mapping[str, tuple[int, str]], *rest: int, key=(1, 2), **others"
    assert PYTHON.argument_names(arguments) == ["self", "pairs", "rest", "key", "others"]
