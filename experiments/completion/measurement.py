"""Asks the product for suggestions as an editor would: over HTTP, one project after the other."""

import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from experiments.completion.projects import (
    Asked,
    Cursor,
    CutProject,
    buffer_at,
    cursors,
    indexed_model,
    is_right,
)
from experiments.completion.recorded import Recorded
from redraft.completion.languages.base import kind_of
from redraft.editing.session import VerbatimSession
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.server.client import Client, RefusedError
from redraft.types import Example

_ADDRESS = re.compile(r"http://[\w.:]+")

LOADING = 503
"""The status of a model that is still being loaded."""

LONG = 10
"""Characters from which a right suggestion counts."""

REDRAFT, BARE = "redraft", "bare prototype"


@dataclass(frozen=True)
class Suggestion:
    """The first suggestion of a system, "" if none was shown, without the indentation."""

    text: str = ""
    probability: float | None = None
    source: str | None = None  # the output of the function that is cited


@dataclass(frozen=True)
class Answer:
    """A suggestion at a cursor, compared with the rest of the body."""

    package: str
    cursor: str
    system: str
    text: str
    rest: str  # of the line or the next one, for reading
    is_right: bool
    is_long: bool
    is_line: bool  # its first line is the rest of the line
    line_similarity: float  # of the two, per cent
    probability: float | None
    milliseconds: float
    has_source: bool
    is_false_source: bool

    @classmethod
    def of(
        cls, package: str, system: str, cursor: Cursor, shown: Suggestion, milliseconds: float
    ) -> "Answer":
        """Compare a suggestion with what comes next."""
        text = shown.text
        line, truth = first_line(text), first_line(cursor.rest)
        return cls(
            package,
            cursor.name,
            system,
            text,
            cursor.rest.strip()[:120],
            is_right(text, cursor.rest),
            len(text.strip()) >= LONG,
            bool(line) and line == truth,
            similarity(line, truth),
            shown.probability,
            round(milliseconds, 2),
            shown.source is not None,
            shown.source is not None and text.strip() not in shown.source,
        )

    def to_json(self) -> str:
        """Return the answer as a line of JSON."""
        return json.dumps(asdict(self), ensure_ascii=False)


def first_line(text: str) -> str:
    """Return the first line that is not empty, without surrounding space."""
    return text.strip().split("\n")[0].strip()


def similarity(text: str, truth: str) -> float:
    """Return the edit similarity of two texts in per cent: 2 M / T of their matching blocks."""
    return 100 * SequenceMatcher(None, text, truth, autojunk=False).ratio()


def measure(
    projects: Sequence[CutProject],
    rng: random.Random,
    *,
    peers: Mapping[str, Path] | None = None,
    recorded: Mapping[str, Iterator[Recorded]] | None = None,
    with_file: bool = True,
) -> Iterator[Answer]:
    """Yield the answers of all systems at all cursors of the projects.

    `peers` are trained models by their names; each is pointed at every project as the product is.
    `recorded` are suggestions of other systems, in the order of the cursors. Without `with_file`
    the files of the asked functions are not indexed.
    """
    systems: dict[str, Path | None] = {REDRAFT: None, **(peers or {})}
    with TemporaryDirectory() as folder:
        folders = []
        retrievers = []
        for i, project in enumerate(projects):
            for j, source in enumerate(systems.values()):
                model = indexed_model(project, source, with_asked=with_file)
                folders.append(Path(folder) / f"{i}-{j}")
                model.save(folders[-1])
                if not j:
                    functions = [one for one in model.retriever.examples if _is_function(one)]
                    retrievers.append(Bm25Retriever.build(functions))
        with _server(folders) as address:
            for i, project in enumerate(projects):
                yield from _answers(
                    project,
                    rng,
                    retrievers[i],
                    {name: Client(address, model=f"{i}-{j}") for j, name in enumerate(systems)},
                    recorded or {},
                )


def _answers(
    project: CutProject,
    rng: random.Random,
    retriever: Bm25Retriever,
    clients: Mapping[str, Client],
    recorded: Mapping[str, Iterator[Recorded]],
) -> Iterator[Answer]:
    """Yield the answers at the cursors of one project, once its models are loaded."""
    for client in clients.values():
        _wait_until_loaded(client)
    for asked in project.asked:
        text = project.files[asked.file]
        for cursor in cursors(asked.example.y, rng):
            systems: dict[str, Callable[[], Suggestion]] = {
                name: partial(_suggested, client, asked, *buffer_at(text, asked, cursor))
                for name, client in clients.items()
            }
            systems[BARE] = partial(bare_prototype, retriever, asked, cursor.prefix)
            for name, suggest in systems.items():
                start = time.perf_counter()
                shown = suggest()
                elapsed = 1000 * (time.perf_counter() - start)
                yield Answer.of(project.name, name, cursor, shown, elapsed)
            for name, suggestions in recorded.items():
                one = next(suggestions)
                shown = Suggestion(one.text, source=one.source)
                yield Answer.of(project.name, name, cursor, shown, one.milliseconds)


def _is_function(example: Example) -> bool:
    return kind_of(example.x) == "function"


def _suggested(client: Client, asked: Asked, text: str, offset: int) -> Suggestion:
    completions = client.complete_buffer(text, offset, 1, file=asked.file)
    if not completions:
        return Suggestion()
    first = completions[0]
    inserted = first.text.replace("\n" + asked.indentation, "\n")
    source = first.prototype.y if first.prototype else None
    return Suggestion(inserted, first.probability, source)


def bare_prototype(retriever: Bm25Retriever, asked: Asked, prefix: str) -> Suggestion:
    """Return the line of the nearest function where it meets the prefix."""
    x = asked.example.x
    others = [one for one in retriever.retrieve([x], 2)[0] if one.example.x != x]
    completions = VerbatimSession(others).complete(prefix, 1)
    if not completions:
        return Suggestion()
    prototype = completions[0].prototype
    return Suggestion(completions[0].text, source=prototype.example.y if prototype else None)


@contextmanager
def _server(models: Sequence[Path]) -> Iterator[str]:
    """Serve models and yield the address."""
    command = [sys.executable, "-m", "redraft", "serve", *map(str, models), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        lines = iter(process.stdout or ())
        address = next((match[0] for line in lines if (match := _ADDRESS.search(line))), None)
        if address is None:
            raise RuntimeError("the server did not start")
        yield address
    finally:
        process.terminate()
        process.wait()


def _wait_until_loaded(client: Client) -> None:
    while True:
        try:
            client.complete_buffer("", 0, 1)
        except RefusedError as error:
            if error.status != LOADING:
                raise
            time.sleep(0.1)
        else:
            return
