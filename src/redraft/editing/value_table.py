"""Values in the training pairs: what outputs copy from inputs, and what they derive from them.

A value stands in a context of the output, the two words before it, such as `country =`. The table
knows the values of each context as inputs write them and as outputs write them: "Poland" and `PL`
after `country =`. It finds the slots of a prototype, which an edit fills anew, and the mentions of
known values in an input.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from redraft.editing.slots import Slot, Target, contexts_of, copied_slots, identifier_parts
from redraft.storage.checks import damaged, read_json
from redraft.text.spans import Span, WordSpans, is_number, is_word, overlaps
from redraft.types import Example, Input, input_text

Form = tuple[str, ...]
"""A value as inputs write it: its case-folded words."""

MAX_PAIRS = 20_000
"""Pairs that a table is learned from; of more, an even sample."""

MAX_INPUT, MAX_OUTPUT = 256, 20_000
"""Words of an input that are aligned, and characters of an output that is edited: aligning takes
more than linear time."""

COPIED = 0.75
"""Least share of the outputs with a word whose inputs have it too, for the word to be a value."""

DERIVED_PRECISION = 0.6
DERIVED_RECALL = 0.1
DERIVED_RISK = 4.0
"""An n-gram g of inputs maps to a value v if P(v | g) and P(g | v) reach these shares, and P(v | g)
is this many times P(v | no g), all among the pairs that have a value in the context."""

LONGEST_DERIVED = 3
"""Length of the n-grams that a value may be derived from."""

DERIVED_FORMS = 3
"""Number of n-grams that a value may be derived from, best first."""

PLAIN = 0.9
"""Share of the inputs with a word in which it is no part of a value, for it to be a plain word."""

RARELY_A_VALUE = 0.1
"""A single word that is a value in a smaller share of its inputs is no mention of one."""

_COUNTERS = ("in_outputs", "copied", "in_inputs", "plain")


@dataclass
class ValueTable:
    """Counts of values and words in the training pairs."""

    values: dict[Form, dict[str, Counter[str]]] = field(default_factory=dict)
    """Form in the input → context → texts in the output, counted."""

    in_outputs: Counter[str] = field(default_factory=Counter)
    copied: Counter[str] = field(default_factory=Counter)
    """Pairs whose output has a word, and those of them whose input has it too."""

    in_inputs: Counter[str] = field(default_factory=Counter)
    plain: Counter[str] = field(default_factory=Counter)
    """Pairs whose input has a word, and those of them where it is no part of a value."""

    @classmethod
    def learn(cls, examples: Sequence[Example]) -> "ValueTable":
        """Count the values of `examples`."""
        step = max(1, -(-len(examples) // MAX_PAIRS))
        sample = [examples[row] for row in range(0, len(examples), step)]
        pairs = list(map(pair_words, sample))
        table = cls()
        for x, y in pairs:
            table._count_words(x, y)
        uncopied: dict[tuple[str, str], list[int]] = defaultdict(list)
        for row, (x, y) in enumerate(pairs):
            slots = copied_slots(x, y, table.is_value)
            table._count_pair(x, y, slots)
            for target in _uncopied(y, slots):
                uncopied[target.context, y.text[target.start : target.end]].append(row)
        table._learn_derived([x for x, _ in pairs], uncopied)
        return table

    def _count_words(self, x: WordSpans, y: WordSpans, count: int = 1) -> None:
        outputs = set(y.folded)
        for word in set(y.words):
            outputs.update(part.casefold() for part in identifier_parts(word))
        for counts, words in (
            (self.in_inputs, set(x.folded)),
            (self.in_outputs, outputs),
            (self.copied, outputs.intersection(x.folded)),
        ):
            for word in words:
                counts[word] += count

    def _count_pair(
        self, x: WordSpans, y: WordSpans, slots: Sequence[Slot], count: int = 1
    ) -> None:
        for slot in slots:
            for target in slot.targets:
                text = y.text[target.start : target.end]
                self._count(x.fold(slot.source), target.context, text, count)
        sources = [slot.source for slot in slots]
        plain = (
            word
            for i, word in enumerate(x.folded)
            if not any(start <= i < end for start, end in sources)
        )
        for word in set(plain):
            self.plain[word] += count

    def _count(self, form: Form, context: str, text: str, count: int = 1) -> None:
        contexts = self.values.setdefault(form, {})
        texts = contexts.setdefault(context, Counter())
        texts[text] += count
        if texts[text] <= 0:  # a form without texts is unknown
            del texts[text]
            if not texts:
                del contexts[context]
            if not contexts:
                del self.values[form]

    @contextmanager
    def without(self, examples: Sequence[Example]) -> Iterator[None]:
        """Forget the counts of `examples` in the block, as if the table had not learned from them.

        What was derived from several examples stays.
        """
        pairs = list(map(pair_words, examples))
        slots = [copied_slots(x, y, self.is_value) for x, y in pairs]
        for count in (-1, 1):
            for (x, y), pair_slots in zip(pairs, slots, strict=True):
                self._count_words(x, y, count)
                self._count_pair(x, y, pair_slots, count)
            if count < 0:
                yield

    def _learn_derived(
        self, inputs: Sequence[WordSpans], uncopied: Mapping[tuple[str, str], list[int]]
    ) -> None:
        """Map n-grams of inputs to values that the inputs do not have, such as "Poland" to `PL`."""
        ngrams = [set(_ngrams(x)) for x in inputs]
        rows_of: dict[str, set[int]] = defaultdict(set)
        variants: Counter[str] = Counter()
        for (context, _), rows in uncopied.items():
            rows_of[context].update(rows)
            variants[context] += 1
        rows_with: dict[str, Counter[Form]] = {}
        for context, context_rows in rows_of.items():
            counts: Counter[Form] = Counter()
            for row in context_rows:
                counts.update(ngrams[row])
            rows_with[context] = counts
        for (context, text), rows in uncopied.items():
            if variants[context] < 2:
                continue  # a constant
            together: Counter[Form] = Counter()
            for row in set(rows):
                together.update(ngrams[row])
            count = len(set(rows))
            ranked = []
            for form, both in together.items():
                total = rows_with[context][form]
                precision, recall = both / total, both / count
                otherwise = (count - both) / max(1, len(rows_of[context]) - total)
                least = max(DERIVED_PRECISION, DERIVED_RISK * otherwise)
                # a value that occurs once proves nothing, unless it abbreviates the word
                is_proven = both >= 2 or (len(form) == 1 and _abbreviates(text, form[0]))
                if is_proven and recall >= DERIVED_RECALL and precision >= least:
                    ranked.append((precision * recall, len(form), form))
            for _, _, form in sorted(ranked, reverse=True)[:DERIVED_FORMS]:
                self._count(form, context, text, together[form])

    def is_plain(self, word: str) -> bool:
        """Return True for punctuation, and for words of inputs that are hardly ever values."""
        if not is_word(word):
            return True
        return self.plain[word] >= max(2.0, PLAIN * self.in_inputs[word])

    def is_value(self, word: str) -> bool:
        """Return True if outputs have this case-folded word because their inputs have it.

        A word that no training output has is a value, too.
        """
        if not is_word(word):
            return False
        return is_number(word) or (self.copied[word] + 1) / (self.in_outputs[word] + 1) >= COPIED

    def slots(self, x: WordSpans, y: WordSpans) -> list[Slot]:
        """Return the slots of a pair: values copied from the input, and those derived from it."""
        slots = copied_slots(x, y, self.is_value)
        derived: dict[Span, list[Target]] = {}
        for target in _uncopied(y, slots):
            source = self._derived_from(x, target.context, y.text[target.start : target.end])
            if source is not None:
                derived.setdefault(source, []).append(target)
        slots += [
            Slot(source, tuple(targets), is_derived=True) for source, targets in derived.items()
        ]
        return sorted(slots, key=lambda slot: slot.source)

    def _derived_from(self, x: WordSpans, context: str, text: str) -> Span | None:
        best, most = None, 0
        for length in range(min(LONGEST_DERIVED, len(x)), 0, -1):
            for start in range(len(x) - length + 1):
                span = (start, start + length)
                contexts = self.values.get(x.fold(span), {})
                count = contexts[context][text] if context in contexts else 0
                if count > most:
                    best, most = span, count
        return best

    def mentions(self, x: WordSpans) -> dict[Span, dict[str, int]]:
        """Return the spans of an input that may be values, with the counts of their contexts.

        Known values have contexts; numbers, quoted strings and unknown words have none.
        """
        spans: dict[Span, dict[str, int]] = {}
        for start in range(len(x)):
            for end in range(start + 1, min(start + self._longest, len(x)) + 1):
                contexts = self.values.get(x.folded[start:end])
                if contexts is None:
                    continue
                counts = {context: sum(texts.values()) for context, texts in contexts.items()}
                total, plain = sum(counts.values()), self.plain[x.folded[start]]
                if end > start + 1 or total >= RARELY_A_VALUE * (total + plain):
                    spans[start, end] = counts
        for span in [*x.values(), *self._unknown_runs(x)]:
            spans.setdefault(span, {})
        return spans

    def _unknown_runs(self, x: WordSpans) -> Iterable[Span]:
        """Yield the spans of successive words that no training input has."""
        start = 0
        while start < len(x):
            end = start
            while end < len(x) and is_word(x.words[end]) and not self.in_inputs[x.folded[end]]:
                end += 1
            if end > start:
                yield start, end
            start = max(end, start + 1)

    @cached_property
    def _longest(self) -> int:
        """The number of words of the longest known value."""
        return max(map(len, self.values), default=0)

    def text_of(self, form: Form, context: str) -> str | None:
        """Return how outputs most often write a value in a context; None if it is unknown there."""
        texts = self.values.get(form, {}).get(context)
        # ties are broken by the text, so that equal tables give equal answers
        return min(texts, key=lambda text: (-texts[text], text)) if texts else None

    def save(self, path: Path) -> None:
        """Write the table as JSON."""
        values = [[list(form), contexts] for form, contexts in sorted(self.values.items())]
        counters = {name: getattr(self, name) for name in _COUNTERS}
        text = json.dumps({"values": values, **counters}, ensure_ascii=False, sort_keys=True)
        # lone surrogates, which UTF-8 cannot encode, become JSON escapes
        path.write_text(text, encoding="utf-8", errors="backslashreplace")

    @classmethod
    def load(cls, path: Path) -> "ValueTable":
        """Load and validate the file that `save` wrote."""
        saved = read_json(path)
        try:
            values = {
                tuple(map(_text, form)): {
                    context: _counter(texts) for context, texts in contexts.items()
                }
                for form, contexts in saved["values"]
            }
            return cls(values, *(_counter(saved[name]) for name in _COUNTERS))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise damaged(path, "not a table of values and counts") from error


def input_words(x: Input) -> WordSpans:
    """Return the words of an input, of a long one those at its beginning."""
    return WordSpans.of(input_text(x), limit=MAX_INPUT)


def pair_words(example: Example) -> tuple[WordSpans, WordSpans]:
    """Return the words of an example's input and output; a very long output has no slots."""
    x = input_words(example.x)
    return x if len(example.y) <= MAX_OUTPUT else WordSpans.of(""), WordSpans.of(example.y)


