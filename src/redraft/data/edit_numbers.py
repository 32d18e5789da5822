"""Edit examples as numbers: an input, a prototype, an output, and the words none of us knew.

A word that the vocabulary lacks gets a number of its own for the length of one edit example,
after those of the vocabulary: it can then be copied from where it stands and comes out as
itself. Knows no model.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from redraft.config import build
from redraft.data.example import Example, Input
from redraft.data.numbering import tokens_of
from redraft.data.pieces import segment
from redraft.data.sequences import Sequences
from redraft.data.shared_words import SharedWords, spelling
from redraft.data.tokenizer import Tokenizer, spell, split_identifier
from redraft.data.vocabulary import END_NUMBER, START_NUMBER, UNKNOWN_NUMBER, Vocabulary
from redraft.errors import ConfigError

_PARTS = Tokenizer(splits_identifiers=True)

LONGEST_FIELD = 128
LONGEST_OUTPUT = 300


@dataclass(frozen=True)
class EditNumberingConfig:
    """Which words are known, and what is read: of how many prototypes, and of each.

    With `pieces`, a word of an output that is neither known nor read is written in parts, and what
    is no known part in so many pieces: every word can then be written.
    """

    min_count: int = 2
    max_written: int = 10_000
    max_read: int = 20_000
    splits_inputs: bool = True
    prototypes: int = 1  # read side by side, none if 0; their outputs always, their inputs if told
    reads_prototype_input: bool = False
    pieces: int = 0

    def __post_init__(self) -> None:
        if self.prototypes < 0:
            raise ConfigError(f"prototypes is {self.prototypes}; make it 0 (none read) or more")


@dataclass(frozen=True)
class Tokens:
    """The tokens of an example: of each field of its input, and of its output."""

    fields: list[list[str]]
    output: list[str]


@dataclass(frozen=True)
class EditNumbers:
    """One edit example: the sequences that are read, the one that is written, unknown words.

    The cached outputs are those that are looked up and not read; the remembered examples those
    that are read as if they were written.
    """

    sources: list[list[int]]
    target: list[int]
    unknown: list[str]
    cached: list[list[int]] = field(default_factory=list)
    remembered: "list[EditNumbers]" = field(default_factory=list)


@dataclass(frozen=True)
class EditBatch:
    """Edit examples as padded tensors; numbers from the vocabulary's size on are unknown words."""

    sources: list[Sequences]
    target: Sequences
    width: int  # one more than the highest number of any unknown word


