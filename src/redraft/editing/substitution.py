"""The training-free editor: what differs between x and x' is carried over into y'.

A slot of the prototype is a value that its output made from its input. Each slot is filled with the
span of the new input that corresponds best: by its alignment with x', by the contexts in which the
value is known, and by the words around it. Everything else of y' stays.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np

from redraft.editing.base import Editor
from redraft.editing.session import CompletionSession, VerbatimSession
from redraft.editing.slots import Slot
from redraft.editing.value_table import ValueTable, input_words, pair_words
from redraft.storage.artifact import Artifact
from redraft.text.spans import Span, WordSpans, is_word, overlaps, shape_of
from redraft.text.value_formats import in_code, rewrite
from redraft.types import Candidate, Example, Input, Origin, Prototype, TracedToken

TABLE = "values.json"

MAX_WORDS = 8
"""The longest span of the input that fills a slot by alignment alone."""

# Evidence that a span of the input fills a slot. Only the order of these weights matters: a value
# known in the slot's context outweighs the alignment, and that the neighbouring words.
KNOWN, FOREIGN = 3.0, -2.0  # a value of this context, or only of others
ALIGNED = 2.0  # opposite to the slot, or the same text
LEFT, RIGHT = 1.0, 0.7  # the same word before or after
OTHER_SHAPE = -3.0  # a number for a word
UNKNOWN = -9.0  # a slot of derived values, and no value of this context
SHARED = -3.0  # with a word inside that x' has elsewhere
LENGTH = -0.2  # for each word that it is longer or shorter
UNFILLED = -1.0  # the threshold: a slot without better evidence keeps its value


@dataclass(frozen=True)
class Replacement:
    """A part of the prototype's output, by its characters, and the text in its place."""

    start: int
    end: int
    text: str
    origin: Origin


@dataclass(frozen=True)
class Edit:
    """An edited output and what the edit left undone."""

    output: str
    replacements: tuple[Replacement, ...]
    slots: int
    stale: tuple[str, ...]  # values of the prototype's input that stayed, though x has them not
    unused: int  # values of x that fill no slot
    evidence: float  # mean evidence of the slots


@dataclass(frozen=True)
class Query:
    """An input with the spans that may be values."""

    words: WordSpans
    mentions: Mapping[Span, Mapping[str, int]]

    @classmethod
    def of(cls, x: Input, table: ValueTable) -> "Query":
        """Find the mentions of values in `x`."""
        words = input_words(x)
        return cls(words, table.mentions(words))

    @cached_property
    def longest_mentions(self) -> list[Span]:
        """The mentions that stand in no longer one."""
        return [
            span
            for span in self.mentions
            if not any(
                other != span and other[0] <= span[0] and span[1] <= other[1]
                for other in self.mentions
            )
        ]


@dataclass(frozen=True)
class SlottedExample:
    """A prototype with its slots."""

    x: WordSpans
    y: WordSpans
    slots: tuple[Slot, ...]

    @classmethod
    def of(cls, example: Example, table: ValueTable) -> "SlottedExample":
        """Find the slots of an example."""
        x, y = pair_words(example)
        return cls(x, y, tuple(table.slots(x, y)))


class _Alignment:
    """Matching blocks of x and x'; `is_outside` tells words that neither begin nor end a value."""

    def __init__(self, x: WordSpans, other: WordSpans, is_outside: Callable[[str], bool]) -> None:
        self.x, self.other = x, other
        self.is_outside = is_outside
        self.blocks = SequenceMatcher(None, x.folded, other.folded, autojunk=False).get_opcodes()

    def opposite(self, span: Span) -> Span | None:
        """Return the span of x opposite to a span of x'; None if nothing stands there."""
        start, end = span
        touched = [block for block in self.blocks if block[3] < end and start < block[4]]
        first, last = touched[0], touched[-1]
        # the words of the outer blocks before and after the span belong to other words of x
        low = min(first[1] + max(0, start - first[3]), first[2])
        high = max(last[2] - max(0, last[4] - end), last[1])
        if not low < high:
            low, high = first[1], last[2]
        while low < high and self.is_outside(self.x.folded[high - 1]):
            high -= 1
        while low < high and self.is_outside(self.x.folded[low]):
            low += 1
        if all(map(is_word, self.other.words[start:end])):
            inside = range(low, high)
            high = next((i for i in inside if not is_word(self.x.words[i])), high)
        return (low, high) if low < high <= low + MAX_WORDS else None


