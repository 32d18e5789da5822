"""Data augmentation of edit examples: swapped numbers and masked rare words."""

import random
import re
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from redraft.text.edit_encoder import Tokens
from redraft.text.tokenizer import is_word

RARE, RARE_SHARE = 10, 0.15
"""A word in at most this many examples, or this share, is more likely a name than a keyword."""

IDENTITIES = 0.1
"""Share of examples that become their own prototype, as in the paper."""

SWAPPED_EXAMPLES = 0.5
"""Share of examples whose numbers are swapped."""

MASKED_WORDS = 0.2
"""Share of the rare words of an example that are masked."""

_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class AugmentationConfig:
    """The augmentations of training examples.

    With `shared_words`, some of the numbers that input and output share are replaced in both, and
    some of the rare words are treated as OOV, so that they must be copied.
    """

    shared_words: bool = True


def numbers_in(tokens: Iterable[str]) -> set[str]:
    """Return the decimal numbers within `tokens`."""
    return {number for token in tokens for number in _NUMBER.findall(token)}


def shared_numbers(example: Tokens) -> set[str]:
    """Return the numbers that occur in both the input and the output."""
    return numbers_in(_input_tokens(example)) & numbers_in(example.output)


def swap_numbers(example: Tokens, pool: Sequence[str], rng: random.Random) -> Tokens:
    """Replace the numbers that x and y share by random ones of `pool`.

    Returns `example` itself if the pool has too few unused numbers.
    """
    shared = sorted(shared_numbers(example))
    others = (numbers_in(_input_tokens(example)) | numbers_in(example.output)) - set(shared)
    free = [number for number in pool if number not in others]
    if len(free) < len(shared):
        return example
    # Distinct numbers stay distinct, and distinct from numbers that are not replaced.
    replacements = dict(zip(shared, rng.sample(free, len(shared)), strict=True))
    fields = [_replace(field, replacements) for field in example.fields]
    return Tokens(fields, _replace(example.output, replacements))


def rare_words(counts: Mapping[str, int], examples: int) -> set[str]:
    """Return the words that occur in few of `examples`, given their document frequencies."""
    max_count = max(RARE, RARE_SHARE * examples)
    return {word for word, count in counts.items() if count <= max_count and is_word(word)}


def words_to_mask(
    example: Tokens, rare: Container[str], rate: float, rng: random.Random
) -> set[str]:
    """Draw each rare word that x and y share with probability `rate`."""
    shared = sorted(_input_tokens(example).intersection(example.output))
    return {word for word in shared if word in rare and rng.random() < rate}


def _input_tokens(example: Tokens) -> set[str]:
    return {token for field in example.fields for token in field}


def _replace(tokens: Collection[str], numbers: Mapping[str, str]) -> list[str]:
    return [_NUMBER.sub(lambda match: numbers.get(match[0], match[0]), token) for token in tokens]
