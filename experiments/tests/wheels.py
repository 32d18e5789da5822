"""Little packages that tests pack themselves, so that none is ever downloaded."""

import zipfile
from collections.abc import Mapping
from pathlib import Path


def function(number: int, *, body: str = "") -> str:
    """A function that says what it returns, unlike any of another number."""
    words = " + ".join(f"{name}{number} * {number * 7 + at}" for at, name in enumerate("abcdefgh"))
    return (
        f"def compute_{number}(a{number}):\n"
        f'    """Compute {number}.\n\n    :return: the result\n    """\n'
        f"    {body or f'total_{number} = {words}'}\n"
        f"    return [total_{number}, '{number}']\n\n\n"
    )


def source(*numbers: int) -> str:
    """A module of such functions."""
    return "".join(map(function, numbers))


def write_wheel(folder: Path, stem: str, files: Mapping[str, str | bytes]) -> Path:
    """A wheel in the folder, its name as pip writes it: `write_wheel(folder, "name-1.0", …)`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)  # of 1980, so that equal files make equal archives
            archive.writestr(entry, content, compress_type=zipfile.ZIP_DEFLATED)
    return path


def truncate(path: Path) -> Path:
    """Half of the file."""
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    return path


def write_bomb(path: Path, *, megabytes: int = 1024) -> Path:
    """An archive of about a thousandth of what it unpacks to."""
    path.parent.mkdir(parents=True, exist_ok=True)
    megabyte = bytes(1 << 20)
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("bomb.py", "w") as stream,
    ):
        for _ in range(megabytes):
            stream.write(megabyte)
    return path