def _uncopied(y: WordSpans, slots: Sequence[Slot]) -> list[Target]:
    """Return the quoted strings and numbers of an output outside of its slots."""
    contexts, quoted = contexts_of(y), y.quoted
    covered = [(target.start, target.end) for slot in slots for target in slot.targets]
    values = (
        Target(y.starts[start], y.ends[end - 1], contexts[start], quoted[start])
        for start, end in y.values()
    )
    return [
        value
        for value in values
        if not any(overlaps((value.start, value.end), other) for other in covered)
    ]


def _ngrams(x: WordSpans) -> Iterable[Form]:
    for length in range(1, LONGEST_DERIVED + 1):
        for start in range(len(x) - length + 1):
            if is_word(x.words[start]) and is_word(x.words[start + length - 1]):
                yield x.folded[start : start + length]


def _abbreviates(text: str, word: str) -> bool:
    """Return True if a text has some letters of a word in order, the first included: PL, Poland."""
    letters = iter(word)
    is_short = 2 <= len(text) < len(word)
    return (
        is_short and text[:1].casefold() == word[:1] and all(c in letters for c in text.casefold())
    )


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError(f"text expected, got {type(value).__name__}")
    return value


def _counter(counts: Mapping[str, Any]) -> Counter[str]:
    if not all(type(count) is int and 0 < count < 2**53 for count in counts.values()):
        raise ValueError("a count is out of range")
    return Counter(counts)