@dataclass(frozen=True)
class Places:
    """All places of the cached outputs, one output after the other, a start before each."""

    ids: Tensor  # (B, S), padded with 0
    ranks: Tensor  # (B, S), the rank of the output that a place is of, from 0

    def to(self, device: torch.device) -> "Places":
        """The same places on a device."""
        return Places(self.ids.to(device), self.ranks.to(device))


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
    def learn(
        cls, examples: Sequence[Example], config: EditNumberingConfig, *, project: str = ""
    ) -> "EditNumbering":
        """The numbering of the words that several of these examples share.

        If their meta names several projects, a word must be shared by two of these: what one
        project alone has will be unknown in the next, and has to be copied there and here.
        """
        numbering = cls(Vocabulary.of({}), 0, list(examples[0].x), config)
        outputs, inputs = SharedWords(), SharedWords()
        for example in examples:
            tokens, owner = numbering.tokenize(example), example.meta.get(project)
            # a name that one example has in x and in y is no word that others could use
            outputs.count(set(tokens.output), owner)
            inputs.count({token for field in tokens.fields for token in field}, owner)
        written = outputs.frequent(config.min_count, config.max_written)
        if config.pieces:
            written |= spelling(outputs.counts, written, config.pieces)
        read = inputs.frequent(config.min_count, config.max_read)
        only_read = {word: count for word, count in read.items() if word not in written}
        vocabulary = Vocabulary.of(written | only_read)
        return cls(vocabulary, len(vocabulary) - len(only_read), list(examples[0].x), config)

    @property
    def roles(self) -> int:
        """How many sequences are read: the fields of x and, of each prototype, those of x', y'."""
        return len(self.fields) + self.config.prototypes * self._roles_of_prototype

    @property
    def _roles_of_prototype(self) -> int:
        return len(self.fields) * self.config.reads_prototype_input + 1

    def prototype_of(self, role: int) -> int | None:
        """The prototype that a sequence belongs to, from 0; None for the fields of x."""
        own = len(self.fields)
        return None if role < own else (role - own) // self._roles_of_prototype

    @property
    def copyable(self) -> list[bool]:
        """Of each sequence whether words are copied from it: every y' and the fields of x."""
        of_prototype = [*[False] * (self._roles_of_prototype - 1), True]
        return [*[True] * len(self.fields), *of_prototype * self.config.prototypes]

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
        groups: Sequence[Sequence[Tokens]],
        output: Sequence[str] = (),
        *,
        hidden: Collection[str] = (),
        cached: Sequence[Sequence[str]] = (),
        remembered: Sequence[Sequence[Tokens]] = (),
    ) -> list[EditNumbers]:
        """An edit example for each group of prototypes of an input; all name unknown words alike.

        Hidden words count as unknown: what is often copied in training must be copied. A remembered
        example comes before its own prototypes.
        """
        numbers = _Numbers(self.vocabulary, hidden)
        read = [[*numbers.all(field), END_NUMBER] for field in x]
        sources = [read + self._prototype_sources(group, numbers) for group in groups]
        # the output comes last: a draft numbers its new words when all others have their numbers
        looked_up = [[*numbers.all(each[:LONGEST_OUTPUT]), END_NUMBER] for each in cached]
        like = [self._remembered(example, own, numbers) for example, *own in remembered]
        target = self._target(output, numbers, sources)
        unknown = list(numbers.unknown)
        return [EditNumbers(each, target, unknown, looked_up, like) for each in sources]

    def _remembered(
        self, example: Tokens, prototypes: Sequence[Tokens], numbers: "_Numbers"
    ) -> EditNumbers:
        read = [[*numbers.all(field), END_NUMBER] for field in example.fields]
        sources = read + self._prototype_sources(prototypes, numbers)
        return EditNumbers(sources, self._target(example.output, numbers, [sources]), [])

    def _target(
        self, output: Sequence[str], numbers: "_Numbers", sources: Sequence[Sequence[list[int]]]
    ) -> list[int]:
        spelled = self._spelled(output, numbers, sources) if self.config.pieces else output
        cut = spelled[:LONGEST_OUTPUT]
        return [START_NUMBER, *numbers.all(cut), *[END_NUMBER] * (len(cut) == len(spelled))]

    def _spelled(
        self, output: Sequence[str], numbers: "_Numbers", sources: Sequence[Sequence[list[int]]]
    ) -> list[str]:
        """The output with what can be neither written nor copied in parts and pieces."""
        read = {number for group in sources for each in group for number in each}

        def comes_out(token: str) -> bool:
            number = numbers.known(token)
            return number in read or (number < self.written and number != UNKNOWN_NUMBER)

        spelled: list[str] = []
        left = ""
        for token in output:
            pieces: list[str] = []
            for part in [token] if comes_out(token) else _PARTS.tokenize(token):
                pieces += (not comes_out(part) and segment(part, self._writable)) or [part]
            if left and _has_space(left, token) and not _has_space(spelled[-1], pieces[0]):
                spelled.append(" ")  # a word that came apart has underscores alone at its end
            spelled += pieces
            left = token
        return spelled

    @cached_property
    def _writable(self) -> set[str]:
        return set(self.vocabulary.tokens[: self.written])

    def _prototype_sources(self, group: Sequence[Tokens], numbers: "_Numbers") -> list[list[int]]:
        sources = []
        nothing = Tokens([[]] * len(self.fields), [])
        for prototype in (*group, *[nothing] * self.config.prototypes)[: self.config.prototypes]:
            if self.config.reads_prototype_input:
                sources += [[*numbers.all(field), END_NUMBER] for field in prototype.fields]
            sources.append([*numbers.all(prototype.output[:LONGEST_OUTPUT]), END_NUMBER])
        return sources

    def batch(self, rows: Sequence[EditNumbers]) -> EditBatch:
        """Edit examples as padded tensors."""
        sources = [Sequences.pad(role) for role in zip(*(row.sources for row in rows), strict=True)]
        unknown = max(len(row.unknown) for row in rows)
        target = Sequences.pad([row.target for row in rows])
        return EditBatch(sources, target, len(self.vocabulary) + unknown)

    def places(self, rows: Sequence[EditNumbers]) -> Places:
        """The places of the cached outputs of edit examples."""
        ids = [[number for each in row.cached for number in (START_NUMBER, *each)] for row in rows]
        ranks = [
            [rank for rank, each in enumerate(row.cached) for _ in range(1 + len(each))]
            for row in rows
        ]
        return Places(Sequences.pad(ids).ids, Sequences.pad(ranks).ids)

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


def _has_space(left: str, right: str) -> bool:
    return spell([left, right])[1] == f" {right}"


class _Numbers:
    """The numbers of one input's words, unknown ones numbered as they are met."""

    def __init__(self, vocabulary: Vocabulary, hidden: Collection[str]) -> None:
        self.vocabulary = vocabulary
        self.hidden = hidden
        self.unknown: dict[str, int] = {}

    def all(self, tokens: Iterable[str]) -> list[int]:
        """The numbers of tokens: an unknown word gets the next free one."""
        numbers = []
        for token in tokens:
            number = self.known(token)
            if number == UNKNOWN_NUMBER:
                number = len(self.vocabulary) + len(self.unknown)
                self.unknown[token] = number
            numbers.append(number)
        return numbers

    def known(self, token: str) -> int:
        """The number of a token; that of the unknown token if it was never met."""
        if token in self.unknown:
            return self.unknown[token]
        if token in self.hidden:
            return UNKNOWN_NUMBER
        return self.vocabulary.number(token)
