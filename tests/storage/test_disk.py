"""Examples on disk behave like a list of the same examples."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redraft.errors import ModelError, PairsError
from redraft.storage import disk
from redraft.storage.disk import (
    IDENTITIES,
    OFFSETS,
    DiskExamples,
    ExampleFile,
    chunks,
    gather,
    spool_examples,
    take,
)
from redraft.storage.examples import LINES
from redraft.types import Example

examples = st.lists(
    st.builds(
        Example,
        st.dictionaries(st.sampled_from(["name", "text"]), st.text(), min_size=1),
        st.text(st.characters()),
        st.dictionaries(st.sampled_from(["file", "line"]), st.integers() | st.text()),
    ),
    min_size=1,
    max_size=12,
)


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three examples are many, and two are in memory at once."""
    monkeypatch.setattr(disk, "IN_MEMORY_LIMIT", 3)
    monkeypatch.setattr(disk, "CHUNK", 2)


def some(count: int) -> list[Example]:
    return [Example({"text": f"x{at}"}, f"y{at}", {"at": at}) for at in range(count)]


def opened(folder: Path) -> DiskExamples:
    return DiskExamples(ExampleFile(folder / LINES, folder / OFFSETS, folder / IDENTITIES))


@given(examples, st.data())
@settings(max_examples=50, deadline=None)
def test_a_file_is_the_sequence_of_its_examples(known: list[Example], data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        held = spool_examples([known], Path(folder) / "held")
        assert len(held) == len(known)
        assert list(held) == known
        assert [held[row] for row in range(-len(known), len(known))] == known * 2
        assert list(held[1:-1]) == known[1:-1]
        assert list(held[::-2]) == known[::-2]
        assert [each for part in chunks(held) for each in part] == known
        assert list(held.identities) == [each.identity for each in known]
        rows = data.draw(st.lists(st.integers(0, len(known) - 1)))
        assert list(take(held, rows)) == [known[row] for row in rows]


@given(examples, examples, st.data())
@settings(max_examples=50, deadline=None)
def test_replacing_equals_that_of_a_list(
    known: list[Example], added: list[Example], data: st.DataObject
) -> None:
    gone = data.draw(st.sets(st.integers(0, len(known) - 1)))
    expected = [each for row, each in enumerate(known) if row not in gone]
    with TemporaryDirectory() as folder:
        held = spool_examples([known], Path(folder) / "held")
        assert list(held.replaced(sorted(gone), added)) == expected + added
        assert list(held.replaced(sorted(gone), [])) == expected
        apart = spool_examples([added], Path(folder) / "apart")
        assert list(held.replaced(sorted(gone), apart)) == expected + added


@given(examples)
@settings(max_examples=30, deadline=None)
def test_saved_examples_are_read_back(known: list[Example]) -> None:
    with TemporaryDirectory() as folder:
        held = spool_examples([known], Path(folder) / "held")
        for name, part in (("whole", held), ("part", held[::2])):
            (Path(folder) / name).mkdir()
            part.save(Path(folder) / name)
        assert list(opened(Path(folder) / "whole")) == known
        assert list(opened(Path(folder) / "part")) == known[::2]


def test_few_examples_stay_in_memory_and_many_go_to_the_file(tmp_path: Path) -> None:
    assert gather(iter(some(2)), tmp_path / "few") == some(2)
    assert not (tmp_path / "few").exists()
    many = gather(iter(some(5)), tmp_path / "many")
    assert isinstance(many, DiskExamples)
    assert list(many) == some(5)


def test_a_small_selection_is_a_list(tmp_path: Path) -> None:
    held = spool_examples([some(5)], tmp_path / "held")
    assert isinstance(held.take([4, 1]), DiskExamples)
    assert held.take([4]) == [some(5)[4]]


def test_duplicates_share_an_identity(tmp_path: Path) -> None:
    twice = [*some(4), *some(2)]
    held = spool_examples([twice], tmp_path / "held")
    assert held.with_identity(twice[1].identity) == [1, 5]
    assert held[1:].with_identity(twice[1].identity) == [0, 4]
    assert held.with_identity("00" * 16) == []


def test_files_are_deleted_with_the_last_reference(tmp_path: Path) -> None:
    held = spool_examples([some(4)], tmp_path / "held")
    more = held.replaced([0], some(1))
    assert isinstance(more, DiskExamples)
    assert more.folder.parent == held.folder
    del held
    assert not (tmp_path / "held").exists()
    # it goes on being read, though its name is gone, and can be saved
    assert list(more) == [*some(4)[1:], *some(1)]
    (tmp_path / "saved").mkdir()
    more.save(tmp_path / "saved")
    assert list(opened(tmp_path / "saved")) == list(more)


@pytest.mark.parametrize("name", [LINES, OFFSETS, IDENTITIES])
def test_a_truncated_file_is_refused(tmp_path: Path, name: str) -> None:
    spool_examples([some(4)], tmp_path / "held")[:].save(tmp_path)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).unlink()  # the lines may be another name of the same file
    (tmp_path / name).write_bytes(whole[:-1])
    with pytest.raises(ModelError, match=rf"{name}: damaged .*; copy or fit the model again"):
        opened(tmp_path)


def test_a_line_that_is_no_example_is_named(tmp_path: Path) -> None:
    spool_examples([some(4)], tmp_path / "held")[:].save(tmp_path)
    lines = (tmp_path / LINES).read_bytes().splitlines(keepends=True)
    (tmp_path / LINES).unlink()
    (tmp_path / LINES).write_bytes(b"".join([*lines[:2], b"?" * len(lines[2]), lines[3]]))
    with pytest.raises(ModelError, match=r"examples\.jsonl: damaged \(line 3 is not an example\)"):
        opened(tmp_path)[2]


def test_rows_may_be_any_integer_type(tmp_path: Path) -> None:
    held = spool_examples([some(5)], tmp_path / "held")
    assert held[int(np.int64(2))] == held[np.int64(2)] == some(5)[2]  # type: ignore[call-overload]


def test_an_existing_folder_keeps_its_files(tmp_path: Path) -> None:
    for name in ("notes.txt", LINES):
        (tmp_path / name).write_text("mine", encoding="utf-8")
    many = gather(iter(some(5)), tmp_path)
    assert list(many) == some(5)
    del many
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "notes.txt": "mine",
        LINES: "mine",
    }


def test_hard_linked_lines_are_not_overwritten(tmp_path: Path) -> None:
    held = gather(iter(some(5)), tmp_path / "held")
    assert isinstance(held, DiskExamples)
    (tmp_path / "saved").mkdir()
    held.save(tmp_path / "saved")  # and killed, before the files that were read were removed
    again = gather(iter(some(4)), tmp_path / "held")
    assert list(again) == some(4)
    assert list(opened(tmp_path / "saved")) == some(5)


def test_unreadable_examples_leave_no_files(tmp_path: Path) -> None:
    def coming() -> Iterator[Example]:
        yield from some(4)
        raise PairsError("a bad row")

    with pytest.raises(PairsError):
        gather(coming(), tmp_path / "held")
    assert not list(tmp_path.iterdir())
