"""Asks a language model and the product at cursors of projects whose functions are cut out.

One pass over a function asks everything that shares its prompt, since the server keeps it in its
cache: the four cursors, and every word of the body under teacher forcing.
"""

import json
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, field
from typing import Any

from experiments.completion.projects import Asked, CutProject, buffer_of, prefixes
from redraft.completion.engine import CompletionEngine
from redraft.completion.generated_text import MAX_TOKENS, generated_ends, is_enough
from redraft.completion.languages.python.language import PYTHON
from redraft.completion.lm_prompt import CursorText, cursor_prompt
from redraft.editing.base import VerbatimEditor
from redraft.lm.client import LmClient
from redraft.lm.stream import LmPiece
from redraft.mining.python_functions import mine_content
from redraft.model import RetrieveAndEdit
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.text.tokenizer import Tokenizer, detokenize
from redraft.types import Example

CONTEXT = 3500
"""Estimated tokens of a prompt."""

MAX_WORDS = 80
"""Words of a body under teacher forcing; longer ones are left out."""

OURS = 5
"""Suggestions of the product to keep."""


@dataclass(frozen=True)
class CursorAnswer:
    """The suggestions at one cursor: those of the product, and the ends of a generation."""

    package: str
    function: str
    cursor: str
    shots: int
    rest: str
    ours: list[tuple[str, float]]
    ends: list[tuple[Any, ...]]  # the fields of `GeneratedEnd`
    seconds: float
    is_first: bool  # of its function: the prompt was not in the cache
    kind: str = "cursor"


@dataclass(frozen=True)
class ForcedAnswer:
    """Of each word of a body, whether the language model predicts it after the true ones."""

    package: str
    function: str
    shots: int
    hits: list[bool]
    seconds: float
    kind: str = "forced"


Answer = CursorAnswer | ForcedAnswer

Place = tuple[str, str, int, str]
"""Of an answer: package, function, retrieved functions, and the cursor, "" for all words."""


def place_of(answer: Answer) -> Place:
    """Return where an answer was asked for."""
    cursor = answer.cursor if isinstance(answer, CursorAnswer) else ""
    return answer.package, answer.function, answer.shots, cursor


def to_line(answer: Answer) -> str:
    """Return an answer as a line of JSON."""
    return json.dumps(asdict(answer), ensure_ascii=False) + "\n"


def from_line(line: str) -> Answer:
    """Read an answer that `to_line` wrote."""
    row = json.loads(line)
    return CursorAnswer(**row) if row["kind"] == "cursor" else ForcedAnswer(**row)


@dataclass
class Collector:
    """Asks about the functions of one project after the other, but for what is `done`."""

    client: LmClient
    model: str
    rng: random.Random
    max_words: int = MAX_WORDS
    done: frozenset[Place] = frozenset()
    _seconds: float = field(default=0.0, init=False)

    def ask(
        self, project: CutProject, shots: Sequence[int], forced: Sequence[int]
    ) -> Iterator[Answer]:
        """Yield the answers at the cursors with each number of retrieved functions.

        `forced` are the numbers with which all words are asked as well, or only these.
        """
        engine = CompletionEngine(_model_of(project))
        for asked in project.asked:
            cursors = list(prefixes(asked.example.y, self.rng))
            for count in dict.fromkeys((*shots, *forced)):
                function = _Function(self, engine, project, asked, count)
                if count in shots:
                    yield from function.at_cursors(cursors)
                if count in forced and (answer := function.forced()):
                    yield answer