def opposites(query: Query, source: SlottedExample, table: ValueTable) -> list[Span | None]:
    """Return for each slot the span of the query that is aligned with it, or None."""
    alignment = _Alignment(query.words, source.x, table.is_plain)
    return [alignment.opposite(slot.source) for slot in source.slots]


def substitute(
    query: Query,
    source: SlottedExample,
    table: ValueTable,
    *,
    opposite: Sequence[Span | None],
    by_position: bool = False,
) -> Edit:
    """Edit the output of `source` into an output for `query`, given what `opposites` returned.

    `by_position` ignores in which contexts a value is known: the alignment alone fills the slots.
    """
    fills, evidence = _assign(query, source, opposite, by_position=by_position)
    replacements: list[Replacement] = []
    stale = []
    for slot, span in zip(source.slots, fills, strict=True):
        if span is None:
            stale.append(source.x.slice(slot.source))
            continue
        if query.words.fold(span) != source.x.fold(slot.source):
            replacements += _fill(query.words, span, slot, source, table)
    used = [span for span in fills if span is not None]
    unused = sum(
        not any(overlaps(span, other) for other in used) for span in query.longest_mentions
    )
    replacements.sort(key=lambda replacement: replacement.start)
    return Edit(
        _apply(source.y.text, replacements),
        tuple(replacements),
        len(source.slots),
        tuple(stale),
        unused,
        sum(evidence) / len(evidence) if evidence else 0.0,
    )


def _assign(
    query: Query, source: SlottedExample, opposite: Sequence[Span | None], *, by_position: bool
) -> tuple[list[Span | None], list[float]]:
    """Choose for each slot the span of the input with most evidence; None keeps the value.

    Greedy, best evidence first; no word of the input fills two slots.
    """

    def weigh(span: Span, slot: Slot, is_opposite: bool) -> float:
        if by_position and not slot.is_derived:
            return _position(query.words, span, source.x, slot.source, is_opposite=is_opposite)
        return _evidence(query, span, source, slot, is_opposite=is_opposite)

    spans = dict.fromkeys([*query.mentions, *(span for span in opposite if span is not None)])
    pairs = [
        (weigh(span, slot, span == opposite[i]), i, span)
        for i, slot in enumerate(source.slots)
        for span in spans
        if "\n" not in query.words.fold(span)
    ]
    fills: list[Span | None] = [None] * len(source.slots)
    evidence = [UNFILLED] * len(source.slots)
    for weight, i, span in sorted(pairs, key=lambda pair: (-pair[0], pair[1:])):
        if weight <= UNFILLED:
            break
        taken = any(other is not None and overlaps(span, other) for other in fills)
        if fills[i] is None and not taken:
            fills[i], evidence[i] = span, weight
    return fills, evidence


def _evidence(
    query: Query, span: Span, source: SlottedExample, slot: Slot, *, is_opposite: bool
) -> float:
    """Return the evidence that a span of the input fills a slot."""
    x, other = query.words, source.x
    contexts = query.mentions.get(span)
    is_same = x.fold(span) == other.fold(slot.source)
    weight = _position(x, span, other, slot.source, is_opposite=is_opposite or is_same)
    known = sum(context in contexts for context in slot.contexts) if contexts else 0
    if contexts:
        weight += KNOWN * known / len(slot.contexts) if known else FOREIGN
    elif not is_same and _has_shared_word(x.fold(span), other, slot.source):
        weight += SHARED
    if slot.is_derived and not known and not is_same:
        weight += UNKNOWN  # how outputs write it was never seen
    return weight


def _position(
    x: WordSpans, span: Span, other: WordSpans, source: Span, *, is_opposite: bool
) -> float:
    """Return the evidence of the alignment, of the neighbouring words and of the kind of value."""
    weight = LENGTH * abs((span[1] - span[0]) - (source[1] - source[0]))
    if is_opposite:
        weight += ALIGNED
    if _before(x, span) == _before(other, source):
        weight += LEFT
    if _after(x, span) == _after(other, source):
        weight += RIGHT
    if _shape(x, span) != _shape(other, source):
        weight += OTHER_SHAPE
    return weight


def _shape(words: WordSpans, span: Span) -> str:
    """Return the kind of a value; several words are words, whatever stands among them."""
    return shape_of(words.words[span[0]]) if span[1] - span[0] == 1 else "word"


def _has_shared_word(form: Sequence[str], other: WordSpans, source: Span) -> bool:
    """Return True if a word of `form` stands in the prototype's input outside of a slot."""
    outside = {*other.folded[: source[0]], *other.folded[source[1] :]}
    return any(word in outside for word in form)


