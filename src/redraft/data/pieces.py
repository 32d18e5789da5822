"""Sub-word pieces: an unknown word in parts that the vocabulary knows.

The first piece of a word is written as it is, the following ones with `##` before them. No text
token begins that way: `#` is always a token of its own.
"""

from collections import Counter
from collections.abc import Container, Mapping

CONTINUED = "##"
_LONGEST = 8


def learn_pieces(counts: Mapping[str, int], size: int) -> list[str]:
    """Pieces to spell these tokens with: every character, and the most useful longer ones."""
    useful: Counter[str] = Counter()
    characters: Counter[str] = Counter()
    for token, count in counts.items():
        for start in range(len(token)):
            mark = CONTINUED if start else ""
            characters[mark + token[start]] += count
            for end in range(start + 2, min(start + _LONGEST, len(token)) + 1):
                # a piece saves as many steps as it has characters, less one
                useful[mark + token[start:end]] += count * (end - start - 1)
    ranked = sorted(characters.items(), key=lambda entry: (-entry[1], entry[0]))
    longer = sorted(useful.items(), key=lambda entry: (-entry[1], entry[0]))
    pieces = [piece for piece, _ in ranked][:size]
    return pieces + [piece for piece, _ in longer][: size - len(pieces)]


def segment(token: str, vocabulary: Container[str]) -> list[str] | None:
    """The token in the longest known pieces from left to right; None if a character is unknown."""
    pieces: list[str] = []
    start = 0
    while start < len(token):
        mark = CONTINUED if start else ""
        for end in range(len(token), start, -1):
            if mark + token[start:end] in vocabulary:
                pieces.append(mark + token[start:end])
                start = end
                break
        else:
            return None
    return pieces
