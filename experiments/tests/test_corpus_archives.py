"""Archives are read as data: whatever they hold, nothing escapes, floods memory or runs."""

import gzip
import io
import random
import stat
import tarfile
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from experiments.corpus.archives import ArchiveError, File, Limits, read_files
from experiments.tests.wheels import truncate, write_bomb, write_wheel
from redraft.data.rows import BadRow

SMALL = Limits(file_bytes=1_000, archive_bytes=3_000, entries=5)


def read(path: Path, limits: Limits | None = None) -> list[File | BadRow]:
    return list(read_files(path, wanted=lambda name: name.endswith(".py"), limits=limits))


def refusal(path: Path, limits: Limits | None = None) -> str:
    with pytest.raises(ArchiveError) as caught:
        read(path, limits)
    return str(caught.value)


def write_tar(path: Path, files: Mapping[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def zipped(folder: Path, files: Mapping[str, bytes]) -> Path:
    return write_wheel(folder, "a-1", files)


def tarred(folder: Path, files: Mapping[str, bytes]) -> Path:
    return write_tar(folder / "a-1.tar.gz", {f"a-1/{name}": files[name] for name in files})


Write = Callable[[Path, Mapping[str, bytes]], Path]
either = pytest.mark.parametrize("write", [zipped, tarred])


@either
def test_the_wanted_files_come_in_the_order_of_the_archive(write: Write, tmp_path: Path) -> None:
    path = write(tmp_path, {"p/b.py": b"b", "p/readme.md": b"-", "p/a.py": b"a"})
    assert read(path) == [File("p/b.py", b"b"), File("p/a.py", b"a")]


@either
def test_a_large_file_is_reported_and_the_others_are_read(write: Write, tmp_path: Path) -> None:
    path = write(tmp_path, {"large.py": b"#" * 1_001, "small.py": b"x = 1"})
    assert read(path, SMALL) == [
        BadRow("large.py", 1, "larger than 1,000 bytes"),
        File("small.py", b"x = 1"),
    ]


@either
def test_more_bytes_than_allowed_are_refused_before_they_are_read(
    write: Write, tmp_path: Path
) -> None:
    path = write(tmp_path, {f"{number}.txt": bytes(1_000) for number in range(4)})
    assert refusal(path, SMALL) == (
        f"{path.name}: unpacks to more than 3,000 bytes; do not trust it"
    )


@either
def test_more_files_than_allowed_are_refused(write: Write, tmp_path: Path) -> None:
    path = write(tmp_path, {f"{number}.py": b"" for number in range(6)})
    assert refusal(path, SMALL) == f"{path.name}: holds more than 5 files; do not trust it"


@pytest.mark.parametrize(
    "name", ["../evil.py", "p/../../evil.py", "/etc/evil.py", "..\\evil.py", "C:\\evil.py"]
)
def test_a_name_that_leads_outside_is_refused(name: str, tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path, "a-1", {"good.py": b"x = 1", name: b"x = 2"})
    expected = f"names a file outside of itself ({name!r}); do not trust it"
    assert refusal(wheel) == f"{wheel.name}: {expected}"
    tarball = write_tar(tmp_path / "a-1.tar.gz", {"a-1/good.py": b"x = 1", name: b"x = 2"})
    assert refusal(tarball) == f"{tarball.name}: {expected}"
    assert {path.name for path in tmp_path.iterdir()} == {wheel.name, tarball.name}


def test_names_with_dots_in_them_are_fine(tmp_path: Path) -> None:
    path = write_wheel(tmp_path, "a-1", {"./a..b.py": b"", "...py": b""})
    assert [file.name for file in read(path) if isinstance(file, File)] == ["./a..b.py", "...py"]


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    bomb = write_bomb(tmp_path / "bomb-1.0-py3-none-any.whl")
    assert bomb.stat().st_size < 10_000_000
    assert refusal(bomb) == f"{bomb.name}: unpacks to more than 536,870,912 bytes; do not trust it"
    small = write_bomb(tmp_path / "small-1.0-py3-none-any.whl", megabytes=100)
    assert (
        refusal(small) == f"{small.name}: unpacks to more than 100 times its size; do not trust it"
    )


def write_headed(path: Path, headers: list[tuple[bytes, bytes]]) -> Path:
    """A tarball of one small file with extended headers of these types and contents before it."""
    blocks = []
    for kind, content in headers:
        header = tarfile.TarInfo("a-1/header")
        header.type, header.size = kind, len(content)
        blocks += [header.tobuf(tarfile.USTAR_FORMAT), content, bytes(-len(content) % 512)]
    entry = tarfile.TarInfo("a-1/m.py")
    entry.size = 5
    blocks += [entry.tobuf(tarfile.USTAR_FORMAT), b"x = 1".ljust(512, b"\0"), bytes(1024)]
    with gzip.open(path, "wb") as stream:
        stream.writelines(blocks)
    return path


def pax_record(key: bytes, value: bytes) -> bytes:
    length = len(key) + len(value) + 3
    length += len(str(length + len(str(length))))
    return b"%d %s=%s\n" % (length, key, value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"1" * 200_000, "a header of 200,000 bytes"),
        (b"1" * 60_000, "an invalid PAX header"),
        (b"3 " * 30_000 + b"=", "an invalid PAX header"),  # a key from each of its places
        (b"9" * 7 + b" path=a\n", "an invalid PAX header"),
        (pax_record(b"path", b"1" * 60_000), "a PAX header with a number that is too long"),
    ],
    ids=["long", "digits", "overlapping", "beyond", "value of digits"],
)
def test_a_hostile_header_of_a_tarball_is_refused_at_once(
    content: bytes, reason: str, tmp_path: Path
) -> None:
    path = write_headed(tmp_path / "a-1.tar.gz", [(tarfile.XHDTYPE, content)])
    assert path.stat().st_size < 600
    start = time.process_time()
    assert refusal(path) == f"{path.name}: holds {reason}; do not trust it"
    assert time.process_time() - start < 0.5  # tarfile alone takes minutes for the first


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_memory_stays_bounded_whatever_the_length_of_a_header(kind: bytes, tmp_path: Path) -> None:
    path = write_headed(tmp_path / "a-1.tar.gz", [(kind, bytes(50_000_000))])
    tracemalloc.start()
    try:
        expected = f"{path.name}: holds a header of 50,000,000 bytes; do not trust it"
        assert refusal(path) == expected
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000


