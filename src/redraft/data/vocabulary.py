"""Tokens to numbers and back, as a readable file: one JSON string and its count a line."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from redraft.errors import ModelError

PAD, UNKNOWN, START, END = "<pad>", "<unk>", "<s>", "</s>"
SPECIAL = (PAD, UNKNOWN, START, END)
"""Always the first four. No tokenizer makes them: its words hold no punctuation."""

PAD_NUMBER, UNKNOWN_NUMBER, START_NUMBER, END_NUMBER = range(len(SPECIAL))


@dataclass(frozen=True)
class Vocabulary:
    """The tokens a model knows, the most frequent first, each with its count."""

    tokens: tuple[str, ...]
    counts: tuple[int, ...]

    @classmethod
    def build(
        cls, sequences: Iterable[Sequence[str]], *, min_count: int = 1, max_size: int | None = None
    ) -> "Vocabulary":
        """The `max_size` most frequent tokens seen `min_count` times or more, ties by spelling."""
        counter: Counter[str] = Counter()
        for sequence in sequences:
            counter.update(sequence)
        ranked = sorted(counter.items(), key=lambda entry: (-entry[1], entry[0]))
        kept = [(token, count) for token, count in ranked if count >= min_count][:max_size]
        return cls.of(dict(kept))

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> "Vocabulary":
        """The vocabulary of these tokens, in this order, after the special ones."""
        return cls((*SPECIAL, *counts), (*(0 for _ in SPECIAL), *counts.values()))

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._numbers

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {token: number for number, token in enumerate(self.tokens)}

    @cached_property
    def alphabetical(self) -> list[tuple[str, int]]:
        """The tokens with their numbers in the order of their spelling."""
        return sorted((token, number) for number, token in enumerate(self.tokens))

    def number(self, token: str) -> int:
        """The number of a token; that of `UNKNOWN` if it is not known."""
        return self._numbers.get(token, self._numbers[UNKNOWN])

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """The numbers of the tokens; a token that is not known becomes that of `UNKNOWN`."""
        numbers, unknown = self._numbers, self._numbers[UNKNOWN]
        return [numbers.get(token, unknown) for token in tokens]

    def decode(self, numbers: Iterable[int]) -> list[str]:
        """The tokens with these numbers."""
        return [self.tokens[number] for number in numbers]

    def save(self, path: Path) -> None:
        """Write the vocabulary, one token a line."""
        rows = zip(self.tokens, self.counts, strict=True)
        lines = [f"{json.dumps(token, ensure_ascii=False)}\t{count}\n" for token, count in rows]
        # half a character, which UTF-8 cannot spell, becomes the escape JSON has for it
        path.write_text("".join(lines), encoding="utf-8", errors="backslashreplace", newline="\n")

    @classmethod
    def load(cls, path: Path) -> "Vocabulary":
        """The vocabulary that `save` wrote."""
        tokens, counts = [], []
        # not splitlines(): a token may be an exotic line separator
        *lines, rest = path.read_text(encoding="utf-8", errors="replace").split("\n")
        for number, line in enumerate(lines, start=1):
            try:
                token, count = line.rsplit("\t", 1)
                tokens.append(json.loads(token))
                counts.append(int(count))
            except ValueError as error:
                raise ModelError(f"{path}:{number}: not a vocabulary entry; fit again") from error
        if rest or tuple(tokens[: len(SPECIAL)]) != SPECIAL:
            raise ModelError(f"{path}: not a whole vocabulary; fit again")
        return cls(tuple(tokens), tuple(counts))
