"""A code base as the examples of a model: mined, compared by file, exchanged where they changed.

Nothing is trained. Knows no protocol and no terminal.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from redraft.data.example import Example
from redraft.data.python_functions import FIELDS, Source, find_sources, mine
from redraft.data.rows import BadRow
from redraft.errors import PairsError
from redraft.retrieval.retriever import Retriever
from redraft.retrieve_and_edit import RetrieveAndEdit

Watch = Callable[[Sequence[Source]], Iterable[Source]]
"""Passes the sources on, and shows how far it got."""


@dataclass(frozen=True)
class Project:
    """The functions of each file of a code base, and the files that could not be read."""

    files: dict[str, list[Example]]
    skipped: list[BadRow]

    @classmethod
    def read(
        cls, paths: Sequence[Path], *, without: Iterable[str] = (), watch: Watch = iter
    ) -> "Project":
        """Every function with a body under the paths, documented or not."""
        return cls({}, []).updated(find_sources(paths, without=without), watch=watch)

    def updated(
        self, sources: Sequence[Source], *, removed: Iterable[str] = (), watch: Watch = iter
    ) -> "Project":
        """The project with these sources read again, and without the files of these names.

        Sources that share a name are given together. Where one of them cannot be read, what the
        name had stays.
        """
        found: dict[str, list[Example]] = {}
        skipped: list[BadRow] = []
        for source in watch(sources):
            mined = mine(source, documented_only=False)
            if isinstance(mined, BadRow):
                skipped.append(mined)
            else:
                found.setdefault(source.name, []).extend(mined)
        gone = set(removed)
        stays = {bad.file for bad in skipped} & self.files.keys()
        files = {name: held for name, held in self.files.items() if name not in gone}
        files |= {name: examples for name, examples in found.items() if name not in stays}
        judged = gone | {source.name for source in sources}
        return Project(files, [bad for bad in self.skipped if bad.file not in judged] + skipped)


@dataclass(frozen=True)
class Change:
    """What an index must do to hold a project: rows that go, examples that come."""

    rows: list[int]
    examples: list[Example]

    @classmethod
    def between(cls, retriever: Retriever, project: Project) -> "Change":
        """Files whose functions are the same stay; of all others the examples are exchanged."""
        rows: dict[str, list[int]] = {}
        for row, example in enumerate(retriever.examples):
            rows.setdefault(str(example.meta.get("file")), []).append(row)
        known = retriever.examples
        same = {
            name
            for name, found in project.files.items()
            if [known[row] for row in rows.get(name, [])] == found
        }
        return cls(
            sorted(row for name, held in rows.items() if name not in same for row in held),
            [each for name, found in project.files.items() if name not in same for each in found],
        )


def index_project(model: RetrieveAndEdit, project: Project) -> tuple[RetrieveAndEdit, Change]:
    """The model over the functions of a project, and what changed."""
    if not any(project.files.values()):
        raise PairsError("no function with a body was found; name a folder of Python sources")
    fields = list(model.retriever.examples[0].x) if model.retriever.examples else []
    if fields and fields != list(FIELDS):
        raise PairsError(
            f"this model's input has the fields {', '.join(fields)}; a code base needs a model of "
            f"mined functions ({', '.join(FIELDS)})"
        )
    change = Change.between(model.retriever, project)
    if not (change.rows or change.examples):
        return model, change
    retriever = model.retriever.replace(change.rows, change.examples)
    return RetrieveAndEdit(retriever, model.editor), change
