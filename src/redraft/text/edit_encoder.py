"""Encode edit examples (an input, its prototypes and an output) as token ids.

OOV words get temporary ids after those of the vocabulary, as in pointer-generator networks (See et
al. 2017), so that the editor can copy them from its sources. Knows no network.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

from redraft.config.ranges import MIXED, WORDS, Range, check_ranges
from redraft.config.toml import build
from redraft.storage.checks import entry, names, read_json, whole
from redraft.text.token_encoder import tokens_of
from redraft.text.tokenizer import Tokenizer, split_identifier
from redraft.text.vocabulary import BOS_ID, EOS_ID, UNK_ID, Vocabulary, most_frequent
from redraft.types import Example, Input

MIN_COUNT = 2
"""Examples below which a word is out of vocabulary."""

MAX_INPUT_VOCAB = 20_000
"""The maximum number of words that come from inputs."""

LONGEST_FIELD = 128
LONGEST_OUTPUT = 300
MAX_SOURCES = 4_096
"""The maximum number of source sequences of a saved model."""


@dataclass(frozen=True)
class EditEncoderConfig:
    """The size of the output vocabulary, and the sequences that the network reads."""

    max_output_vocab: Annotated[int, WORDS] = 10_000
    prototypes: Annotated[int, Range(0, MIXED.high)] = 1  # read together; 0 is plain seq2seq
    reads_prototype_input: bool = False  # x' as well as y'

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True)
class Tokens:
    """The tokens of an example: one list per input field, and the output."""

    fields: list[list[str]]
    output: list[str]


@dataclass(frozen=True)
class EncodedEdit:
    """The ids of one edit example.

    `unknown` are its OOV words: the id of the first is the size of the vocabulary. `cached` are the
    outputs that the n-gram cache searches; `neighbours` the edit examples for test-time training.
    """

    sources: list[list[int]]
    target: list[int]
    unknown: list[str]
    cached: list[list[int]] = field(default_factory=list)
    neighbours: "list[EncodedEdit]" = field(default_factory=list)


class EditEncoder:
    """Encodes edit examples as ids.

    The first `output_vocab_size` words of the vocabulary can be generated; the others occur in
    inputs only and can be read and copied.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        output_vocab_size: int,
        fields: Sequence[str],
        config: EditEncoderConfig,
    ) -> None:
        self.vocabulary = vocabulary
        self.output_vocab_size = output_vocab_size
        self.fields = list(fields)
        self.config = config
        self._tokenizer = Tokenizer()

    @classmethod
    def learn(
        cls,
        examples: Sequence[Example],
        config: EditEncoderConfig,
        *,
        project: str = "",
        min_count: int = MIN_COUNT,
    ) -> "EditEncoder":
        """Build the vocabulary of the words that `min_count` examples share.

        `project` is the meta key of the project. With several projects a word must occur in two:
        a word of one project is OOV in the next, so training has to learn to copy it.
        """
        encoding = cls(Vocabulary.of({}), 0, list(examples[0].x), config)
        outputs, inputs = _DocumentFrequencies(), _DocumentFrequencies()
        for example in examples:
            tokens, name = encoding.tokenize(example), example.meta.get(project)
            # counted separately: a name in x and y of one example occurs in one example only
            outputs.count(set(tokens.output), name)
            inputs.count({token for field in tokens.fields for token in field}, name)
        output_words = outputs.frequent(min_count, config.max_output_vocab)
        input_words = inputs.frequent(min_count, MAX_INPUT_VOCAB)
        only_read = {w: count for w, count in input_words.items() if w not in output_words}
        vocabulary = Vocabulary.of(output_words | only_read)
        return cls(vocabulary, len(vocabulary) - len(only_read), list(examples[0].x), config)

    @property
    def source_ids(self) -> int:
        """The number of source sequences: the fields of x and, per prototype, y' (and x')."""
        return len(self.fields) + self.config.prototypes * self._sources_per_prototype

    @property
    def _sources_per_prototype(self) -> int:
        return len(self.fields) * self.config.reads_prototype_input + 1

    def prototype_of(self, source_id: int) -> int | None:
        """Return the index of the prototype that a source belongs to, or None for a field of x."""
        fields = len(self.fields)
        return None if source_id < fields else (source_id - fields) // self._sources_per_prototype

    @property
    def copyable(self) -> list[bool]:
        """True for each source that words can be copied from: the fields of x, and every y'."""
        of_prototype = [*[False] * (self._sources_per_prototype - 1), True]
        return [*[True] * len(self.fields), *of_prototype * self.config.prototypes]

    def tokenize(self, example: Example) -> Tokens:
        """Tokenize input and output of an example."""
        return Tokens(self.tokenize_input(example.x), self.tokenize_output(example.y))

    def tokenize_input(self, x: Input) -> list[list[str]]:
        """Tokenize each field; an identifier of several parts is followed by its parts."""
        return [self._field(x.get(name, "")) for name in self.fields]

    def _field(self, text: str) -> list[str]:
        tokens: list[str] = []
        for token in tokens_of(text):
            tokens.append(token)
            parts = split_identifier(token)
            tokens += [part for part in parts if len(parts) > 1 and part.strip("_")]
            if len(tokens) >= LONGEST_FIELD:
                break
        return tokens[:LONGEST_FIELD]

    def tokenize_output(self, y: str) -> list[str]:
        """Tokenize an output without loss."""
        return self._tokenizer.tokenize(y)

    def encode(
        self,
        x: Sequence[Sequence[str]],
        groups: Sequence[Sequence[Tokens]],
        output: Sequence[str] = (),
        *,
        hidden: Collection[str] = (),
        cached: Sequence[Sequence[str]] = (),
        neighbours: Sequence[Sequence[Tokens]] = (),
    ) -> list[EncodedEdit]:
        """Encode one edit example per group of prototypes; all share the ids of their OOVs.

        `x` are the tokens of the input's fields. Words in `hidden` count as OOVs, so that training
        has to copy them. Each of the `neighbours` is an example followed by its prototypes.
        """
        ids = _ExtendedIds(self.vocabulary, hidden)
        fields = ids.encode_each(x)
        sources = [fields + self._prototype_sources(group, ids) for group in groups]
        cached_ids = ids.encode_each(tokens[:LONGEST_OUTPUT] for tokens in cached)
        examples = [self._neighbour(example, others, ids) for example, *others in neighbours]
        # last: a completion session adds the OOVs of its prefix after all others
        target = _target(output, ids)
        oovs = list(ids.oovs)
        return [EncodedEdit(source, target, oovs, cached_ids, examples) for source in sources]

    def _neighbour(
        self, example: Tokens, prototypes: Sequence[Tokens], ids: "_ExtendedIds"
    ) -> EncodedEdit:
        sources = ids.encode_each(example.fields) + self._prototype_sources(prototypes, ids)
        return EncodedEdit(sources, _target(example.output, ids), [])

    def _prototype_sources(self, group: Sequence[Tokens], ids: "_ExtendedIds") -> list[list[int]]:
        sources: list[list[int]] = []
        empty = Tokens([[]] * len(self.fields), [])
        for prototype in (*group, *[empty] * self.config.prototypes)[: self.config.prototypes]:
            read = prototype.fields if self.config.reads_prototype_input else []
            sources += ids.encode_each([*read, prototype.output[:LONGEST_OUTPUT]])
        return sources

    def words(self, ids: Iterable[int], oovs: Sequence[str]) -> list[str]:
        """Decode ids of the extended vocabulary to tokens."""
        size, tokens = len(self.vocabulary), self.vocabulary.tokens
        return [tokens[i] if i < size else oovs[i - size] for i in ids]

    def save(self, folder: Path) -> None:
        """Write the vocabulary and the settings to `folder`."""
        self.vocabulary.save(folder / "vocabulary.txt")
        described = {
            "output_vocab_size": self.output_vocab_size,
            "fields": self.fields,
            "config": asdict(self.config),
        }
        text = json.dumps(described, indent=2) + "\n"
        (folder / "encoding.json").write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, vocabulary: Path, described: Path) -> "EditEncoder":
        """Load and validate the two files that `save` wrote."""
        values = read_json(described)
        config = build(
            EditEncoderConfig, entry(described, values, "config", dict), where=str(described)
        )
        fields = names(described, "fields", values.get("fields"))
        words = Vocabulary.load(vocabulary)
        size = values.get("output_vocab_size")
        size = whole(described, "output_vocab_size", size, least=EOS_ID + 1, most=len(words))
        source_ids = len(fields) * (1 + config.prototypes)
        whole(described, "the number of sources", source_ids, least=1, most=MAX_SOURCES)
        return cls(words, size, fields, config)


