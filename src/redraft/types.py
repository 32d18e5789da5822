"""The value types of the package: example, prototype, candidate, completion, provenance.

Every other module may import this one; it imports no retriever, no editor and no storage.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from redraft.errors import PairsError

if TYPE_CHECKING:
    from redraft.text.diff import Diff

Input = Mapping[str, str]
"""An input x: the text of each named field."""

TEXT_FIELD = "text"
"""The field name of an input that was given as plain text."""


def as_input(x: str | Input) -> Input:
    """Return `x` as named fields; plain text becomes the field `TEXT_FIELD`."""
    return {TEXT_FIELD: x} if isinstance(x, str) else x


def input_text(x: Input) -> str:
    """Return the fields of an input in their order, one per line."""
    return "\n".join(x.values())


_FINAL_PUNCTUATION = " .?!;:,"


def normal_input(x: Input) -> tuple[str, ...]:
    """Return the fields of an input without case, extra white space and final punctuation."""
    return tuple(
        " ".join(text.casefold().split()).rstrip(_FINAL_PUNCTUATION) for text in x.values()
    )


def input_digest(x: Input) -> bytes:
    """Return eight bytes that equal inputs share, as `normal_input` compares them."""
    content = "\n".join(normal_input(x)).encode(errors="surrogatepass")
    return hashlib.blake2b(content, digest_size=8).digest()


class MetaError(PairsError):
    """Metadata cannot be stored as JSON; `field` names the offending field of a request."""

    field = "meta"


MAX_META_DEPTH = 32
"""The maximum nesting of objects and lists in meta: JSON encoders recurse."""

_MAX_INTEGER_BITS = 14_000
"""About 4,200 decimal digits, just below the limit of Python's `int` to `str` conversion."""


def meta_problem(meta: Mapping[str, Any]) -> str | None:
    """Return why `meta` is not portable JSON, or None if it is.

    Keys must be text and nesting is limited; NaN and infinity are not JSON, and PostgreSQL and
    browsers reject them.
    """
    for key, value in meta.items():
        if not isinstance(key, str):
            return f"the keys of meta must be text, got {type(key).__name__}"
        if reason := _value_problem(value, 1):
            name = repr(key if len(key) <= 80 else f"{key[:80]}…")
            return f"meta {name} {reason}"
    return None


def _value_problem(value: Any, depth: int) -> str | None:
    if value is None or isinstance(value, str | bool):
        return None
    if isinstance(value, float):
        if math.isfinite(value):
            return None
        return f"is {float(value)}, which JSON does not have; use null, a number or text"
    if isinstance(value, int):
        is_long = value.bit_length() > _MAX_INTEGER_BITS
        return "is a number of more than 4,000 digits; write it as text" if is_long else None
    if not isinstance(value, Mapping | list | tuple):
        return None  # written as text
    if depth >= MAX_META_DEPTH:
        return f"is nested more than {MAX_META_DEPTH} deep; flatten it"
    if isinstance(value, Mapping):
        if wrong := next((key for key in value if not isinstance(key, str)), None):
            return f"has a key of type {type(wrong).__name__}; write it as text"
        value = value.values()
    reasons = (_value_problem(part, depth + 1) for part in value)
    return next(filter(None, reasons), None)


@dataclass(frozen=True)
class Example:
    """A training pair: input `x`, output `y` and metadata such as its project.

    Raises `MetaError` if `meta` is not portable JSON, so that saving cannot fail later.
    """

    x: Input
    y: str
    meta: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.meta and (reason := meta_problem(self.meta)):
            raise MetaError(f"example with x {input_text(self.x)[:60]!r}: {reason}")

    @cached_property
    def identity(self) -> str:
        """A digest of x and y: duplicates share it, whatever their meta."""
        content = json.dumps([sorted(self.x.items()), self.y], ensure_ascii=False)
        return hashlib.blake2b(content.encode(errors="surrogatepass"), digest_size=16).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return the example as a JSON object, a row of a JSON Lines file."""
        plain = list(self.x) == [TEXT_FIELD]
        row: dict[str, Any] = {"x": self.x[TEXT_FIELD] if plain else dict(self.x), "y": self.y}
        return row | {"meta": dict(self.meta)} if self.meta else row

    def to_line(self) -> bytes:
        """Return the example as an encoded line of a JSON Lines file, newline included."""
        line = json.dumps(self.to_json(), ensure_ascii=False, default=str) + "\n"
        # a lone surrogate, which UTF-8 cannot encode, becomes a JSON escape
        return line.encode(errors="backslashreplace")

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "Example":
        """Return the example that `to_json` wrote; raise TypeError for values of the wrong type."""
        x, y, meta = as_input(row["x"]), row["y"], row.get("meta", {})
        is_input = isinstance(x, Mapping) and all(type(text) is str for text in x.values())
        if not is_input or type(y) is not str or not isinstance(meta, Mapping):
            raise TypeError("an example needs text fields in x, a text y and an object meta")
        return cls(x, y, meta)


@dataclass(frozen=True)
class Prototype:
    """A retrieved example (x', y'); the smaller its distance, the easier it should be to edit.

    `log_weight` is log p_ret((x', y') | x), up to a constant that depends only on x.
    """

    example: Example
    distance: float
    log_weight: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the prototype as a JSON object."""
        return {"distance": round(self.distance, 6), **self.example.to_json()}