def _before(words: WordSpans, span: Span) -> str:
    return words.folded[span[0] - 1] if span[0] else "\n"


def _after(words: WordSpans, span: Span) -> str:
    return words.folded[span[1]] if span[1] < len(words) else "\n"


def _fill(
    x: WordSpans, span: Span, slot: Slot, source: SlottedExample, table: ValueTable
) -> list[Replacement]:
    """Write a span of the input into every target of a slot."""
    new, form = x.slice(span), x.fold(span)
    old_source = source.x.slice(slot.source)
    replacements = []
    for target in slot.targets:
        old = source.y.text[target.start : target.end]
        text = rewrite(old, old_source, new)
        if not target.is_quoted and old == old_source:
            text = in_code(old, text)
        known = table.text_of(form, target.context)
        # the table knows derived values and their spelling; a copy keeps that of the input
        if known is not None and not (known.casefold() == new.casefold() and old == old_source):
            text = known
        origin: Origin = "input" if text.casefold() == new.casefold() else "mapped"
        replacements.append(Replacement(target.start, target.end, text, origin))
    return replacements


def _apply(text: str, replacements: Sequence[Replacement]) -> str:
    parts, end = [], 0
    for replacement in replacements:
        parts += [text[end : replacement.start], replacement.text]
        end = replacement.end
    return "".join([*parts, text[end:]])


def provenance_of(edit: Edit, output: str) -> tuple[TracedToken, ...]:
    """Return the origin of each word of an edited output; `output` is the prototype's."""
    pieces: list[tuple[str, Origin]] = []
    end = 0
    for replacement in edit.replacements:
        pieces += [
            (output[end : replacement.start], "prototype"),
            (replacement.text, replacement.origin),
        ]
        end = replacement.end
    pieces.append((output[end:], "prototype"))
    return tuple(TracedToken(text, origin) for piece, origin in pieces for text in _tokens(piece))


def _tokens(piece: str) -> list[str]:
    """Cut a text into its words, each with the white space before it."""
    words = WordSpans.of(piece)
    ends = [end for word, end in zip(words.words, words.ends, strict=True) if word != "\n"]
    cuts = [0, *ends[:-1], len(piece)] if ends else [0, len(piece)]
    return [piece[start:end] for start, end in pairwise(cuts) if start < end]


class SubstitutionEditor(Editor):
    """Substitutes the values of x into the outputs of the nearest prototypes; needs no training."""

    name = "substitution"

    def __init__(self, table: ValueTable) -> None:
        self.table = table

    @classmethod
    def fit(cls, examples: Sequence[Example], retriever: object) -> "SubstitutionEditor":  # noqa: ARG003
        """Return an editor that knows the values of `examples`."""
        return cls(ValueTable.learn(examples))

    def wants(self, k: int) -> int:
        """Return `k`: one prototype per candidate."""
        return k

    def edit(
        self,
        inputs: Sequence[Input],
        prototypes: Sequence[Sequence[Prototype]],
        k: int = 1,
        *,
        generator: np.random.Generator | None = None,  # noqa: ARG002
    ) -> list[list[Candidate]]:
        """Edit the first `k` prototypes of each input; equal outputs are merged."""
        return [
            self._edit_one(x, retrieved[:k])
            for x, retrieved in zip(inputs, prototypes, strict=True)
        ]

    def _edit_one(self, x: Input, prototypes: Sequence[Prototype]) -> list[Candidate]:
        query = Query.of(x, self.table)
        candidates: dict[str, Candidate] = {}
        for prototype in prototypes:
            source = SlottedExample.of(prototype.example, self.table)
            opposite = opposites(query, source, self.table)
            edit = substitute(query, source, self.table, opposite=opposite)
            provenance = provenance_of(edit, prototype.example.y)
            candidate = Candidate(
                edit.output, -prototype.distance, prototype, provenance=provenance
            )
            candidates.setdefault(edit.output, candidate)
        return list(candidates.values())

    def start_session(self, x: Input, prototypes: Sequence[Prototype]) -> CompletionSession:  # noqa: ARG002
        """Return a session that completes from the aligned prototypes."""
        return VerbatimSession(prototypes)

    def save(self, folder: Path) -> None:
        """Write the table of values."""
        self.table.save(folder / TABLE)

    @classmethod
    def load(cls, artifact: Artifact) -> "SubstitutionEditor":
        """Load the editor that `save` wrote."""
        return cls(ValueTable.load(artifact.path(TABLE)))
