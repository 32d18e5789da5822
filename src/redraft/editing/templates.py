"""Templates: inputs and outputs with their values masked, compared by TF-IDF n-grams.

Two questions for different cities have the same template. `compare` ranks prototypes by their
templates in two ways: the cosine similarity of the inputs, and the similarity of their outputs to
the output that a kernel ridge regression over the prototypes predicts (kernel dependency
estimation, Weston et al. 2002; Cortes et al. 2005). The regression is solved for each query over
its own prototypes, so added examples count at once.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redraft.editing.slot_filling import Query, SlottedExample
from redraft.editing.slots import Slot
from redraft.editing.value_table import ValueTable
from redraft.storage.checks import damaged, read_json
from redraft.text.spans import Span, WordSpans, is_number, is_word, overlaps
from redraft.types import Example

RIDGE = 1.0
"""The regularisation of the kernel ridge regression; the kernel of an input with itself is 1."""

UNKNOWN, VALUE = "<?>", "<value>"
"""An unknown value of an input, and any value of an output."""

FINAL = frozenset(".?!;:,")
"""Punctuation that is dropped at the end of an input."""

MIN_COUNT = 2
"""Rarer n-grams are not stored; they have the highest inverse document frequency anyway."""

CACHED = 20_000
"""Templates of prototypes that are kept in memory."""

Vector = dict[str, float]


@dataclass(frozen=True)
class Template:
    """A prototype with its values masked: the words of its input, and vectors of unit length."""

    source: SlottedExample
    words: frozenset[str]
    x: Vector
    y: Vector
    constants: frozenset[str]  # words of the output outside of its slots


@dataclass(frozen=True)
class Comparison:
    """A query compared with its prototypes, an entry for each of them."""

    words: frozenset[str]  # of the query, its values masked
    cosine: NDArray[np.float64]
    predicted: NDArray[np.float64]  # similarity to the predicted output
    missing: NDArray[np.float64]  # share of the query's words that x' has not, by their IDF
    extra: NDArray[np.float64]  # share of the words of x' that the query has not
    certainty: float  # length of the predicted output: near 1 if the prototypes agree


def masked_query(query: Query) -> list[str]:
    """Return the n-grams of a query with its values masked, and their most frequent contexts."""
    names: dict[Span, str] = {}
    for span in sorted(query.mentions, key=lambda span: (span[0] - span[1], span)):
        if not any(overlaps(span, other) for other in names):
            contexts = query.mentions[span]
            best = min(contexts, key=lambda name: (-contexts[name], name)) if contexts else None
            names[span] = UNKNOWN if best is None else f"<{best}>"
    return _masked(query.words, names)


def masked_input(x: WordSpans, slots: Sequence[Slot]) -> list[str]:
    """Return the n-grams of a prototype's input with its slots masked, and their contexts."""
    names: dict[Span, str] = {}
    for slot in slots:
        if not any(overlaps(slot.source, other) for other in names):
            names[slot.source] = f"<{slot.targets[0].context}>"
    return _masked(x, names)


def masked_output(y: WordSpans, slots: Sequence[Slot]) -> list[str]:
    """Return the words of an output; the values of slots are masked."""
    starts = [target.start for slot in slots for target in slot.targets]
    ends = [target.end for slot in slots for target in slot.targets]
    words = []
    for word, start, end in zip(y.folded, y.starts, y.ends, strict=True):
        inside = [s for s, e in zip(starts, ends, strict=True) if s < end and start < e]
        if not inside:
            words.append(word)
        elif any(start <= s for s in inside):  # once for each value
            words.append(VALUE)
    return words


def _masked(words: WordSpans, names: dict[Span, str]) -> list[str]:
    """Return n-grams in which every value is the same word, and the names of the values."""
    masked = []
    i = 0
    ends = dict(names.keys())
    while i < len(words):
        masked.append(VALUE if i in ends else words.folded[i])
        i = ends.get(i, i + 1)
    while masked and masked[-1] in FINAL:
        masked.pop()  # a question is the same with and without its mark
    return [*ngrams(masked), *(name for name in names.values() if name != UNKNOWN)]


def ngrams(words: Sequence[str]) -> list[str]:
    """Return the words and the pairs of neighbours, the ends of the text included."""
    padded = ["^", *words, "$"]
    return [*words, *(f"{left} {right}" for left, right in pairwise(padded))]


