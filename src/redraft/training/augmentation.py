"""What is changed in the edit examples of an epoch, so that few examples teach more."""

import random
import re
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from redraft.data.edit_numbers import Tokens
from redraft.data.tokenizer import is_word

RARE, RARE_SHARE = 10, 0.15
"""A word that so many examples have, or such a share, is more likely a name than a construct."""

_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class AugmentationConfig:
    """Chances: of an example, of an example, of a word.

    `identity`: it is its own prototype, as in the paper. `renumbered`: the numbers that its input
    and its output share are exchanged for others, in both. `hidden`: a word that they share and
    that few examples have is hidden, so that it must be copied.
    """

    identity: float = 0.1
    renumbered: float = 0.5
    hidden: float = 0.2


def numbers_in(tokens: Iterable[str]) -> set[str]:
    """The numbers that tokens are or contain."""
    return {number for token in tokens for number in _NUMBER.findall(token)}


def shared_numbers(example: Tokens) -> set[str]:
    """The numbers that stand in the input and in the output."""
    return numbers_in(_input(example)) & numbers_in(example.output)


def renumber(example: Tokens, pool: Sequence[str], chance: random.Random) -> Tokens:
    """The example with other numbers of the pool in place of those that x and y share."""
    shared = sorted(shared_numbers(example))
    others = (numbers_in(_input(example)) | numbers_in(example.output)) - set(shared)
    free = [number for number in pool if number not in others]
    if len(free) < len(shared):
        return example
    # no two become the same, and none becomes one that stays
    exchanged = dict(zip(shared, chance.sample(free, len(shared)), strict=True))
    fields = [_exchange(field, exchanged) for field in example.fields]
    return Tokens(fields, _exchange(example.output, exchanged))


def rare_words(counts: Mapping[str, int], examples: int) -> set[str]:
    """The words that few of the examples have, given the number of those that have each."""
    most = max(RARE, RARE_SHARE * examples)
    return {word for word, count in counts.items() if count <= most and is_word(word)}


def hide(example: Tokens, rare: Container[str], rate: float, chance: random.Random) -> set[str]:
    """Rare words that x and y share, each with the same chance."""
    shared = sorted(_input(example).intersection(example.output))
    return {word for word in shared if word in rare and chance.random() < rate}


def _input(example: Tokens) -> set[str]:
    return {token for field in example.fields for token in field}


def _exchange(tokens: Collection[str], exchanged: Mapping[str, str]) -> list[str]:
    return [_NUMBER.sub(lambda found: exchanged.get(found[0], found[0]), each) for each in tokens]
