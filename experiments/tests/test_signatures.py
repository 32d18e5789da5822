"""Mined signatures: which functions are left out, and what no two splits share."""

from pathlib import Path

from experiments.pairs.signatures import mine_signatures, split_signatures
from redraft.mining.python_functions import find_sources
from redraft.training.editor_config import count_projects

SOURCE = '''
def read(path, *, limit: int = 10):
    """Read a
    file.

    The limit is in bytes.
    """
    return open(path).read(limit)


def now():
    """The time."""
    return 1


def secret(key):
    return key


class Store:
    def close(self):
        """Close it."""
        self.closed = True

    @classmethod
    def make(cls):
        """Make one."""
        return cls()

    def get(self, name, default=None):
        """Get an item."""
        return self.items.get(name, default)
'''


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def test_functions_with_no_arguments_of_their_own_are_left_out(tmp_path: Path) -> None:
    found = mine_signatures(find_sources([write(tmp_path, store=SOURCE)]))
    assert [(dict(each.x), each.y) for each in found] == [
        (
            {"docstring": "Read a file.", "name": "read", "file": "store.py"},
            "(path, *, limit: int=10)",
        ),
        (
            {"docstring": "Get an item.", "name": "get", "file": "store.py"},
            "(self, name, default=None)",
        ),
    ]
    assert count_projects(found) == 1


def test_a_function_that_two_files_have_is_mined_once(tmp_path: Path) -> None:
    found = mine_signatures(find_sources([write(tmp_path, store=SOURCE, copied=SOURCE)]))
    assert [each.x["file"] for each in found] == ["copied.py", "copied.py"]


def test_a_file_that_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    found = mine_signatures(find_sources([write(tmp_path, broken="def (", store=SOURCE)]))
    assert len(found) == 2


def test_splits_share_nothing_and_are_drawn_the_same_way_again(tmp_path: Path) -> None:
    functions = [f'def f{at}(a{at}):\n    """Does {at}."""\n    return a{at}\n' for at in range(40)]
    found = mine_signatures(find_sources([write(tmp_path, many="\n".join(functions))]))
    splits = split_signatures(found, train=20, held_out=5)
    assert {name: len(part) for name, part in splits.items()} == {"train": 20, "dev": 5, "test": 5}
    identities = [each.identity for part in splits.values() for each in part]
    assert len(set(identities)) == len(identities)
    assert splits == split_signatures(found, train=20, held_out=5)
    assert splits["test"] == split_signatures(found, train=8, held_out=5)["test"]
