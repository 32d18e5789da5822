"""Slots: the values of an output that were made from its input.

Knows one pair at a time; `value_table` knows what many pairs have in common.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from redraft.text.spans import QUOTES, Span, WordSpans, is_number, is_word
from redraft.text.tokenizer import split_identifier
from redraft.text.value_formats import form_of, forms

STRING, NUMBER = '""', "#"
"""Quoted strings and numbers in a context."""


@dataclass(frozen=True)
class Target:
    """A part of an output, by its characters, its context, and whether it stands in quotes."""

    start: int
    end: int
    context: str
    is_quoted: bool


@dataclass(frozen=True)
class Slot:
    """A span of an input's words, and the places of the output that were made from it."""

    source: Span
    targets: tuple[Target, ...]
    is_derived: bool = False  # the output does not copy the source, but maps it to another text

    @property
    def contexts(self) -> frozenset[str]:
        """The contexts of the targets."""
        return frozenset(target.context for target in self.targets)


def contexts_of(output: WordSpans) -> list[str]:
    """Return the context of each word of an output: the two words before it, or before its string.

    Values in a context are masked, since they vary.
    """
    before: list[str] = []
    contexts: list[str] = []
    quoted = output.quoted
    for i, word in enumerate(output.folded):
        if quoted[i] and i and quoted[i - 1]:
            contexts.append(contexts[-1])
            continue
        contexts.append(" ".join(before[-2:]))
        if quoted[i]:
            before.append(STRING)
        elif word not in QUOTES:
            before.append(NUMBER if is_number(word) else word)
    return contexts


def identifier_parts(word: str) -> list[str]:
    """Return the parts of an identifier such as get_user; an empty list for any other word."""
    parts = split_identifier(word)
    return parts if len(parts) > 1 and "".join(parts) == word else []


def copied_slots(x: WordSpans, y: WordSpans, is_value: Callable[[str], bool]) -> list[Slot]:
    """Return the slots of values that the output copies from the input, also in another form.

    `is_value` tells of a case-folded word outside of quotes whether it can be a value.
    """
    positions: dict[str, list[int]] = defaultdict(list)
    for i, word in enumerate(x.folded):
        positions[word].append(i)
    other_forms = forms(x)
    quoted, contexts = y.quoted, contexts_of(y)
    targets: dict[Span, list[Target]] = defaultdict(list)

    def add(source: Span, start: int, end: int) -> None:
        targets[source].append(Target(start, end, contexts[i], quoted[i]))

    others = []
    i = 0
    while i < len(y):
        source = _longest_copy(x, y, i, positions, quoted) if is_word(y.words[i]) else None
        end = i + 1 if source is None else i + source[1] - source[0]
        if source is not None and any(quoted[j] or is_value(y.folded[j]) for j in range(i, end)):
            add(source, y.starts[i], y.ends[end - 1])
        else:
            others += [j for j in range(i, end) if is_word(y.words[j])]
        i = end
    copied = set(targets)
    for i in others:
        source = other_forms.get(form_of(y.words[i]))
        is_joined = source is not None and source[1] - source[0] > 1
        is_number_or_date = source is not None and is_number(y.words[i])
        if source is not None and (is_joined or is_number_or_date or quoted[i] or source in copied):
            add(source, y.starts[i], y.ends[i])
            continue
        start = y.starts[i]
        for part in identifier_parts(y.words[i]):
            folded = part.casefold()
            if folded in positions and is_value(folded) and not is_number(part):
                position = positions[folded][0]
                add((position, position + 1), start, start + len(part))
            start += len(part)
    return [Slot(source, tuple(places)) for source, places in sorted(targets.items())]


def _longest_copy(
    x: WordSpans, y: WordSpans, i: int, positions: Mapping[str, list[int]], quoted: Sequence[bool]
) -> Span | None:
    """Return the longest span of the input that stands at word `i` of the output."""
    best, longest = None, 0
    for start in positions.get(y.folded[i], ()):
        length = 1
        while (
            start + length < len(x)
            and i + length < len(y)
            and x.folded[start + length] == y.folded[i + length] != "\n"
            and quoted[i + length] == quoted[i]
        ):
            length += 1
        while not is_word(y.words[i + length - 1]):
            length -= 1
        if length > longest:
            best, longest = (start, start + length), length
    return best
