"""Fill in the middle: the text around a cursor, other files, and how long an answer may be.

Reads prompts with the markers of Qwen, StarCoder, CodeLlama, DeepSeek and Codestral, as editors
write them. Both `/v1/completions` and `/infill` use it. Runs no model.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from redraft.server import responses, schema
from redraft.text.tokenizer import Tokenizer, spell

MAX_TOKENS = 100_000
MAX_STOPS = 64

Stop = Annotated[str, StringConstraints(min_length=1, max_length=schema.MAX_NAME_LENGTH)]
Stops = Annotated[list[Stop], Field(max_length=MAX_STOPS)]

_PATH = re.compile(r"[^\s:*?\"'<>|()\[\]{}=]+\.[A-Za-z0-9_]{1,10}[ \t]*")


@dataclass(frozen=True)
class Gap:
    """The text before and after the cursor, its file if it is known, and other files."""

    prefix: str
    suffix: str = ""
    file: str | None = None
    extra: tuple[schema.ContextFile, ...] = ()

    def to_request(self, k: int) -> schema.CompleteRequest:
        """Return the request for `k` completions at the cursor.

        Of too many other files it has the last ones, which editors add last.
        """
        text = self.prefix + self.suffix
        if len(text) > schema.MAX_BUFFER_LENGTH:
            raise schema.FieldError(
                f"prompt and suffix may have {schema.MAX_BUFFER_LENGTH:,} characters together; "
                "send less",
                field="suffix",
            )
        return schema.CompleteRequest(
            text=text,
            offset=len(self.prefix),
            file=None if len(self.file or "") > schema.MAX_PATH_LENGTH else self.file,
            k=k,
            extra=list(self.extra[-schema.MAX_CONTEXT_FILES :]),
        )


@dataclass(frozen=True)
class Markers:
    """The markers of a prompt format; `middle` is "" if the prefix ends the prompt."""

    prefix: str
    suffix: str
    middle: str
    files: tuple[str, ...] = ()

    def read(self, prompt: str) -> Gap | None:
        """Return the gap of a prompt, or None if it has another format."""
        body = prompt.rstrip() if self.middle else prompt
        if not body.endswith(self.middle):
            return None
        body = body[: len(body) - len(self.middle)]
        first, second = body.find(self.prefix), body.find(self.suffix)
        if first < 0 or second < 0:
            return None
        if first < second:
            head, (prefix, _, suffix) = body[:first], self._after_prefix(body, first)
        else:
            head = body[:second]
            suffix, _, prefix = body[second + len(self.suffix) :].partition(self.prefix)
        return self._with_files(head, prefix, suffix)

    def _after_prefix(self, body: str, first: int) -> tuple[str, str, str]:
        return body[first + len(self.prefix) :].partition(self.suffix)

    def _with_files(self, head: str, prefix: str, suffix: str) -> Gap:
        """Return the gap with the files that are named before it or within its prefix."""
        extra, file = _read_files(head, self.files)
        name, newline, rest = prefix.partition("\n")
        if head and file is None and newline and _is_path(name):  # as StarCoder 2 has it
            file, prefix = name.strip(), rest
        return Gap(prefix, suffix, file, extra)


FORMATS = (
    Markers("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", ("<|file_sep|>",)),
    Markers("<fim_prefix>", "<fim_suffix>", "<fim_middle>", ("<file_sep>", "<filename>")),
    Markers("<PRE> ", " <SUF>", " <MID>"),
    Markers("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
)
"""Qwen, StarCoder, CodeLlama and DeepSeek; Codestral has no marker at its end."""

_CODESTRAL_FILE = re.compile(r"^\+{5} ", re.MULTILINE)


def read_prompt(prompt: str, suffix: str | None) -> Gap:
    """Return the gap of a prompt with markers, else the prompt as the text before the cursor."""
    if not suffix:
        for markers in FORMATS:
            if gap := markers.read(prompt):
                return gap
    return _read_codestral(prompt, suffix) or Gap(prompt, suffix or "")


def _read_codestral(prompt: str, suffix: str | None) -> Gap | None:
    """Read `[SUFFIX]…[PREFIX]…`, or `…[PREFIX]…` with the suffix in a field of its own."""
    if prompt.startswith("[SUFFIX]") and "[PREFIX]" in prompt:
        suffix, _, prompt = prompt.removeprefix("[SUFFIX]").partition("[PREFIX]")
    elif not prompt.startswith("+++++ "):
        return None
    *others, current = _CODESTRAL_FILE.split(prompt)
    if len(others) == 0:
        return Gap(current, suffix or "")
    file, _, prefix = current.partition("\n")
    extra = (context for other in others if (context := _context_file(other)))
    prefix = prefix.lstrip("\n").removeprefix("[PREFIX]")
    return Gap(prefix, suffix or "", file.strip() or None, tuple(extra))


def _read_files(
    head: str, markers: Sequence[str]
) -> tuple[tuple[schema.ContextFile, ...], str | None]:
    """Return the files before a gap, and the name of its own file if that comes last."""
    if not markers or not head:
        return (), None
    _, *files = re.split("|".join(map(re.escape, markers)), head)
    file = None
    if files and _is_path(files[-1].strip("\n")):
        file = files.pop().strip()
    return tuple(context for text in files if (context := _context_file(text))), file


def _context_file(text: str) -> schema.ContextFile | None:
    """Return a file whose first line may be its name; None if it has no text."""
    name, _, rest = text.partition("\n")
    named = _is_path(name)
    text = rest if named else text
    return schema.ContextFile(filename=name.strip() if named else None, text=text) if text else None


def _is_path(line: str) -> bool:
    """Return True if a line is the name of a file, not code."""
    return len(line) <= schema.MAX_PATH_LENGTH and _PATH.fullmatch(line) is not None


class Provenance(schema.Message):
    """The prototype and the scores of a generated text."""

    prototype: responses.PrototypeSchema | None
    distance: float | None
    probability: float | None
    confidence: float | None = None
    invented: list[str] = Field([])
    unfamiliar: bool = False

    @classmethod
    def of(
        cls,
        prototype: responses.PrototypeSchema | None = None,
        probability: float | None = None,
        **marks: Any,
    ) -> "Provenance":
        """Return the provenance with the distance of the prototype."""
        distance = prototype.distance if prototype else None
        return cls(prototype=prototype, distance=distance, probability=probability, **marks)


@dataclass(frozen=True)
class Generation:
    """A generated text and its provenance."""

    text: str
    provenance: Provenance

    @classmethod
    def of(cls, completion: responses.CompletionSchema) -> "Generation":
        """Convert a completion at a cursor."""
        provenance = Provenance.of(completion.prototype, completion.probability)
        return cls(completion.text, provenance)


NOTHING = Generation("", Provenance.of())


@dataclass(frozen=True)
class Limits:
    """Where a text ends: stop sequences, tokens, and the least indentation of further lines."""

    stops: Sequence[str] = ()
    max_tokens: int | None = None
    indentation: int = 0

    def apply(self, text: str) -> "Limited":
        """Return `text` up to the first limit."""
        found = [(index, stop) for stop in self.stops if (index := text.find(stop)) >= 0]
        index, word = min(found, default=(len(text), ""))
        text = _without_outer_lines(text[:index], self.indentation)
        tokens = tokens_of(text)
        if self.max_tokens is not None and len(tokens) > self.max_tokens:
            return Limited(tokens[: self.max_tokens], "length")
        return Limited(tokens, "stop", word)


@dataclass(frozen=True)
class Limited:
    """The tokens of a text up to a limit, and why it ends: at a stop sequence it is `word`."""

    tokens: Sequence[str]
    reason: Literal["stop", "length"]
    word: str = ""

    @property
    def text(self) -> str:
        """Return the text."""
        return "".join(self.tokens)


def tokens_of(text: str) -> list[str]:
    """Return the tokens of a text with their white space."""
    return [token for token in spell(Tokenizer().tokenize(text)) if token]


def _without_outer_lines(text: str, indentation: int) -> str:
    """Return the text before the first further line with less indentation, if it has text."""
    first, *others = text.split("\n")
    kept = [first]
    for line in others:
        code = line.lstrip(" \t")
        if code and len(line) - len(code) < indentation:
            break
        kept.append(line)
    return "\n".join(kept)
