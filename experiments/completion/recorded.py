"""Cursors as files, and the suggestions that other systems made at them.

A system that cannot be asked over HTTP, such as an older version, reads the cursors and writes a
line with its first suggestion for each, in the same order.
"""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.completion.projects import CutProject, buffer_at, cursors, write_project
from redraft.errors import PairsError


@dataclass(frozen=True)
class Recorded:
    """The first suggestion of a system at a cursor, without the indentation of the body."""

    text: str
    milliseconds: float
    source: str | None = None

    def to_json(self) -> str:
        """Return the suggestion as a line of JSON."""
        return json.dumps(self.__dict__, ensure_ascii=False)


def write_cursors(projects: Sequence[CutProject], rng: random.Random, folder: Path) -> None:
    """Write the cut projects, and a line for each cursor: its buffer and its indentation."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "cursors.jsonl").open("w", encoding="utf-8") as file:
        for project in projects:
            write_project(project, folder / "projects" / project.name)
            for asked in project.asked:
                for cursor in cursors(asked.example.y, rng):
                    text, offset = buffer_at(project.files[asked.file], asked, cursor)
                    row = {
                        "project": project.name,
                        "file": asked.file,
                        "text": text,
                        "offset": offset,
                        "indentation": asked.indentation,
                    }
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")


def read_recorded(path: Path) -> Iterator[Recorded]:
    """Yield the suggestions of a file, one line for each cursor."""
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if line:
            try:
                yield Recorded(**json.loads(line))
            except (ValueError, TypeError) as error:
                raise PairsError(
                    f"{path}:{number}: expected text, milliseconds and source ({error})"
                ) from error
