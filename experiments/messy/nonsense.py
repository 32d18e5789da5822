"""Make inputs that no index of a given domain should answer.

Knows words and languages; takes the domain's own inputs only to keep clear of them.
"""

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle

from experiments.messy import NO_ANSWER
from experiments.messy.nonsense_texts import (
    CITIES,
    CODE,
    FOREIGN,
    KEY_ROWS,
    QUESTIONS,
    SEASONS,
    SHORT,
    WORDS,
)
from redraft.types import TEXT_FIELD, Example, Input, input_text

__all__ = ["KINDS", "nonsense"]

NEAR = 0.5
"""Inputs that share this part of their content words with a known input are left out."""

_DRAWS_PER_INPUT = 200
_CONTENT = re.compile(r"\w{4,}")
_LINES = re.compile(r"(?m)^.+$")
_QUESTIONS = tuple(_LINES.findall(QUESTIONS))
_FOREIGN = tuple(line.partition(": ")[2] for line in _LINES.findall(FOREIGN))
_CODE = tuple(_LINES.findall(CODE))
_SHORT = tuple(text.strip() for text in SHORT.split("|"))
_WORDS = tuple(WORDS.split())


def nonsense(seed: int, count: int, known: Iterable[str | Input]) -> list[Example]:
    """Return `count` distinct inputs far from the `known` ones; meta has their kind, see `KINDS`.

    Kinds take turns; one that has no new inputs left drops out. The output is `NO_ANSWER`.
    """
    chance = random.Random(f"nonsense {seed}")
    guard = _Known(x if isinstance(x, str) else input_text(x) for x in known)
    seen: set[str] = set()
    examples: list[Example] = []
    exhausted: set[str] = set()
    for kind in cycle(KINDS):
        if len(examples) >= count:
            break
        if kind in exhausted:
            continue
        for _ in range(_DRAWS_PER_INPUT):
            text = KINDS[kind](chance, guard.words)
            if _folded(text) not in seen and not guard.is_near(text):
                seen.add(_folded(text))
                examples.append(Example({TEXT_FIELD: text}, NO_ANSWER, {"kind": kind}))
                break
        else:
            exhausted.add(kind)
    return examples


class _Known:
    """Tells whether a text is a known input, or shares most of its content words with one."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts: set[str] = set()
        self._words: list[set[str]] = []
        self._with: dict[str, list[int]] = defaultdict(list)
        for text in texts:
            self._texts.add(_folded(text))
            words = _content(text)
            for word in words:
                self._with[word].append(len(self._words))
            self._words.append(words)
        self.words = sorted(word for word in self._with if word.isalpha())

    def is_near(self, text: str) -> bool:
        words = _content(text)
        rows = {row for word in words for row in self._with.get(word, ())}
        overlaps = (len(words & self._words[row]) / len(words | self._words[row]) for row in rows)
        return _folded(text) in self._texts or any(overlap >= NEAR for overlap in overlaps)


def _folded(text: str) -> str:
    return " ".join(text.lower().split())


def _content(text: str) -> set[str]:
    return set(_CONTENT.findall(text.lower()))


def _fill(text: str, chance: random.Random) -> str:
    values = {
        "city": chance.choice(CITIES),
        "season": chance.choice(SEASONS),
        "name": chance.choice(("foo", "quux", "visit", "walk_tree", "fib", "parseNode", "acc")),
        "word": chance.choice(_WORDS),
        "number": str(chance.randint(2, 999)),
        "hex": f"{chance.getrandbits(24):06x}",
    }
    for slot, value in values.items():
        text = text.replace(f"{{{slot}}}", value)
    return text


def _other_domain(chance: random.Random, _: Sequence[str]) -> str:
    return _fill(chance.choice(_QUESTIONS), chance)


def _other_language(chance: random.Random, _: Sequence[str]) -> str:
    return _fill(chance.choice(_FOREIGN), chance)


def _random_words(chance: random.Random, _: Sequence[str]) -> str:
    return " ".join(chance.sample(_WORDS, chance.randint(2, 9)))


def _mixed_words(chance: random.Random, known: Sequence[str]) -> str:
    """Draw words, a third of them from known inputs: not every word of nonsense is unknown."""
    strange = chance.sample(_WORDS, chance.randint(2, 5))
    words = strange + chance.sample(known, min(len(known), len(strange) // 2))
    return " ".join(chance.sample(words, len(words)))


def _keyboard_mash(chance: random.Random, _: Sequence[str]) -> str:
    rows = chance.sample(KEY_ROWS, 2)
    groups = ("".join(chance.choices(rows[i % 2], k=chance.randint(3, 11))) for i in range(4))
    return " ".join(list(groups)[: chance.randint(1, 4)])


def _code(chance: random.Random, _: Sequence[str]) -> str:
    return _fill(chance.choice(_CODE), chance)


def _short(chance: random.Random, _: Sequence[str]) -> str:
    return chance.choice(_SHORT)


def _long(chance: random.Random, _: Sequence[str]) -> str:
    """Join questions and words to a text of 80 to 250 words, as a pasted page would be."""
    parts: list[str] = []
    length = chance.randint(80, 250)
    while sum(len(part.split()) for part in parts) < length:
        source = chance.choice((_other_domain, _other_domain, _other_domain, _random_words))
        parts.append(source(chance, ()))
    return " ".join(parts)


KINDS: Mapping[str, Callable[[random.Random, Sequence[str]], str]] = {
    "other domain": _other_domain,
    "random words": _random_words,
    "mixed words": _mixed_words,
    "other language": _other_language,
    "keyboard mash": _keyboard_mash,
    "code": _code,
    "short": _short,
    "long": _long,
}
