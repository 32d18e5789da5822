"""A code base as the examples of a model: mined, compared by file, updated where files changed.

Trains nothing. Knows no protocol and no terminal.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from redraft.completion.languages.registry import language_of, suffixes
from redraft.data.rows import BadRow
from redraft.editing.base import VerbatimEditor
from redraft.errors import PairsError
from redraft.mining.python_functions import FIELDS, Source, find_sources, read_content
from redraft.model import RetrieveAndEdit
from redraft.retrieval.base import Retriever
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.types import Example

Progress = Callable[[Sequence[Source]], Iterable[Source]]
"""Wraps the sources to report progress while they are iterated."""


def sources_of(paths: Iterable[Path], *, without: Iterable[str] = ()) -> list[Source]:
    """Return the files of all languages under `paths`, except in folders named in `without`."""
    return find_sources(paths, without=without, suffixes=suffixes())


def mine_all(source: Source) -> list[Example] | BadRow:
    """Return the functions with a body of a file; BadRow if it cannot be read."""
    content = read_content(source)
    if isinstance(content, BadRow):
        return content
    language = language_of(source.name)
    return language.mine(content, name=source.name, package=source.package)


@dataclass(frozen=True)
class Project:
    """The functions of a code base by file, and the files that could not be read."""

    files: dict[str, list[Example]]
    skipped: list[BadRow]

    @classmethod
    def read(
        cls, paths: Sequence[Path], *, without: Iterable[str] = (), watch: Progress = iter
    ) -> "Project":
        """Mine every function with a body under `paths`, except in folders named in `without`."""
        return cls({}, []).updated(sources_of(paths, without=without), watch=watch)

    def updated(
        self, sources: Sequence[Source], *, removed: Iterable[str] = (), watch: Progress = iter
    ) -> "Project":
        """Return the project with `sources` read again and the files named in `removed` dropped.

        Sources that share a name must be given together. If one of them cannot be read, the
        previous functions of that name stay.
        """
        updated: dict[str, list[Example]] = {}
        skipped: list[BadRow] = []
        for source in watch(sources):
            mined = mine_all(source)
            if isinstance(mined, BadRow):
                skipped.append(mined)
            else:
                updated.setdefault(source.name, []).extend(mined)
        dropped = set(removed)
        unreadable = {bad.file for bad in skipped} & self.files.keys()
        files = {name: examples for name, examples in self.files.items() if name not in dropped}
        files |= {name: examples for name, examples in updated.items() if name not in unreadable}
        changed = dropped | {source.name for source in sources}
        return Project(files, [bad for bad in self.skipped if bad.file not in changed] + skipped)


@dataclass(frozen=True)
class IndexChange:
    """The difference between an index and a project: rows to remove and examples to add."""

    rows: list[int]
    examples: list[Example]

    @classmethod
    def between(cls, retriever: Retriever, project: Project) -> "IndexChange":
        """Return the change that replaces the examples of all files that differ."""
        indexed = retriever.examples
        rows_of: dict[str, list[int]] = {}
        for row, example in enumerate(indexed):
            rows_of.setdefault(str(example.meta.get("file")), []).append(row)
        added: list[Example] = []
        for name, functions in project.files.items():
            if [indexed[row] for row in rows_of.get(name, [])] == functions:
                rows_of.pop(name, None)
            else:
                added += functions
        return cls(sorted(row for rows in rows_of.values() for row in rows), added)


def empty_model() -> RetrieveAndEdit:
    """Return a model without examples: once a project is indexed, it completes from its code."""
    return RetrieveAndEdit(Bm25Retriever.build([]), VerbatimEditor())


def index_project(model: RetrieveAndEdit, project: Project) -> tuple[RetrieveAndEdit, IndexChange]:
    """Return the model with the functions of a project as its examples, and the change."""
    if not any(project.files.values()):
        raise PairsError("no function with a body was found; give a folder of sources")
    fields = list(model.retriever.examples[0].x) if model.retriever.examples else []
    if fields and fields != list(FIELDS):
        raise PairsError(
            f"this model's input has the fields {', '.join(fields)}; a code base needs a model of "
            f"mined functions ({', '.join(FIELDS)})"
        )
    change = IndexChange.between(model.retriever, project)
    if not (change.rows or change.examples):
        return model, change
    retriever = model.retriever.replace(change.rows, change.examples)
    return RetrieveAndEdit(retriever, model.editor), change
