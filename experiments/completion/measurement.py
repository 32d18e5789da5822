"""Asks the product for suggestions as an editor would: over HTTP, one project after the other."""

import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from experiments.completion.projects import Asked, CutProject, is_right, prefixes
from redraft.editing.session import VerbatimSession
from redraft.model import RetrieveAndEdit
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.server.client import Client, RefusedError

_ADDRESS = re.compile(r"http://[\w.:]+")

LOADING = 503
"""The status of a model that is still being loaded."""

LONG = 10
"""Characters from which a right suggestion counts."""


@dataclass(frozen=True)
class Answer:
    """The first suggestion at a cursor, "" if none was shown."""

    package: str
    cursor: str
    system: str
    text: str
    rest: str  # of the line or the next one, for reading
    is_right: bool
    is_long: bool
    probability: float | None
    milliseconds: float
    has_source: bool
    is_false_source: bool

    def to_json(self) -> str:
        """Return the answer as a line of JSON."""
        return json.dumps(asdict(self), ensure_ascii=False)


def measure(project: CutProject, rng: random.Random) -> Iterator[Answer]:
    """Yield the answers of the product and of the bare prototype at all cursors of a project."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text in project.files.items():
            path = root / "project" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        model = root / "model"
        _redraft("index", str(root / "project"), "-o", str(model))
        examples = list(RetrieveAndEdit.load(model).retriever.examples)
        retriever = Bm25Retriever.build(examples)
        with _server(model) as client:
            for asked in project.asked:
                for cursor, prefix in prefixes(asked.example.y, rng):
                    rest = asked.example.y[len(prefix.rstrip(" ")) :]
                    yield _ask(client, project, asked, cursor, prefix, rest)
                    yield _bare(retriever, project.name, asked, cursor, prefix, rest)


def buffer_of(text: str, asked: Asked, prefix: str) -> tuple[str, int]:
    """Return the file with the typed part of a body in place of its placeholder, and the cursor."""
    lines = text.split("\n")
    before = "\n".join(lines[: asked.body_line]) + "\n"
    typed = asked.indentation + prefix.replace("\n", "\n" + asked.indentation)
    after = "\n".join(lines[asked.body_line + 1 :])
    return f"{before}{typed}\n{after}", len(before) + len(typed)


def _ask(
    client: Client, project: CutProject, asked: Asked, cursor: str, prefix: str, rest: str
) -> Answer:
    text, offset = buffer_of(project.files[asked.file], asked, prefix)
    start = time.perf_counter()
    completions = client.complete_buffer(text, offset, 1, file=asked.file)
    milliseconds = 1000 * (time.perf_counter() - start)
    if not completions:
        return _answer(project.name, cursor, "redraft", "", rest, None, milliseconds)
    first = completions[0]
    inserted = first.text.replace("\n" + asked.indentation, "\n")
    source = first.prototype
    return _answer(
        project.name,
        cursor,
        "redraft",
        inserted,
        rest,
        first.probability,
        milliseconds,
        has_source=source is not None,
        is_false_source=source is not None and inserted.strip() not in source.y,
    )


def _bare(
    retriever: Bm25Retriever, package: str, asked: Asked, cursor: str, prefix: str, rest: str
) -> Answer:
    start = time.perf_counter()
    x = asked.example.x
    others = [one for one in retriever.retrieve([x], 2)[0] if one.example.x != x]
    completions = VerbatimSession(others).complete(prefix, 1)
    milliseconds = 1000 * (time.perf_counter() - start)
    text = completions[0].text if completions else ""
    return _answer(
        package, cursor, "bare prototype", text, rest, None, milliseconds, has_source=bool(text)
    )


def _answer(
    package: str,
    cursor: str,
    system: str,
    text: str,
    rest: str,
    probability: float | None,
    milliseconds: float,
    *,
    has_source: bool = False,
    is_false_source: bool = False,
) -> Answer:
    return Answer(
        package,
        cursor,
        system,
        text,
        rest.strip()[:120],
        is_right(text, rest),
        len(text.strip()) >= LONG,
        probability,
        round(milliseconds, 2),
        has_source,
        is_false_source,
    )


def _redraft(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "redraft", *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return done.stdout


@contextmanager
def _server(model: Path) -> Iterator[Client]:
    """Serve a model and yield a client."""
    command = [sys.executable, "-m", "redraft", "serve", str(model), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        lines = iter(process.stdout or ())
        address = next((match[0] for line in lines if (match := _ADDRESS.search(line))), None)
        if address is None:
            raise RuntimeError("the server did not start")
        with Client(address) as client:
            _wait_until_loaded(client)
            yield client
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
