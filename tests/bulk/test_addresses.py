"""A file of any system is there in full or not at all, and is found by its full address."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem

from redraft.bulk.addresses import find_files, names_in, read_whole, remove_partial, write_whole
from redraft.errors import BulkError


class SharedDisk(LocalFileSystem):  # type: ignore[misc]
    """Files of another machine, as by sftp: an address names the machine, a path does not."""

    protocol = "shared"
    root_marker = "/"
    cuts: int | None = None

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        path = str(path).removeprefix("shared://host").rstrip("/")
        assert not path.startswith("shared://"), "no such machine"
        return path or "/"

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        assert mode == "overwrite"
        Path(path).write_bytes(value[: self.cuts])
        if self.cuts is not None:
            raise KeyboardInterrupt

    def isdir(self, path: str) -> bool:
        if "secret" in path:
            raise RuntimeError("no credentials\nmany lines")
        return Path(path).is_dir()


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[SharedDisk]]:
    monkeypatch.setattr(SharedDisk, "cuts", None)
    fsspec.register_implementation("shared", SharedDisk, clobber=True)
    yield SharedDisk
    SharedDisk.clear_instance_cache()


@pytest.mark.usefixtures("shared")
def test_files_of_a_folder_and_of_a_pattern_keep_their_machine(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").touch()
    address = f"shared://host{tmp_path}"
    for named in (address, f"{address}/", f"{address}/*.jsonl", f"{address}/a.jsonl"):
        assert find_files(named, (".jsonl",)) == [f"{address}/a.jsonl"]
    assert find_files(f"local://{tmp_path}", (".jsonl",)) == [str(tmp_path / "a.jsonl")]


def test_a_writer_that_is_killed_leaves_nothing_by_the_name(
    shared: type[SharedDisk], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = f"shared://host{tmp_path}/out"
    write_whole(f"{folder}/first", b"content")
    assert read_whole(f"{folder}/first") == b"content"
    monkeypatch.setattr(shared, "cuts", 3)
    with pytest.raises(KeyboardInterrupt):
        write_whole(f"{folder}/second", b"content")
    assert not (tmp_path / "out" / "second").exists()
    remove_partial(folder)
    assert names_in(folder) == {"first"}


@pytest.mark.usefixtures("shared")
def test_errors_of_a_file_system_are_one_line() -> None:
    expected = r"^shared://host/secret: cannot be read \(RuntimeError: no credentials\); check"
    with pytest.raises(BulkError, match=expected):
        find_files("shared://host/secret", (".jsonl",))


def test_a_file_that_another_wrote_meanwhile_is_as_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = Path.replace

    def after_another(partial: Path, file: Path) -> Path:
        file.write_bytes(b"content")
        remove_partial(str(tmp_path))
        return replace(partial, file)

    monkeypatch.setattr(Path, "replace", after_another)
    write_whole(str(tmp_path / "file"), b"content")
    assert names_in(str(tmp_path)) == {"file"}