def _target(output: Sequence[str], ids: "_ExtendedIds") -> list[int]:
    """Encode an output between start and end tokens; a truncated one has no end token."""
    cut = output[:LONGEST_OUTPUT]
    return [BOS_ID, *ids.encode(cut), *[EOS_ID] * (len(cut) == len(output))]


class _ExtendedIds:
    """The extended vocabulary of one input: OOV words get ids in order of appearance."""

    def __init__(self, vocabulary: Vocabulary, hidden: Collection[str]) -> None:
        self.vocabulary = vocabulary
        self.hidden = hidden
        self.oovs: dict[str, int] = {}

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the ids of tokens; a new OOV word gets the next free id."""
        ids = []
        for token in tokens:
            token_id = UNK_ID if token in self.hidden else self.vocabulary.id_of(token)
            if token_id == UNK_ID:
                token_id = self.oovs.setdefault(token, len(self.vocabulary) + len(self.oovs))
            ids.append(token_id)
        return ids

    def encode_each(self, sequences: Iterable[Sequence[str]]) -> list[list[int]]:
        """Return the ids of several sources, each with an end token."""
        return [[*self.encode(tokens), EOS_ID] for tokens in sequences]


class _DocumentFrequencies:
    """Counts the examples that contain a word, and which words several projects use."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.first_project: dict[str, Any] = {}
        self.shared: set[str] = set()
        self.projects: set[Any] = set()

    def count(self, words: Collection[str], project: Any) -> None:
        """Count each of the distinct `words` of one example once."""
        self.counts.update(words)
        self.projects.add(project)
        for word in words:
            if self.first_project.setdefault(word, project) != project:
                self.shared.add(word)

    def frequent(self, min_count: int, most: int) -> dict[str, int]:
        """Return the `most` words with the highest document frequency, and their frequencies.

        Words in fewer than `min_count` examples are left out, and words of a single project where
        there are several.
        """
        shared = self.shared if len(self.projects) > 1 else self.counts
        counts = {word: count for word, count in self.counts.items() if word in shared}
        return most_frequent(counts, most, min_count=min_count)
