"""Read small files in full, and refuse endless ones, such as devices and pipes."""

from pathlib import Path


class TooLargeError(ValueError):
    """A file that is larger than its reader accepts."""

    def __init__(self, most: int) -> None:
        super().__init__(f"larger than {most:,} bytes")


def read_at_most(path: Path, most: int) -> bytes:
    """Return the bytes of the file at `path`; raise TooLargeError if it has more than `most`.

    At most one byte more than that is read, so that even `/dev/zero` is safe to read. The
    size that the file system gives is not trusted: it is 0 for devices and pipes.
    """
    with path.open("rb") as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise TooLargeError(most)
    return content
