"""Few-shot selection: the examples to show a language model beside an input.

The k nearest, or a set that covers the input: BM25 over n-grams, where each further example counts
for the n-grams that the ones before it do not have (Set-BM25, Gupta et al. 2023). The nearest comes
last, as prompts want it. Needs no model and no training.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from redraft.errors import ConfigError, PairsError
from redraft.index.bm25 import Bm25Index
from redraft.text.tokenizer import Tokenizer
from redraft.text.words import words
from redraft.types import Example, Input, as_input, input_text, normal_input

LONGEST_NGRAM = 4

Method = Literal["cover", "nearest"]
METHODS: tuple[Method, ...] = ("cover", "nearest")

Pair = Example | tuple[str | Input, str]
Value = TypeVar("Value")


def count_tokens(text: str) -> int:
    """Return the number of words and marks of a text."""
    return len(Tokenizer().tokenize(text))


def select(
    pairs: Sequence[Pair],
    x: str | Input,
    k: int = 5,
    *,
    method: Method = "cover",
    max_tokens: int | None = None,
    count: Callable[[str], int] = count_tokens,
) -> list[Example]:
    """Return at most `k` of the `pairs` to show beside `x`, nearest last.

    With `max_tokens`, examples that do not fit beside the chosen ones are skipped; `count` returns
    the tokens of a text. For several inputs keep a `FewShotSelector`.
    """
    return FewShotSelector(pairs, method=method, max_tokens=max_tokens, count=count).select(x, k)


class FewShotSelector:
    """Selects examples of `pairs` for inputs; see `select`."""

    def __init__(
        self,
        pairs: Sequence[Pair],
        *,
        method: Method = "cover",
        max_tokens: int | None = None,
        count: Callable[[str], int] = count_tokens,
    ) -> None:
        if method not in METHODS:
            raise ConfigError(f"method is {method!r}; choose one of: {', '.join(METHODS)}")
        if not pairs:
            raise PairsError("no pairs to select from; give at least one")
        self.examples = [_example(pair) for pair in pairs]
        self._method, self._max_tokens, self._count = method, max_tokens, count
        self._index = _NgramIndex([example.x for example in self.examples])

    def select(self, x: str | Input, k: int = 5) -> list[Example]:
        """Return at most `k` examples with different inputs, nearest last."""
        if k < 0:
            raise ConfigError(f"k is {k}; expected 0 or more")
        scores = self._index.scores(as_input(x))
        chosen: list[int] = []
        inputs: set[tuple[str, ...]] = set()
        tokens = 0
        for row in _ranked(scores, self._method):
            if len(chosen) == k:
                break
            example = self.examples[row]
            cost = self._cost(example)
            is_new = normal_input(example.x) not in inputs
            if is_new and (self._max_tokens is None or tokens + cost <= self._max_tokens):
                chosen.append(row)
                inputs.add(normal_input(example.x))
                tokens += cost
        return [self.examples[row] for row in nearest_last(chosen, scores.sum(axis=0))]

    def _cost(self, example: Example) -> int:
        if self._max_tokens is None:
            return 0
        return self._count(input_text(example.x)) + self._count(example.y)


def covering(x: Input, items: Sequence[Value], inputs: Sequence[Input], k: int) -> list[Value]:
    """Return at most `k` of the `items` whose inputs cover `x` together, nearest first."""
    if len(items) <= k:
        return list(items)
    scores = _NgramIndex(inputs).scores(x)
    rows = [row for row, _ in zip(_ranked(scores, "cover"), range(k), strict=False)]
    return [items[row] for row in sorted(rows)]  # items come nearest first


def nearest_last(rows: Sequence[int], scores: NDArray[np.float32]) -> list[int]:
    """Return the rows by rising score; of equal scores the first comes last."""
    return sorted(rows, key=lambda row: (scores[row], -row))


def _example(pair: Pair) -> Example:
    return pair if isinstance(pair, Example) else Example(as_input(pair[0]), pair[1])


class _NgramIndex:
    """BM25 over the n-grams of inputs."""

    def __init__(self, inputs: Sequence[Input]) -> None:
        self._index = Bm25Index.build(ngrams(words(x)) for x in inputs)

    def scores(self, x: Input) -> NDArray[np.float32]:
        """Return the BM25 score (T, N) of each n-gram of `x` in each input."""
        found = [self._index.of_word(term) for term in dict.fromkeys(ngrams(words(x)))]
        known = [(rows, own) for rows, own in found if len(rows)]
        scores = np.zeros((len(known), len(self._index)), np.float32)
        for i, (rows, own) in enumerate(known):
            scores[i, rows] = own
        return scores


def ngrams(tokens: Sequence[str]) -> list[str]:
    """Return the n-grams of tokens, from single ones up to `LONGEST_NGRAM`."""
    return [
        " ".join(tokens[start : start + size])
        for size in range(1, LONGEST_NGRAM + 1)
        for start in range(len(tokens) - size + 1)
    ]


def _ranked(scores: NDArray[np.float32], method: Method) -> Iterator[int]:
    """Yield all rows, best first, by their sums or by what they add to the rows before them."""
    total = scores.sum(axis=0)
    order = np.argsort(-total, kind="stable")
    if method == "nearest":
        yield from map(int, order)
        return
    left = np.ones(len(total), np.bool_)
    covered = np.zeros((len(scores), 1), np.float32)
    while left.any():
        gains = np.maximum(scores - covered, 0).sum(axis=0)
        gains[~left] = -1
        best = int(order[np.argmax(gains[order])])  # of equal gains the nearest
        if gains[best] <= 0 and covered.any():
            covered[:] = 0  # everything is covered: begin again with the others
            continue
        left[best] = False
        yield best
        covered = np.maximum(covered, scores[:, best : best + 1])
