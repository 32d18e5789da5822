"""A made-up code base of methods that are alike, and a tiny model that learned to write them."""

from functools import cache
from pathlib import Path

from redraft import RetrieveAndEdit
from redraft.data.rows import BadRow
from redraft.mining.python_functions import Source, mine
from redraft.training.fit import FitOptions
from tests.greetings import SETTINGS

NOUNS = (
    *("apple", "banana", "cherry", "date", "elder", "fig", "grape", "hazel", "iris", "jade"),
    *("kiwi", "lemon", "mango", "nut", "olive", "peach", "quince", "rose", "sage", "thyme"),
)


def method(noun: str) -> str:
    """The source of a method."""
    return (
        f"    def add_{noun}(self, {noun}):\n"
        f'        """Add the {noun}."""\n'
        f"        if {noun} in self.all:\n"
        f"            return None\n"
        f"        return self.put({noun})\n"
    )


def source(nouns: tuple[str, ...]) -> str:
    """The source of a class with a method for each noun."""
    return "class Basket:\n" + "\n".join(map(method, nouns))


def write_project(folder: Path, nouns: tuple[str, ...] = NOUNS) -> Path:
    """A folder of sources, two methods a file."""
    folder.mkdir(parents=True, exist_ok=True)
    for at in range(0, len(nouns), 2):
        (folder / f"basket_{at}.py").write_text(source(nouns[at : at + 2]))
    return folder


@cache
def basket_model(folder: Path) -> RetrieveAndEdit:
    """A model of the methods; tests share it and must not change it."""
    path = folder / "basket.py"
    path.write_text(source(NOUNS))
    found = mine(Source(path, "basket", "basket.py"))
    assert not isinstance(found, BadRow)
    return RetrieveAndEdit.fit(found, editor="neural", options=FitOptions(SETTINGS, dev=()))
