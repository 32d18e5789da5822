"""The folder of a resumable training run: locked while it runs, deleted when it is done."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from redraft.storage.artifact_writer import remove_artifact
from redraft.storage.locking import exclusive

CHECKPOINT, PLAN, LOG = "checkpoint", "plan.json", "log.jsonl"
PARTS = ("retriever", "editor")


@contextmanager
def run_folder(folder: Path | None, part: str) -> Iterator[Path]:
    """Yield the folder for the training of one part; a temporary one if `folder` is None."""
    if folder is not None:
        yield folder / part
        return
    with TemporaryDirectory() as temporary:
        yield Path(temporary)


@contextmanager
def training_lock(folder: Path | None, *, is_main: bool) -> Iterator[None]:
    """Lock `folder` against other training runs; only the main process takes the lock."""
    if folder is None or not is_main:
        yield
        return
    with exclusive(folder):
        yield


def discard_run(folder: Path) -> None:
    """Delete the files of a finished training run, and the folder if it is then empty."""
    for part in PARTS:
        path = folder / part
        remove_artifact(path / CHECKPOINT)
        for name in (PLAN, LOG):
            (path / name).unlink(missing_ok=True)
        with suppress(OSError):  # missing, or not empty
            path.rmdir()
    with suppress(OSError):
        folder.rmdir()
