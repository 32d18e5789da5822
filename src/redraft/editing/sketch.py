"""Sketches: pairs with their values masked and their outputs written in phrases.

A network learns "papers by _ in _" once for all authors and venues (delexicalisation; a sketch in
the sense of SkCoder, Li et al. 2023), and ten units in place of a hundred tokens. A sketch is a
text of words, so that any network for pairs can be trained on sketches. `SketchModel` writes
sketches of inputs and outputs, and fills sketches with the values of an input.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from redraft.editing.slot_filling import Query
from redraft.editing.slots import contexts_of
from redraft.editing.templates import FINAL
from redraft.editing.value_table import ValueTable
from redraft.text.phrases import Phrases, Unit
from redraft.text.spans import Span, WordSpans, is_number, overlaps
from redraft.text.tokenizer import Tokenizer, detokenize
from redraft.text.value_formats import canonical, plural, singular
from redraft.types import TEXT_FIELD, Example, Input

VALUE, PHRASE, KIND = "ǁ", "ǂ", "ǃ"
"""First letters of words that stand for a value, a phrase, and the kind of a value."""

FOLDS = 10
"""Examples are masked a fold at a time, with a table that does not know them."""

_COPY, _MAPPED = "i", "k"
_STYLES: Mapping[str, Callable[[str], str]] = {
    _COPY: str,
    "l": str.lower,
    "u": str.upper,
    "t": str.title,
    "n": lambda text: canonical(text) or text,
    "q": lambda text: singular(text.casefold()),
    "r": lambda text: plural(text.casefold()),
}
"""How an output writes a value of its input, beside `_MAPPED`: as the table of values says."""

_PLACEHOLDER = re.compile(rf"{VALUE}([a-z]+)_([a-z])")
_WORD = re.compile(r"\w+")
_NOT_A_LETTER = re.compile(r"[\W\d]+")


@dataclass(frozen=True)
class Masked:
    """An input with its values masked: its sketch, its words, and the span of each value."""

    sketch: Input
    words: WordSpans
    values: dict[tuple[str, ...], tuple[str, Span]]
    """Case-folded words of a value → its name in sketches, and where it stands first."""

    @cached_property
    def texts(self) -> dict[str, tuple[tuple[str, ...], str]]:
        """The case-folded words and the text of each value, by its name."""
        return {name: (form, self.words.slice(span)) for form, (name, span) in self.values.items()}


def mask_input(x: Input, table: ValueTable) -> Masked:
    """Replace the mentions of values in an input by their kinds and names."""
    query = Query.of(x, table)
    words = query.words
    spans: list[Span] = []
    for span in sorted(query.mentions, key=lambda span: (span[0] - span[1], span)):
        if "\n" not in words.fold(span) and not any(overlaps(span, other) for other in spans):
            spans.append(span)
    values: dict[tuple[str, ...], tuple[str, Span]] = {}
    masked: list[str] = []
    ends = dict(sorted(spans))
    i = 0
    while i < len(words):
        if i not in ends:
            masked.append(words.folded[i])
            i += 1
            continue
        span = (i, ends[i])
        form = words.fold(span)
        name, _ = values.setdefault(form, (_letters(len(values)), span))
        masked += [_kind(query, span), f"{VALUE}{name}_{_COPY}"]
        if _is_mapped(form, table):
            masked += form  # which text it is mapped to depends on the words themselves
        i = ends[i]
    while masked and masked[-1] in FINAL:
        masked.pop()
    return Masked({TEXT_FIELD: " ".join(masked)}, words, values)


def mask_output(masked: Masked, y: str, table: ValueTable) -> str:
    """Replace the values that an output has from its input by their names."""
    words = WordSpans.of(y)
    starts, ends = set(words.starts), set(words.ends)
    placeholders = []
    for slot in table.slots(masked.words, words):
        form = masked.words.fold(slot.source)
        if form not in masked.values:
            continue
        name, span = masked.values[form]
        for target in slot.targets:
            text = y[target.start : target.end]
            style = _style(form, masked.words.slice(span), target.context, text, table)
            if style and target.start in starts and target.end in ends:
                placeholders.append((target.start, target.end, f"{VALUE}{name}_{style}"))
    parts, position = [], 0
    for start, end, placeholder in sorted(placeholders):
        if start >= position:
            parts += [y[position:start], placeholder]
            position = end
    return "".join([*parts, y[position:]])


def fill(masked: Masked, y: str, table: ValueTable) -> str | None:
    """Write the values of the input into a masked output; None if it names one that is missing."""
    filled, position = "", 0
    for match in _PLACEHOLDER.finditer(y):
        name, style = match.groups()
        if name not in masked.texts or (style != _MAPPED and style not in _STYLES):
            return None
        filled += y[position : match.start()]
        position = match.end()
        form, text = masked.texts[name]
        if style == _MAPPED:
            context = contexts_of(WordSpans.of(f"{filled}{VALUE}"))[-1]
            filled += table.text_of(form, context) or text
        else:
            filled += _STYLES[style](text)
    return filled + y[position:]


def _style(
    form: tuple[str, ...], text: str, context: str, written: str, table: ValueTable
) -> str | None:
    """Return the style in which a value was written; None if there is none."""
    if text == written:
        return _COPY
    if table.text_of(form, context) == written:
        return _MAPPED
    styles = (style for style, write in _STYLES.items() if write(text) == written)
    return next(styles, _COPY if text.casefold() == written.casefold() else None)


def _kind(query: Query, span: Span) -> str:
    """Return a word for the kind of a value: its most frequent context, or its shape."""
    contexts = query.mentions[span]
    if not contexts:
        return KIND + ("number" if is_number(query.words.words[span[0]]) else "unknown")
    best = min(contexts, key=lambda context: (-contexts[context], context))
    return KIND + "_" + _NOT_A_LETTER.sub("_", best).strip("_")


def _is_mapped(form: tuple[str, ...], table: ValueTable) -> bool:
    """Return True if outputs write a value in other words than inputs."""
    texts = (text for contexts in table.values.get(form, {}).values() for text in contexts)
    return any(text.casefold() != " ".join(form) for text in texts)


def _letters(number: int) -> str:
    """Return a number in letters: digits are exchanged when networks are trained."""
    letters = ""
    while True:
        number, letter = divmod(number, 26)
        letters = chr(ord("a") + letter) + letters
        if not number:
            return letters


@dataclass(frozen=True)
class SketchModel:
    """Phrases of masked outputs, and their names in sketches."""

    phrases: Phrases
    names: dict[Unit, str]

    @classmethod
    def learn(cls, outputs: Iterable[str]) -> "SketchModel":
        """Learn the phrases of masked outputs."""
        tokens = [Tokenizer().tokenize(output) for output in dict.fromkeys(outputs)]
        phrases = Phrases.learn(tokens, is_atomic=lambda token: token.startswith(VALUE))
        units = dict.fromkeys(unit for row in tokens for unit in phrases.encode(row))
        units |= dict.fromkeys((token,) for row in tokens for token in row)
        return cls.of(
            phrases, [unit for unit in units if len(unit) > 1 or not _WORD.fullmatch(unit[0])]
        )

    @classmethod
    def of(cls, phrases: Phrases, units: Sequence[Unit]) -> "SketchModel":
        """Name the units that sketches do not write as they are."""
        return cls(phrases, {unit: PHRASE + _letters(i) for i, unit in enumerate(units)})

    def encode(self, output: str) -> str:
        """Write a masked output in phrases."""
        words: list[str] = []
        for unit in self.phrases.encode(Tokenizer().tokenize(output)):
            parts = [unit] if unit in self.names else [(token,) for token in unit]
            words += [self.names.get(part, part[0]) for part in parts]
        return " ".join(words)

    def decode(self, sketch: str) -> str:
        """Return the masked output that `encode` wrote."""
        tokens: list[str] = []
        for word in sketch.split():
            tokens += self._units.get(word, (word,))
        return detokenize(tokens)

    def sketch(self, example: Example, table: ValueTable) -> Example:
        """Return the sketch of an example."""
        masked = mask_input(example.x, table)
        return Example(masked.sketch, self.encode(mask_output(masked, example.y, table)))

    @cached_property
    def _units(self) -> dict[str, Unit]:
        return {name: unit for unit, name in self.names.items()}


def sketch_examples(
    examples: Sequence[Example], table: ValueTable
) -> tuple[list[Example], SketchModel]:
    """Return the sketches of examples, and the model that wrote them.

    The table forgets each fold of the examples while it is masked, as it does not know the values
    of a new input.
    """
    masked: list[tuple[Input, str]] = [({}, "")] * len(examples)
    for fold in range(FOLDS):
        with table.without(examples[fold::FOLDS]):
            for i in range(fold, len(examples), FOLDS):
                x = mask_input(examples[i].x, table)
                masked[i] = x.sketch, mask_output(x, examples[i].y, table)
    model = SketchModel.learn(y for _, y in masked)
    return [Example(x, model.encode(y)) for x, y in masked], model
