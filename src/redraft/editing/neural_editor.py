"""An editor that learned: writes an output for x from a prototype, token by token."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from redraft import config as settings
from redraft.artifact import Artifact
from redraft.data.edit_numbers import EditBatch, EditNumbering, EditNumbers
from redraft.data.example import Input
from redraft.data.tokenizer import spell
from redraft.data.vocabulary import END, PAD, START, UNKNOWN
from redraft.editing.beam_search import Hypothesis, SearchConfig, beam_search
from redraft.editing.candidate import Candidate
from redraft.editing.confidence import Confidence, features_of
from redraft.editing.editor import Editor
from redraft.editing.mixture import Mixture, MixtureState
from redraft.editing.neural_draft import NeuralDraft, Words
from redraft.editing.provenance import Origin, TracedToken
from redraft.models.edit_network import EditNetwork, EditNetworkConfig, EditSizes
from redraft.retrieval.prototype import Prototype

BATCH = 32
"""Inputs that are decoded at once."""


@dataclass(frozen=True)
class DecodingConfig:
    """How an output is searched for, and among how many prototypes it is mixed.

    A `max_length` of 0 is set by training: somewhat more than the longest output.
    """

    beam_size: int = 5
    length_penalty: float = 1.0
    max_length: int = 0
    prototypes: int = 1


@dataclass(frozen=True)
class _Question:
    """An input, its prototypes, and the edit example that each of them makes."""

    prototypes: Sequence[Prototype | None]
    edits: list[EditNumbers]

    @property
    def unknown(self) -> list[str]:
        """The unknown words of the input and of all prototypes."""
        return max((edit.unknown for edit in self.edits), key=len)


class NeuralEditor(Editor):
    """A trained network, the numbering of its words, and how to search its outputs."""

    name = "neural"

    def __init__(
        self,
        numbering: EditNumbering,
        network: EditNetwork,
        decoding: DecodingConfig,
        confidence: Confidence | None = None,
    ) -> None:
        self.numbering = numbering
        self.network = network
        self.decoding = decoding
        self.confidence = confidence
        known = numbering.vocabulary.number
        self._start, self._end = known(START), known(END)
        self._barred = [known(token) for token in (PAD, UNKNOWN, START)]

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
        return cls(numbering, EditNetwork(sizes, config), decoding)

    def with_decoding(self, decoding: DecodingConfig) -> "NeuralEditor":
        """The same editor that searches in another way."""
        return NeuralEditor(self.numbering, self.network, decoding, self.confidence)

    def with_confidence(self, confidence: Confidence) -> "NeuralEditor":
        """The same editor that knows how often it is right."""
        return NeuralEditor(self.numbering, self.network, self.decoding, confidence)

    def wants(self, k: int) -> int:  # noqa: ARG002
        """As many prototypes as are mixed, however many candidates are asked for."""
        return self.decoding.prototypes

    def batch(self, rows: Sequence[EditNumbers]) -> EditBatch:
        """Edit examples as tensors on the network's device."""
        device = self.network.words.weight.device
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
        questions = [self._question(x, found) for x, found in zip(inputs, prototypes, strict=True)]
        order = sorted(range(len(questions)), key=lambda at: _length(questions[at]))
        answers: list[list[Candidate]] = [[] for _ in questions]
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            found = self._search([questions[at] for at in rows], k, generator)
            for at, candidates in zip(rows, found, strict=True):
                answers[at] = candidates
        return answers

    def _question(self, x: Input, found: Sequence[Prototype]) -> _Question:
        prototypes: list[Prototype | None] = list(found[: self.decoding.prototypes]) or [None]
        tokens = [self.numbering.tokenize(each.example) if each else None for each in prototypes]
        return _Question(
            prototypes, self.numbering.number(self.numbering.tokenize_input(x), tokens)
        )

    def _search(
        self, questions: Sequence[_Question], k: int, generator: torch.Generator | None
    ) -> list[list[Candidate]]:
        walk, state = self._start_walk(questions)
        decoding = self.decoding
        size = k if generator else max(k, decoding.beam_size)
        search = SearchConfig(size, decoding.max_length, decoding.length_penalty)
        first = torch.full((len(questions),), self._start, device=state.weights.device)
        found = beam_search(
            walk,
            state,
            search,
            first=first,
            stops=[self._end],
            barred=self._barred,
            generator=generator,
        )
        kept = [
            (question, hypotheses[:k])
            for question, hypotheses in zip(questions, found, strict=True)
        ]
        return self._explain(kept)

    def _start_walk(self, questions: Sequence[_Question]) -> tuple[Mixture, MixtureState]:
        """The walk over the outputs of some questions; where prototypes lack, one fills in."""
        count = max(len(question.edits) for question in questions)
        rows, weights = [], []
        for question in questions:
            missing = count - len(question.edits)
            rows += question.edits + question.edits[:1] * missing
            weights.append(_log_weights(question.prototypes) + [-math.inf] * missing)
        walk = Mixture(self.network)
        state = self.network.encode(self.batch(rows), generator=None)
        return walk, walk.start(state, torch.tensor(weights, device=state.prepared.device))

    def _explain(
        self, found: Sequence[tuple[_Question, Sequence[Hypothesis]]]
    ) -> list[list[Candidate]]:
        """Candidates with the prototype that made each likeliest, and the origin of each token."""
        rows = [
            replace(edit, target=[self._start, *hypothesis.tokens], unknown=question.unknown)
            for question, hypotheses in found
            for hypothesis in hypotheses
            for edit in question.edits
        ]
        if not rows:
            return [[] for _ in found]
        batch = self.batch(rows)
        origins = self.network.origins(batch)  # (rows, T, 1+R)
        likelihoods = (origins.logsumexp(2) * batch.target.mask[:, 1:]).sum(1).tolist()
        answers, at = [], 0
        for question, hypotheses in found:
            candidates: dict[str, Candidate] = {}
            for hypothesis in hypotheses:
                count = len(question.edits)
                joint = [
                    likelihood + weight
                    for likelihood, weight in zip(
                        likelihoods[at : at + count], _log_weights(question.prototypes), strict=True
                    )
                ]
                best = joint.index(max(joint))
                candidate = self._candidate(question, hypothesis, best, origins[at + best])
                candidates.setdefault(candidate.output, candidate)
                at += count
            answers.append(list(candidates.values()))
        return answers

    def _candidate(
        self, question: _Question, hypothesis: Hypothesis, best: int, origins: Tensor
    ) -> Candidate:
        numbers = [each for each in hypothesis.tokens if each != self._end]
        texts = spell(self.numbering.words(numbers, question.unknown))
        names = self._origin_names()
        sources = origins[: len(texts)].argmax(1).tolist()
        provenance = tuple(
            TracedToken(text, names[source]) for text, source in zip(texts, sources, strict=True)
        )
        prototype = question.prototypes[best]
        candidate = Candidate(
            "".join(texts),
            hypothesis.score,
            prototype,
            log_prob=hypothesis.log_prob,
            provenance=provenance,
        )
        if self.confidence is None:
            return candidate
        confidence = self.confidence.of([features_of_candidate(candidate)])[0]
        return replace(candidate, confidence=float(confidence))

    def _origin_names(self) -> list[Origin]:
        """What each column of the network's origins stands for."""
        fields, roles = len(self.numbering.fields), self.numbering.roles
        return ["generated", *(["input"] * fields), *(["prototype"] * (roles - fields))]  # type: ignore[list-item]

    @torch.inference_mode()
    def begin(self, x: Input, prototypes: Sequence[Prototype]) -> NeuralDraft:
        """A draft from these prototypes, which are encoded here and not again."""
        question = self._question(x, prototypes)
        walk, state = self._start_walk([question])
        return NeuralDraft(
            walk, state, Words(self.numbering, question.unknown), question.prototypes
        )

    def save(self, folder: Path) -> None:
        """Write vocabulary, settings and weights."""
        self.numbering.save(folder)
        save_file(self.network.state_dict(), folder / "weights.safetensors")
        described = {"network": asdict(self.network.config), "decoding": asdict(self.decoding)}
        text = json.dumps(described, indent=2) + "\n"
        (folder / "editor.json").write_text(text, encoding="utf-8")
        if self.confidence:
            self.confidence.save(folder / "confidence.json")

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
        editor = cls.build(numbering, network, decoding)
        editor.network.load_state_dict(load_file(artifact.path("weights.safetensors")))
        editor.network.eval()
        if "confidence.json" not in artifact.files:
            return editor
        return editor.with_confidence(Confidence.load(artifact.path("confidence.json")))


def features_of_candidate(candidate: Candidate) -> list[float]:
    """What a confidence is read from."""
    distance = candidate.prototype.distance if candidate.prototype else None
    return features_of(candidate.log_prob or 0.0, len(candidate.provenance) + 1, distance)


def _length(question: _Question) -> int:
    return sum(map(len, question.edits[0].sources))


def _log_weights(prototypes: Sequence[Prototype | None]) -> list[float]:
    return [prototype.log_weight if prototype else 0.0 for prototype in prototypes]