@dataclass
class _Function:
    """A function to ask about, with a number of retrieved functions in the prompt."""

    collector: Collector
    engine: CompletionEngine
    project: CutProject
    asked: Asked
    shots: int

    def at_cursors(self, cursors: Sequence[tuple[str, str]]) -> Iterator[CursorAnswer]:
        """Yield the answers at the cursors."""
        body = self.asked.example.y
        for i, (name, prefix) in enumerate(cursors):
            if self._is_done(name):
                continue
            text, offset = buffer_of(self.project.files[self.asked.file], self.asked, prefix)
            ours = self.engine.complete(text, offset, OURS, file=self.asked.file)
            cursor = self._cursor(prefix)
            start = time.perf_counter()
            pieces = self._generate(cursor, is_enough)
            seconds = time.perf_counter() - start
            indentation = self.asked.indentation
            yield CursorAnswer(
                self.project.name,
                self._name,
                name,
                self.shots,
                body[len(prefix.rstrip(" ")) :][:400],
                [
                    (one.text.replace("\n" + indentation, "\n"), one.probability or 0.0)
                    for one in ours
                ],
                [astuple(end) for end in generated_ends(cursor, pieces)],
                round(seconds, 3),
                i == 0,
            )

    def forced(self) -> ForcedAnswer | None:
        """Return which words the language model predicts, each after the true words before it."""
        body = self.asked.example.y
        words = Tokenizer().tokenize(body)
        ends = [len(detokenize(words[: i + 1])) for i in range(len(words))]
        if len(words) > self.collector.max_words or self._is_done(""):
            return None
        hits: list[bool] = []
        start = time.perf_counter()
        while len(hits) < len(words):
            prefix = body[: ends[len(hits) - 1]] if hits else ""
            cursor = self._cursor(prefix)

            def is_over(
                pieces: Sequence[LmPiece], cursor: CursorText = cursor, prefix: str = prefix
            ) -> bool:
                written = cursor.continuation("".join(piece.text for piece in pieces))
                return written is None or not body.startswith((prefix + written).rstrip())

            pieces = self._generate(cursor, is_over)
            text = cursor.continuation("".join(piece.text for piece in pieces))
            written = prefix + (text or "")
            right = _right_words(body, written, ends) - len(hits)
            hits += [True] * max(0, right)
            if len(hits) < len(words) and (right <= 0 or is_over(pieces)):
                hits.append(False)
        seconds = time.perf_counter() - start
        return ForcedAnswer(self.project.name, self._name, self.shots, hits, round(seconds, 3))

    @property
    def _name(self) -> str:
        return f"{self.asked.file}:{self.asked.example.x['name']}:{self.asked.body_line}"

    def _is_done(self, cursor: str) -> bool:
        return (self.project.name, self._name, self.shots, cursor) in self.collector.done

    def _cursor(self, prefix: str) -> CursorText:
        text, offset = buffer_of(self.project.files[self.asked.file], self.asked, prefix)
        return CursorText.of(text, offset, self.asked.file)

    def _generate(self, cursor: CursorText, enough: object) -> Sequence[LmPiece]:
        similar = self.engine.similar(cursor.context.x, self.asked.file, PYTHON)[: self.shots]
        examples = [prototype.example for prototype in similar]
        prompt = cursor_prompt(cursor, examples, tokens=CONTEXT)
        collector = self.collector
        future = collector.client.start(
            prompt,
            model=collector.model,
            max_tokens=MAX_TOKENS,
            enough=enough,  # type: ignore[arg-type]
        )
        return future.result().pieces


def _right_words(body: str, written: str, ends: Sequence[int]) -> int:
    """Return how many words of the body, from its start, are written as a whole."""
    shared = next(
        (i for i, (a, b) in enumerate(zip(body, written, strict=False)) if a != b),
        min(len(body), len(written)),
    )
    right = 0
    for end in ends:
        follows = written[end : end + 1]
        is_longer = _is_part(body[end - 1]) and _is_part(follows) and body[end : end + 1] != follows
        if end > shared or is_longer:
            break
        right += 1
    return right


def _is_part(character: str) -> bool:
    return character.isalnum() or character == "_"


def _model_of(project: CutProject) -> RetrieveAndEdit:
    examples: list[Example] = []
    for file, text in project.files.items():
        package = file.split("/")[0]
        mined = mine_content(text, name=file, package=package, documented_only=False)
        examples += mined if isinstance(mined, list) else []
    return RetrieveAndEdit(Bm25Retriever.build(examples), VerbatimEditor())
