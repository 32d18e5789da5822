"""Edit examples as numbers: an input, a prototype, an output, and the words none of us knew.

A word that the vocabulary lacks gets a number of its own for the length of one edit example,
after those of the vocabulary: it can then be copied from where it stands and comes out as
itself. Knows no model.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from redraft.config import build
from redraft.data.example import Example, Input
from redraft.data.numbering import tokens_of
from redraft.data.sequences import Sequences
from redraft.data.tokenizer import Tokenizer, split_identifier
from redraft.data.vocabulary import END, START, UNKNOWN, Vocabulary

LONGEST_FIELD = 128
LONGEST_OUTPUT = 300


@dataclass(frozen=True)
class EditNumberingConfig:
    """Which words are known, and what of a prototype is read."""

    min_count: int = 2
    max_written: int = 10_000
    max_read: int = 20_000
    splits_inputs: bool = True
    reads_prototype_input: bool = False
    reads_prototype_output: bool = True


@dataclass(frozen=True)
class Tokens:
    """The tokens of an example: of each field of its input, and of its output."""

    fields: list[list[str]]
    output: list[str]


@dataclass(frozen=True)
class EditNumbers:
    """One edit example: the sequences that are read, the one that is written, unknown words."""

    sources: list[list[int]]
    target: list[int]
    unknown: list[str]


@dataclass(frozen=True)
class EditBatch:
    """Edit examples as padded tensors; numbers from the vocabulary's size on are unknown words."""

    sources: list[Sequences]
    target: Sequences
    width: int  # one more than the highest number of any unknown word