Origin = Literal["prototype", "input", "mapped", "generated"]
"""Copied from the prototype's output, copied from the input, mapped from the input as in other
examples ("Poland" to `'PL'`), or generated from the vocabulary."""


@dataclass(frozen=True)
class TracedToken:
    """A token of an output, with the space before it, and its origin."""

    text: str
    origin: Origin

    def to_json(self) -> dict[str, Any]:
        """Return the token as a JSON object."""
        return {"text": self.text, "origin": self.origin}


@dataclass(frozen=True)
class Candidate:
    """An edited output and its score; higher is better.

    `log_prob` is log p(y | x); `confidence` is the calibrated probability of an exact match;
    `provenance` gives the origin of each token. Editors without a probability model leave all
    three empty. `invented` lists values of the output that come from nowhere: neither the input nor
    the examples explain them. `is_familiar` is False if the input is like no example.
    """

    output: str
    score: float
    prototype: Prototype | None
    log_prob: float | None = None
    confidence: float | None = None
    provenance: tuple[TracedToken, ...] = ()
    invented: tuple[str, ...] = ()
    is_familiar: bool = True

    @property
    def warnings(self) -> tuple[str, ...]:
        """The marks of the candidate in words, one line each."""
        warnings = () if self.is_familiar else ("nothing similar in the index",)
        if not self.invented:
            return warnings
        noun = "value" if len(self.invented) == 1 else "values"
        values = ", ".join(f"'{value}'" for value in self.invented)
        return (*warnings, f"{noun} from nowhere: {values}")

    def diff(self) -> "Diff":
        """Compare the output with the prototype's output."""
        from redraft.text.diff import Diff

        before = self.prototype.example.y if self.prototype else ""
        return Diff.between(before, self.output)

    def _repr_html_(self) -> str:
        """Return the answer for a notebook, its tokens coloured by origin."""
        from redraft.text.html import candidate_html

        return candidate_html(self)

    def to_json(self) -> dict[str, Any]:
        """Return the candidate as a JSON object, without numbers that are None and empty marks."""
        numbers = {"score": self.score, "log_prob": self.log_prob, "confidence": self.confidence}
        return {
            "output": self.output,
            **{name: round(value, 6) for name, value in numbers.items() if value is not None},
            **({"invented": list(self.invented)} if self.invented else {}),
            **({} if self.is_familiar else {"unfamiliar": True}),
            "prototype": self.prototype.to_json() if self.prototype else None,
        }


@dataclass(frozen=True)
class Completion:
    """A suggestion: its first token and its whole text; both empty at the end of the output.

    `is_generated` is True if a language model wrote it.
    """

    token: str
    text: str
    log_prob: float  # that it is right; of a network's suggestion that its token is; -inf unknown
    prototype: Prototype | None
    is_generated: bool = False

    @property
    def probability(self) -> float | None:
        """The probability of the suggestion, or None if the editor has no probability model."""
        return None if self.log_prob == -math.inf else math.exp(self.log_prob)

    def to_json(self) -> dict[str, Any]:
        """Return the completion as a JSON object."""
        return {
            "text": self.text,
            "token": self.token,
            "probability": None if self.probability is None else round(self.probability, 6),
            "prototype": self.prototype.to_json() if self.prototype else None,
        }
