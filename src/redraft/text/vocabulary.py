"""Vocabulary: tokens to ids and back, saved as a readable file of one token and count per line."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from redraft.errors import ModelError

PAD, UNKNOWN, START, END = "<pad>", "<unk>", "<s>", "</s>"
SPECIAL = (PAD, UNKNOWN, START, END)
"""The first four tokens of every vocabulary. Words of a text contain no punctuation."""

PAD_ID, UNK_ID, BOS_ID, EOS_ID = range(len(SPECIAL))


def most_frequent(
    counts: Mapping[str, int], most: int | None = None, *, min_count: int = 1
) -> dict[str, int]:
    """Return the `most` tokens of the highest counts, from `min_count`; ties sort by spelling."""
    ranked = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return dict([entry for entry in ranked if entry[1] >= min_count][:most])


@dataclass(frozen=True)
class Vocabulary:
    """Tokens and their counts, most frequent first; the id of a token is its index."""

    tokens: tuple[str, ...]
    counts: tuple[int, ...]

    @classmethod
    def build(cls, sequences: Iterable[Sequence[str]]) -> "Vocabulary":
        """Build the vocabulary of all tokens of `sequences`, most frequent first."""
        return cls.of(most_frequent(Counter(token for tokens in sequences for token in tokens)))

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> "Vocabulary":
        """Return the vocabulary of the special tokens and these, in this order."""
        return cls((*SPECIAL, *counts), (*(0 for _ in SPECIAL), *counts.values()))

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {token: i for i, token in enumerate(self.tokens)}

    @cached_property
    def alphabetical(self) -> list[tuple[str, int]]:
        """The tokens and their ids, sorted by spelling."""
        return sorted((token, i) for i, token in enumerate(self.tokens))

    def id_of(self, token: str) -> int:
        """Return the id of a token, or the id of `UNKNOWN` if it is OOV."""
        return self._ids.get(token, UNK_ID)

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the ids of the tokens; OOV tokens get the id of `UNKNOWN`."""
        return [self._ids.get(token, UNK_ID) for token in tokens]

    def save(self, path: Path) -> None:
        """Write the vocabulary, one token per line."""
        rows = zip(self.tokens, self.counts, strict=True)
        lines = [f"{json.dumps(token, ensure_ascii=False)}\t{count}\n" for token, count in rows]
        # a lone surrogate, which UTF-8 cannot encode, becomes a JSON escape
        path.write_text("".join(lines), encoding="utf-8", errors="backslashreplace", newline="\n")

    @classmethod
    def load(cls, path: Path) -> "Vocabulary":
        """Load and validate the vocabulary that `save` wrote."""
        tokens: list[str] = []
        counts: list[int] = []
        # not splitlines(): a token may be a Unicode line separator
        *lines, unfinished = path.read_text(encoding="utf-8", errors="replace").split("\n")
        for row, line in enumerate(lines, start=1):
            try:
                text, digits = line.rsplit("\t", 1)
                token, count = json.loads(text), int(digits)
                if not isinstance(token, str) or not 0 <= count < 1 << 63:
                    raise ValueError("a token must be text, and a count an integer of 63 bits")
            except (ValueError, RecursionError) as error:
                raise ModelError(f"{path}:{row}: not a vocabulary entry; fit again") from error
            tokens.append(token)
            counts.append(count)
        if unfinished or tuple(tokens[: len(SPECIAL)]) != SPECIAL:
            raise ModelError(f"{path}: not a whole vocabulary; fit again")
        return cls(tuple(tokens), tuple(counts))