@dataclass
class TemplateModel:
    """Document frequencies of n-grams in masked inputs and outputs."""

    table: ValueTable
    count: int = 0
    inputs: Counter[str] = field(default_factory=Counter)
    outputs: Counter[str] = field(default_factory=Counter)

    @classmethod
    def learn(cls, examples: Iterable[Example], table: ValueTable) -> "TemplateModel":
        """Count the n-grams of `examples`."""
        model = cls(table)
        for example in examples:
            source = SlottedExample.of(example, table)
            model.count += 1
            model.inputs.update(set(masked_input(source.x, source.slots)))
            model.outputs.update(set(ngrams(masked_output(source.y, source.slots))))
        for counts in (model.inputs, model.outputs):
            for ngram in [ngram for ngram, count in counts.items() if count < MIN_COUNT]:
                del counts[ngram]
        return model

    def template(self, example: Example) -> Template:
        """Return the template of an example."""
        key = example.identity
        if key not in self._templates:
            if len(self._templates) >= CACHED:
                self._templates.clear()
            source = SlottedExample.of(example, self.table)
            grams = masked_input(source.x, source.slots)
            output = masked_output(source.y, source.slots)
            self._templates[key] = Template(
                source,
                frozenset(gram for gram in grams if " " not in gram or gram[0] == "<"),
                self._vector(grams, self.inputs),
                self._vector(ngrams(output), self.outputs),
                frozenset(output),
            )
        return self._templates[key]

    @cached_property
    def _templates(self) -> dict[str, Template]:
        return {}

    def compare(self, query: Query, templates: Sequence[Template]) -> "Comparison":
        """Compare a query with the templates of its prototypes."""
        grams = masked_query(query)
        x = self._vector(grams, self.inputs)
        inputs = _matrix([x, *(template.x for template in templates)])
        outputs = _matrix([template.y for template in templates])
        similar = inputs[1:] @ inputs[0]
        kernel = inputs[1:] @ inputs[1:].T + RIDGE * np.eye(len(templates))
        predicted = np.linalg.solve(kernel, similar) @ outputs
        length = float(np.linalg.norm(predicted))
        predicted /= max(length, 1e-9)
        own = frozenset(gram for gram in grams if " " not in gram or gram[0] == "<")
        shares = np.array(
            [
                (self._share(own - other, own), self._share(other - own, other))
                for other in (template.words for template in templates)
            ]
        ).reshape(len(templates), 2)
        return Comparison(
            own,
            similar,
            outputs @ predicted,
            shares[:, 0],
            shares[:, 1],
            length,
        )

    def known_share(self, query: Query) -> float:
        """Return the share of a query's words that training inputs have, by their squared IDF.

        Numbers do not count. "How do I" is known everywhere: the rare words decide, as in a cosine
        similarity.
        """
        words = [word for word in query.words.folded if is_word(word) and not is_number(word)]
        weights = [self._idf(word, self.inputs) ** 2 for word in words]
        known = (
            weight
            for word, weight in zip(words, weights, strict=True)
            if self.table.in_inputs[word] > 0
        )
        return math.fsum(known) / math.fsum(weights) if words else 0.0

    def _share(self, words: frozenset[str], of: frozenset[str]) -> float:
        # fsum: the order of a set differs between processes, and so would rounded sums
        total = math.fsum(self._idf(word, self.inputs) for word in of)
        return math.fsum(self._idf(word, self.inputs) for word in words) / total if total else 0.0

    def _idf(self, ngram: str, counts: Counter[str]) -> float:
        return math.log((1 + self.count) / (1 + counts[ngram])) + 1

    def _vector(self, grams: Sequence[str], counts: Counter[str]) -> Vector:
        vector = {
            gram: (1 + math.log(occurrences)) * self._idf(gram, counts)
            for gram, occurrences in Counter(grams).items()
        }
        length = math.sqrt(sum(weight * weight for weight in vector.values())) or 1.0
        return {ngram: weight / length for ngram, weight in vector.items()}

    def save(self, path: Path) -> None:
        """Write the counts as JSON; the table of values is saved by its editor."""
        values = {"count": self.count, "inputs": self.inputs, "outputs": self.outputs}
        text = json.dumps(values, ensure_ascii=False, sort_keys=True)
        path.write_text(text, encoding="utf-8", errors="backslashreplace")

    @classmethod
    def load(cls, path: Path, table: ValueTable) -> "TemplateModel":
        """Load and validate the file that `save` wrote."""
        saved = read_json(path)
        try:
            count = _count(saved["count"])
            counts = [
                Counter({ngram: _count(value) for ngram, value in saved[name].items()})
                for name in ("inputs", "outputs")
            ]
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise damaged(path, "not counts of n-grams") from error
        return cls(table, count, *counts)


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**53:
        raise ValueError("a count is out of range")
    return value


def _matrix(vectors: Sequence[Vector]) -> NDArray[np.float64]:
    """Return sparse vectors as the rows of a dense matrix."""
    columns: dict[str, int] = {}
    for vector in vectors:
        for ngram in vector:
            columns.setdefault(ngram, len(columns))
    matrix = np.zeros((len(vectors), len(columns)))
    for row, vector in enumerate(vectors):
        for ngram, weight in vector.items():
            matrix[row, columns[ngram]] = weight
    return matrix
