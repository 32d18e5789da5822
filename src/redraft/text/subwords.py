"""Subwords: an OOV word is split into pieces that are in the vocabulary.

As in WordPiece, every piece but the first of a word has the prefix `##`. Text tokens cannot begin
with it, because the tokenizer makes each `#` a separate token.
"""

from collections import Counter
from collections.abc import Container, Mapping

from redraft.text.vocabulary import most_frequent

CONTINUATION = "##"
_MAX_LENGTH = 8


def learn_pieces(counts: Mapping[str, int], size: int) -> list[str]:
    """Learn at most `size` pieces from token counts.

    Returns single characters first, then the longer pieces that shorten the tokens most.
    """
    savings: Counter[str] = Counter()
    characters: Counter[str] = Counter()
    for token, count in counts.items():
        for start in range(len(token)):
            mark = CONTINUATION if start else ""
            characters[mark + token[start]] += count
            for end in range(start + 2, min(start + _MAX_LENGTH, len(token)) + 1):
                # a piece of n characters saves n - 1 pieces per occurrence
                savings[mark + token[start:end]] += count * (end - start - 1)
    pieces = most_frequent(characters, size)
    return [*pieces, *most_frequent(savings, size - len(pieces))]


def segment(token: str, vocabulary: Container[str]) -> list[str] | None:
    """Split a token greedily into the longest pieces; return None if a character has no piece."""
    pieces: list[str] = []
    start = 0
    while start < len(token):
        mark = CONTINUATION if start else ""
        for end in range(len(token), start, -1):
            if mark + token[start:end] in vocabulary:
                pieces.append(mark + token[start:end])
                start = end
                break
        else:
            return None
    return pieces