class EditNumbering:
    """A vocabulary whose first words can be written, and the way from edit examples to numbers."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        written: int,
        fields: Sequence[str],
        config: EditNumberingConfig,
    ) -> None:
        self.vocabulary = vocabulary
        self.written = written
        self.fields = list(fields)
        self.config = config
        self._tokenizer = Tokenizer()

    @classmethod
    def learn(cls, examples: Sequence[Example], config: EditNumberingConfig) -> "EditNumbering":
        """The numbering of the words that several of these examples share."""
        numbering = cls(Vocabulary.of({}), 0, list(examples[0].x), config)
        outputs: Counter[str] = Counter()
        inputs: Counter[str] = Counter()
        for example in examples:
            tokens = numbering.tokenize(example)
            # a name that one example has in x and in y is no word that others could use
            outputs.update(set(tokens.output))
            inputs.update({token for field in tokens.fields for token in field})
        written = _frequent(outputs, config.min_count, config.max_written)
        read = _frequent(inputs, config.min_count, config.max_read)
        only_read = {word: count for word, count in read.items() if word not in written}
        vocabulary = Vocabulary.of(written | only_read)
        return cls(vocabulary, len(vocabulary) - len(only_read), list(examples[0].x), config)

    @property
    def roles(self) -> int:
        """How many sequences are read: the fields of x, those of x', and y'."""
        fields = len(self.fields)
        return (
            fields + fields * self.config.reads_prototype_input + self.config.reads_prototype_output
        )

    @property
    def copyable(self) -> list[bool]:
        """Of each sequence whether words are copied from it: y' and the fields of x."""
        fields = len(self.fields)
        return [
            role < fields or (self.config.reads_prototype_output and role == self.roles - 1)
            for role in range(self.roles)
        ]

    def tokenize(self, example: Example) -> Tokens:
        """The tokens of an example."""
        return Tokens(self.tokenize_input(example.x), self.tokenize_output(example.y))

    def tokenize_input(self, x: Input) -> list[list[str]]:
        """The tokens of each field; an identifier of several parts is followed by them."""
        return [self._field(x.get(name, "")) for name in self.fields]

    def _field(self, text: str) -> list[str]:
        tokens: list[str] = []
        for token in tokens_of(text):
            tokens.append(token)
            if self.config.splits_inputs:
                parts = split_identifier(token)
                tokens += [part for part in parts if len(parts) > 1 and part.strip("_")]
            if len(tokens) >= LONGEST_FIELD:
                break
        return tokens[:LONGEST_FIELD]

    def tokenize_output(self, y: str) -> list[str]:
        """The tokens of an output, from which it can be spelled again."""
        return self._tokenizer.tokenize(y)

    def number(
        self,
        x: Sequence[Sequence[str]],
        prototypes: Sequence[Tokens | None],
        output: Sequence[str] = (),
        *,
        hidden: Collection[str] = (),
    ) -> list[EditNumbers]:
        """An edit example for each prototype of an input; all name unknown words alike.

        Hidden words count as unknown: what is often copied in training must be copied.
        """
        numbers = _Numbers(self.vocabulary, hidden)
        end = numbers.known(END)
        read = [[*numbers.all(field), end] for field in x]
        sources = [
            read + self._prototype_sources(prototype, numbers, end) for prototype in prototypes
        ]
        cut = output[:LONGEST_OUTPUT]
        target = [numbers.known(START), *map(numbers.known, cut)]
        target += [end] * (len(cut) == len(output))
        return [EditNumbers(each, target, list(numbers.unknown)) for each in sources]

    def _prototype_sources(
        self, prototype: Tokens | None, numbers: "_Numbers", end: int
    ) -> list[list[int]]:
        fields = prototype.fields if prototype else [[]] * len(self.fields)
        output = prototype.output if prototype else []
        sources = []
        if self.config.reads_prototype_input:
            sources += [[*numbers.all(field), end] for field in fields]
        if self.config.reads_prototype_output:
            sources.append([*numbers.all(output[:LONGEST_OUTPUT]), end])
        return sources

    def batch(self, rows: Sequence[EditNumbers]) -> EditBatch:
        """Edit examples as padded tensors."""
        sources = [Sequences.pad(role) for role in zip(*(row.sources for row in rows), strict=True)]
        unknown = max(len(row.unknown) for row in rows)
        target = Sequences.pad([row.target for row in rows])
        return EditBatch(sources, target, len(self.vocabulary) + unknown)

    def words(self, numbers: Iterable[int], unknown: Sequence[str]) -> list[str]:
        """The tokens with these numbers."""
        size, tokens = len(self.vocabulary), self.vocabulary.tokens
        return [tokens[each] if each < size else unknown[each - size] for each in numbers]

    def save(self, folder: Path) -> None:
        """Write the vocabulary and the settings."""
        self.vocabulary.save(folder / "vocabulary.txt")
        described = {
            "written": self.written,
            "fields": self.fields,
            "config": asdict(self.config),
        }
        text = json.dumps(described, indent=2) + "\n"
        (folder / "numbering.json").write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, vocabulary: Path, described: Mapping[str, Any], *, where: str) -> "EditNumbering":
        """The numbering that was saved: its vocabulary, and its settings as they were read."""
        config = build(EditNumberingConfig, described["config"], where=where)
        return cls(Vocabulary.load(vocabulary), described["written"], described["fields"], config)


class _Numbers:
    """The numbers of one input's words, unknown ones numbered as they are met."""

    def __init__(self, vocabulary: Vocabulary, hidden: Collection[str]) -> None:
        self.vocabulary = vocabulary
        self.hidden = hidden
        self.unknown: dict[str, int] = {}

    def all(self, tokens: Iterable[str]) -> list[int]:
        """The numbers of tokens that are read: an unknown word gets the next free one."""
        numbers = []
        for token in tokens:
            number = self.known(token)
            if number == _UNKNOWN_NUMBER:
                number = len(self.vocabulary) + len(self.unknown)
                self.unknown[token] = number
            numbers.append(number)
        return numbers

    def known(self, token: str) -> int:
        """The number of a token; that of the unknown token if it was never read."""
        if token in self.unknown:
            return self.unknown[token]
        if token in self.hidden:
            return _UNKNOWN_NUMBER
        return self.vocabulary.number(token)


_UNKNOWN_NUMBER = Vocabulary.of({}).number(UNKNOWN)


def _frequent(counts: Mapping[str, int], min_count: int, most: int) -> dict[str, int]:
    ranked = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return dict([entry for entry in ranked if entry[1] >= min_count][:most])