def test_headers_that_never_come_to_a_file_are_refused(tmp_path: Path) -> None:
    header = (tarfile.XGLTYPE, pax_record(b"comment", b"z" * 60_000))
    path = write_headed(tmp_path / "a-1.tar.gz", [header] * 5)
    assert refusal(path) == f"{path.name}: unpacks to more than it claims; do not trust it"


def test_headers_count_as_content(tmp_path: Path) -> None:
    path = tmp_path / "a-1.tar.gz"
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for number in range(20):
            entry = tarfile.TarInfo(f"a-1/{number}.py")
            entry.pax_headers = {"comment": "z" * 50_000}
            archive.addfile(entry)
    assert len(read(path)) == 20
    limits = Limits(archive_bytes=300_000)
    assert refusal(path, limits) == f"{path.name}: unpacks to more than it claims; do not trust it"


def test_extended_headers_are_understood(tmp_path: Path) -> None:
    name = "a-1/" + "long/" * 60 + "größe.py"
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        path = tmp_path / f"a-{form}.tar.gz"
        with tarfile.open(path, "w:gz", format=form) as archive:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = 5, 1700000000.123456
            if form == tarfile.GNU_FORMAT:
                entry.mtime = 1700000000
            archive.addfile(entry, io.BytesIO(b"x = 1"))
        assert read(path) == [File(name.partition("/")[2], b"x = 1")]


@either
def test_a_truncated_archive_is_an_error(write: Write, tmp_path: Path) -> None:
    files = {f"{number}.py": random.Random(number).randbytes(2_000) for number in range(20)}
    path = truncate(write(tmp_path, files))
    message = refusal(path)
    assert message.startswith(f"{path.name}: damaged (")
    assert message.endswith("); delete it and run the same command to download it again")


@pytest.mark.parametrize("content", [b"", b"PK", b"no archive at all", bytes(1_000)])
@pytest.mark.parametrize("name", ["a-1.whl", "a-1.zip", "a-1.tar.gz"])
def test_what_is_no_archive_is_an_error(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    assert refusal(tmp_path / name).startswith(f"{name}: damaged (")


def test_a_member_that_cannot_be_unpacked_is_reported(tmp_path: Path) -> None:
    path = write_wheel(tmp_path, "a-1", {"bad.py": b"x = 1" * 50, "good.py": b"y = 2"})
    with zipfile.ZipFile(path) as archive:
        start = archive.getinfo("bad.py").header_offset + 30 + len("bad.py")
    content = bytearray(path.read_bytes())
    content[start : start + 4] = b"\xff\xff\xff\xff"
    path.write_bytes(content)
    bad, good = read(path)
    assert isinstance(bad, BadRow)
    assert bad.reason.startswith("cannot be unpacked (")
    assert good == File("good.py", b"y = 2")


def test_a_member_that_is_longer_than_it_says_is_reported(tmp_path: Path) -> None:
    path = write_bomb(tmp_path / "a-1.whl", megabytes=20)
    content = bytearray(path.read_bytes())
    entry = content.index(b"PK\x01\x02")
    content[entry + 24 : entry + 28] = (10).to_bytes(4, "little")
    path.write_bytes(content)
    tracemalloc.start()
    found = read(path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == [BadRow("bomb.py", 1, "cannot be unpacked (Bad CRC-32 for file 'bomb.py')")]
    assert most < 5_000_000


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_way_of_packing_that_has_no_bound_is_reported(packing: int, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a-1.whl", "w", packing) as archive:
        archive.writestr("a.py", "x = 1")
    assert read(tmp_path / "a-1.whl") == [
        BadRow("a.py", 1, "compressed with a method that wheels do not use")
    ]


def test_a_member_under_a_password_is_reported(tmp_path: Path) -> None:
    path = write_wheel(tmp_path, "a-1", {"bad.py": b"x = 1"})
    content = bytearray(path.read_bytes())
    content[6] |= 1  # the flag in the file's own header and in the list of all files
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    (bad,) = read(path)
    assert isinstance(bad, BadRow)
    assert "encrypted" in bad.reason


def test_links_and_devices_are_passed_over(tmp_path: Path) -> None:
    tarball = tmp_path / "a-1.tar.gz"
    with tarfile.open(tarball, "w:gz") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
            entry = tarfile.TarInfo(f"a-1/{kind.decode()}.py")
            entry.type, entry.linkname = kind, "/etc/passwd"
            archive.addfile(entry)
    assert read(tarball) == []
    wheel = tmp_path / "a-1.whl"
    with zipfile.ZipFile(wheel, "w") as zipped_archive:
        link = zipfile.ZipInfo("link.py")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        zipped_archive.writestr(link, "/etc/passwd")
        zipped_archive.writestr("folder.py/", "")
    assert read(wheel) == []
