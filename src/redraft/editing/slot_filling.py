"""Slot filling: which span of a new input takes the place of each slot of a prototype.

The evidence is the alignment of x with x', the contexts in which a value is known, and the words
around it. Knows no outputs but through their slots.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property

from redraft.editing.slots import Slot
from redraft.editing.value_table import ValueTable, input_words, pair_words
from redraft.text.spans import Span, WordSpans, is_word, overlaps, shape_of
from redraft.types import Example, Input

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


def assign(
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
