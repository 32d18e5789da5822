"""An editor that learned: writes an output for x from a prototype, token by token."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import torch
from safetensors.torch import load_file, save_file

from redraft import config as settings
from redraft.artifact import Artifact
from redraft.data.edit_numbers import EditBatch, EditNumbering, EditNumbers, Tokens
from redraft.data.example import Input
from redraft.data.tokenizer import detokenize, is_word
from redraft.data.vocabulary import END_NUMBER, START_NUMBER
from redraft.editing.beam_search import Allows, Hypothesis, SearchConfig, beam_search
from redraft.editing.candidate import Candidate
from redraft.editing.confidence import Confidence
from redraft.editing.editor import Editor
from redraft.editing.explanation import explain
from redraft.editing.mixture import Mixture, MixtureState
from redraft.editing.neural_draft import BARRED, SPARE, NeuralDraft, Words
from redraft.editing.question import Question
from redraft.editing.remembering import remember
from redraft.editing.studying import studied
from redraft.editing.syntax import AUTO, AnySyntax, Syntax, named_syntax
from redraft.errors import ConfigError
from redraft.models.edit_network import EditNetwork, EditNetworkConfig, EditSizes
from redraft.models.ensemble import EditDistribution, Ensemble
from redraft.models.ngram_cache import NgramCache, NoCache
from redraft.models.state_cache import Remembered, StateCache
from redraft.retrieval.prototype import Prototype

BATCH = 32
"""Inputs that are decoded at once."""

WIDEST = 80
"""The beam at which the search for a valid output is given up."""

_MOST_TOKENIZED = 20_000
"""Prototypes whose tokens are kept."""


@dataclass(frozen=True)
class DecodingConfig:
    """How an output is searched for, and what it is mixed from.

    `prototypes`: how many distributions are mixed, each of another prototype, or of as many as are
    read at once. `remembered`: how many of the nearest examples are read as if they were written,
    so that what followed in a like state is foreseen. `studied`: how many steps of training are
    taken on these before an answer, by a copy; not before a completion. `cached`: in how many of
    the nearest outputs the last words are looked up. A `max_length` of 0 is set by training:
    somewhat more than the longest output. `syntax`: what every output must be: any, python or json;
    with auto, training takes what its outputs are.
    """

    beam_size: int = 5
    length_penalty: float = 1.0
    max_length: int = 0
    prototypes: int = 1
    remembered: int = 0
    studied: int = 0
    cached: int = 0
    syntax: str = "any"

    def __post_init__(self) -> None:
        if self.syntax != AUTO:
            named_syntax(self.syntax)  # a wrong name is told before anything is trained
        if self.studied and not self.remembered:
            raise ConfigError(
                f"studied is {self.studied} and remembered 0; name how many of the nearest "
                "examples are to be remembered, such as 16"
            )


@dataclass(frozen=True, eq=False)
class NeuralEditor(Editor):
    """A trained network, the numbering of its words, and how to search its outputs."""

    name: ClassVar[str] = "neural"

    numbering: EditNumbering
    network: EditDistribution
    decoding: DecodingConfig
    confidence: Confidence | None = None
    cache: NgramCache | None = None
    state_cache: StateCache = field(default_factory=StateCache)
    own_syntax: Syntax | None = None
    _tokenized: dict[str, Tokens] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def build(
        cls, numbering: EditNumbering, config: EditNetworkConfig, decoding: DecodingConfig
    ) -> "NeuralEditor":
        """An editor that has learned nothing yet; its weights come from the global generator."""
        sizes = EditSizes(
            known=len(numbering.vocabulary),
            written=numbering.written,
            fields=len(numbering.fields),
            copyable=tuple(numbering.copyable),
        )
        network = EditNetwork(sizes, config)
        if config.expects_words:
            network.expect_words(numbering.vocabulary.counts[: numbering.written])
        return cls(numbering, network, decoding)

    @classmethod
    def together(cls, editors: "Sequence[NeuralEditor]") -> "NeuralEditor":
        """Editors of the same words as one, their networks as an ensemble."""
        first, *others = editors
        if not others:
            return first
        return replace(first, network=Ensemble([each.network for each in editors]))

    def with_decoding(self, decoding: DecodingConfig) -> "NeuralEditor":
        """The same editor that searches in another way."""
        return replace(self, decoding=decoding)

    def with_confidence(self, confidence: Confidence) -> "NeuralEditor":
        """The same editor that knows how often it is right."""
        return replace(self, confidence=confidence)

    def with_cache(self, cache: NgramCache | None) -> "NeuralEditor":
        """The same editor that looks up what followed the same words in other outputs."""
        return replace(self, cache=cache)

    def with_syntax(self, syntax: Syntax) -> "NeuralEditor":
        """The same editor whose outputs are all valid; a syntax of your own is not saved."""
        return replace(self, own_syntax=syntax)

    @property
    def syntax(self) -> Syntax:
        """What every output must be: what was given, or what the decoding names."""
        if self.own_syntax is not None:
            return self.own_syntax
        return named_syntax(self.decoding.syntax)

    def wants(self, k: int) -> int:  # noqa: ARG002
        """As many prototypes as are read or looked up, however many candidates are asked for."""
        read = self.decoding.prototypes * self.numbering.config.prototypes
        cached = self.decoding.cached if self.cache else 0
        return max(read, cached, self.decoding.remembered)

    def batch(self, rows: Sequence[EditNumbers]) -> EditBatch:
        """Edit examples as tensors on the network's device."""
        device = self.network.device
        batch = self.numbering.batch(rows)
        sources = [each.to(device) for each in batch.sources]
        return EditBatch(sources, batch.target.to(device), batch.width)

    @torch.inference_mode()
    def edit(
        self,
        inputs: Sequence[Input],
        prototypes: Sequence[Sequence[Prototype]],
        k: int = 1,
        *,
        generator: torch.Generator | None = None,
    ) -> list[list[Candidate]]:
        """The likeliest outputs for each input or, with a generator, outputs drawn at random."""
        questions = [self.question(x, found) for x, found in zip(inputs, prototypes, strict=True)]
        order = sorted(range(len(questions)), key=lambda at: _length(questions[at]))
        answers: list[list[Candidate]] = [[] for _ in questions]
        size = 1 if self.decoding.studied else BATCH
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            editor = studied(self, questions[rows[0]].edits[0].remembered)
            found = editor._search([questions[at] for at in rows], k, generator)
            for at, candidates in zip(rows, found, strict=True):
                answers[at] = candidates
        return answers

    def question(
        self, x: Input, found: Sequence[Prototype], output: Sequence[str] = (), *, spare: int = 0
    ) -> Question:
        """An input and its prototypes in numbers; the tokens of its output, where it is known."""
        numbering, decoding = self.numbering, self.decoding
        size = numbering.config.prototypes
        read = found[: size * decoding.prototypes]
        groups = [read[at : at + size] for at in range(0, len(read), size or 1)] or [[]]
        cached = found[: decoding.cached] if self.cache else []
        remembered = found[: decoding.remembered]
        edits = numbering.number(
            numbering.tokenize_input(x),
            [[self._tokens(each) for each in group] for group in groups],
            output,
            cached=[self._tokens(each).output for each in cached],
            remembered=[
                [self._tokens(each) for each in _with_prototypes(remembered, rank, size)]
                for rank in range(len(remembered))
            ],
        )
        unknown = [*edits[0].unknown, *[""] * spare]
        edits = [replace(each, unknown=unknown) for each in edits]
        return Question(groups, cached, remembered, edits)

    def _tokens(self, prototype: Prototype) -> Tokens:
        """The tokens of a prototype, kept: the nearest examples are asked for again and again."""
        identity = prototype.example.identity
        if identity not in self._tokenized:
            if len(self._tokenized) >= _MOST_TOKENIZED:
                self._tokenized.clear()
            self._tokenized[identity] = self.numbering.tokenize(prototype.example)
        return self._tokenized[identity]

    def _search(
        self, questions: Sequence[Question], k: int, generator: torch.Generator | None
    ) -> list[list[Candidate]]:
        size = k if generator else max(k, self.decoding.beam_size)
        remembered = remember(self, questions)
        found = self._hypotheses(questions, remembered, size, generator)
        lost = [at for at, hypotheses in enumerate(found) if not hypotheses]
        while lost and size < WIDEST:  # what was likeliest led to nothing valid
            size = min(4 * size, WIDEST)
            still = remembered.select(torch.tensor(lost, device=self.network.device))
            again = self._hypotheses([questions[at] for at in lost], still, size, generator)
            for at, hypotheses in zip(lost, again, strict=True):
                found[at] = hypotheses
            lost = [at for at in lost if not found[at]]
        kept = [
            (question, hypotheses[:k])
            for question, hypotheses in zip(questions, found, strict=True)
        ]
        return explain(self, kept, remembered)

    def _hypotheses(
        self,
        questions: Sequence[Question],
        remembered: Remembered,
        size: int,
        generator: torch.Generator | None,
    ) -> list[list[Hypothesis]]:
        walk, state = self.start_walk(questions, remembered)
        search = SearchConfig(size, self.decoding.max_length, self.decoding.length_penalty)
        return beam_search(
            walk,
            state,
            search,
            first=torch.full((len(questions),), START_NUMBER, device=state.weights.device),
            stops=[END_NUMBER],
            barred=BARRED,
            generator=generator,
            allows=self._allows(questions),
        )

    def _allows(self, questions: Sequence[Question]) -> Allows | None:
        """Whether an output of each question may begin so, or end there; None where all may."""
        syntax = self.syntax
        if isinstance(syntax, AnySyntax):
            return None

        def allows(row: int, tokens: Sequence[int]) -> bool:
            is_whole = tokens[-1] == END_NUMBER
            written = tokens[:-1] if is_whole else tokens
            words = self.numbering.words(written, questions[row].unknown)
            if is_whole:
                return syntax.accepts(detokenize(words))
            # a word that may go on is not judged before it has ended
            settled = words[:-1] if self.numbering.config.pieces and is_word(words[-1]) else words
            return syntax.begins(detokenize(settled))

        return allows

    def start_walk(
        self, questions: Sequence[Question], remembered: Remembered
    ) -> tuple[Mixture, MixtureState]:
        """The walk over the outputs of some questions; where prototypes lack, one fills in."""
        count = max(len(question.edits) for question in questions)
        rows, weights = [], []
        for question in questions:
            missing = count - len(question.edits)
            rows += question.edits + question.edits[:1] * missing
            weights.append(question.log_weights + [-math.inf] * missing)
        walk = Mixture(self.network, self.cache or NoCache(), self.state_cache)
        state = self.network.encode(self.batch(rows), generator=None)
        device = self.network.device
        places = self.numbering.places([question.edits[0] for question in questions]).to(device)
        log_weights = torch.tensor(weights, device=device)
        return walk, walk.start(state, log_weights, places, remembered)

    @torch.inference_mode()
    def begin(self, x: Input, prototypes: Sequence[Prototype]) -> NeuralDraft:
        """A draft from these prototypes, which are encoded here and not again."""
        question = self.question(x, prototypes, spare=SPARE)
        walk, state = self.start_walk([question], remember(self, [question]))
        return NeuralDraft(walk, state, Words(self.numbering, question.unknown), question)

    def save(self, folder: Path) -> None:
        """Write vocabulary, settings and weights."""
        self.numbering.save(folder)
        save_file(self.network.state_dict(), folder / "weights.safetensors")
        described = {
            "network": asdict(self.network.config),
            "members": self.network.size,
            "decoding": asdict(self.decoding),
        }
        text = json.dumps(described, indent=2) + "\n"
        (folder / "editor.json").write_text(text, encoding="utf-8")
        if self.confidence:
            self.confidence.save(folder / "confidence.json")
        if self.cache:
            save_file(self.cache.state_dict(), folder / "cache.safetensors")

    @classmethod
    def load(cls, artifact: Artifact) -> "NeuralEditor":
        """The editor that was saved."""
        where = f"{artifact.folder}: editor.json"
        described = artifact.json("editor.json")
        numbering = EditNumbering.load(
            artifact.path("vocabulary.txt"), artifact.json("numbering.json"), where=where
        )
        network = settings.build(EditNetworkConfig, described["network"], where=where)
        decoding = settings.build(DecodingConfig, described["decoding"], where=where)
        members = [
            cls.build(numbering, network, decoding) for _ in range(described.get("members", 1))
        ]
        editor = cls.together(members)
        editor.network.load_state_dict(load_file(artifact.path("weights.safetensors")))
        editor.network.eval()
        if "cache.safetensors" in artifact.files:
            cache = NgramCache()
            cache.load_state_dict(load_file(artifact.path("cache.safetensors")))
            editor = editor.with_cache(cache)
        if "confidence.json" not in artifact.files:
            return editor
        return editor.with_confidence(Confidence.load(artifact.path("confidence.json")))


def _with_prototypes(nearest: Sequence[Prototype], rank: int, count: int) -> list[Prototype]:
    """One of the nearest, then its own prototypes: the first of the others."""
    others = [*nearest[:rank], *nearest[rank + 1 :]]
    return [nearest[rank], *others[:count]]


def _length(question: Question) -> int:
    return sum(map(len, question.edits[0].sources))
