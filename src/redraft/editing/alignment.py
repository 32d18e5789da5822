"""The provenance of a generated output, found by alignment with the prototypes."""

from collections.abc import Sequence
from difflib import SequenceMatcher

from redraft.text.tokenizer import Tokenizer, spell
from redraft.types import Candidate, Origin, Prototype, TracedToken

SOURCES = 5
"""Prototypes that a generated output is aligned with."""


def aligned(words: Sequence[str], output: str, prototypes: Sequence[Prototype]) -> Candidate:
    """Return a candidate whose tokens are traced by alignment with the most similar prototype.

    A token that stands in the alignment comes from the prototype, another one that is among the
    case-folded `words` of the input from the input; all others were generated.
    """
    tokens = spell(Tokenizer().tokenize(output))
    best, copied = None, set[int]()
    for prototype in prototypes[:SOURCES]:
        stored = spell(Tokenizer().tokenize(prototype.example.y))
        blocks = SequenceMatcher(None, stored, tokens, autojunk=False).get_matching_blocks()
        matched = {i for _, start, size in blocks for i in range(start, start + size)}
        if best is None or len(matched) > len(copied):
            best, copied = prototype, matched
    known = set(words)

    def origin(i: int) -> Origin:
        if i in copied:
            return "prototype"
        return "input" if tokens[i].strip().casefold() in known else "generated"

    provenance = tuple(TracedToken(token, origin(i)) for i, token in enumerate(tokens))
    return Candidate(output, 0.0, best, provenance=provenance)
