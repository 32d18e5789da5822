"""The neural editor: generates an output from an input and its prototypes, token by token."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from safetensors.torch import save_file

from redraft.config import toml as settings
from redraft.editing.base import Editor
from redraft.editing.beam_search import Constraint, Hypothesis, SearchConfig, beam_search
from redraft.editing.bounds import check_decoding, check_network, load_cache, load_network
from redraft.editing.confidence import Confidence
from redraft.editing.constraints import AnySyntax, Syntax, named_syntax
from redraft.editing.decoding import DecodingConfig
from redraft.editing.editor_input import EditorInput
from redraft.editing.explanation import MIN_LOG_PROB, explain
from redraft.editing.neural_session import RESERVED_OOVS, SUPPRESSED, NeuralSession, Words
from redraft.editing.next_token import Mixture, MixtureState
from redraft.editing.test_time_training import NEIGHBOURS, adapt, edit_examples
from redraft.models.batch import CachePositions, EditBatch
from redraft.models.config import EditNetworkConfig
from redraft.models.edit_network import EditNetwork, EditSizes
from redraft.models.ngram_cache import NgramCache, NoCache
from redraft.storage.artifact import Artifact
from redraft.storage.checks import entry, read_json
from redraft.text.edit_encoder import EditEncoder, EncodedEdit, Tokens
from redraft.text.tokenizer import detokenize
from redraft.text.vocabulary import BOS_ID, EOS_ID
from redraft.types import Candidate, Input, Prototype

BATCH = 32
"""The number of inputs that are decoded together."""

MAX_BEAM = 80
"""The largest beam that is tried if no hypothesis satisfies the syntax."""

_CACHE_SIZE = 20_000
"""The number of prototypes whose tokens are cached."""


@dataclass(frozen=True, eq=False)
class NeuralEditor(Editor):
    """A network, the encoder of its inputs, and the settings of decoding."""

    name: ClassVar[str] = "neural"

    encoding: EditEncoder
    network: EditNetwork
    decoding: DecodingConfig
    confidence: Confidence | None = None
    cache: NgramCache | None = None
    custom_syntax: Syntax | None = None
    _tokenized: dict[str, Tokens] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def build(
        cls, encoding: EditEncoder, config: EditNetworkConfig, decoding: DecodingConfig
    ) -> "NeuralEditor":
        """Build an untrained editor; its weights are drawn from the global generator."""
        return cls(encoding, EditNetwork(_sizes(encoding), config), decoding)

    def with_decoding(self, decoding: DecodingConfig) -> "NeuralEditor":
        """Return a copy with other decoding settings."""
        return replace(self, decoding=decoding)

    def with_confidence(self, confidence: Confidence) -> "NeuralEditor":
        """Return a copy whose candidates have a confidence."""
        return replace(self, confidence=confidence)

    def with_cache(self, cache: NgramCache | None) -> "NeuralEditor":
        """Return a copy with another n-gram cache, or without one."""
        return replace(self, cache=cache)

    def with_syntax(self, syntax: Syntax) -> "NeuralEditor":
        """Return a copy whose outputs satisfy `syntax`, which `save` does not store."""
        return replace(self, custom_syntax=syntax)

    @property
    def syntax(self) -> Syntax:
        """The syntax of outputs: the one given to `with_syntax`, or the one named by `decoding`."""
        if self.custom_syntax is not None:
            return self.custom_syntax
        return named_syntax(self.decoding.syntax)

    def wants(self, k: int) -> int:  # noqa: ARG002
        """Return how many prototypes are read, cached or trained on, whatever `k` is."""
        read = self.decoding.prototypes * self.encoding.config.prototypes
        cached = self.decoding.ngram_cache_neighbours if self.cache else 0
        return max(read, cached, NEIGHBOURS if self.decoding.ttt_steps else 0)

    def batch(self, rows: Sequence[EncodedEdit]) -> EditBatch:
        """Pad edit examples to tensors on the network's device."""
        device = self.network.device
        batch = EditBatch.pad(rows, vocab_size=len(self.encoding.vocabulary))
        sources = [source.to(device) for source in batch.sources]
        return EditBatch(sources, batch.target.to(device), batch.width)

    @torch.inference_mode()
    def edit(
        self,
        inputs: Sequence[Input],
        prototypes: Sequence[Sequence[Prototype]],
        k: int = 1,
        *,
        generator: np.random.Generator | None = None,
    ) -> list[list[Candidate]]:
        """Return at most `k` candidates per input: the most probable or, with a generator, samples.

        With `decoding.ttt_steps`, inputs are decoded one by one, each with a copy of the network
        that was trained on its nearest prototypes.
        """
        neighbours = NEIGHBOURS if self.decoding.ttt_steps else 0
        editor_inputs = [
            self.editor_input(x, retrieved, neighbours=retrieved[:neighbours])
            for x, retrieved in zip(inputs, prototypes, strict=True)
        ]
        order = sorted(range(len(editor_inputs)), key=lambda i: _length(editor_inputs[i]))
        answers: list[list[Candidate]] = [[] for _ in editor_inputs]
        sampling = _torch_generator(generator) if generator is not None else None
        size = 1 if self.decoding.ttt_steps else BATCH
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            editor = adapt(self, editor_inputs[rows[0]].edits[0].neighbours)
            batch = editor._search([editor_inputs[i] for i in rows], k, sampling)
            for i, candidates in zip(rows, batch, strict=True):
                answers[i] = candidates
        return answers

    @torch.inference_mode()
    def log_probs(
        self, x: Input, prototypes: Sequence[Prototype], outputs: Sequence[str]
    ) -> list[tuple[float, int]]:
        """Return the log-probability of each output, by teacher forcing, and its tokens' number."""
        tokenized = [self.encoding.tokenize_output(output) for output in outputs]
        read = prototypes[: self.encoding.config.prototypes]
        rows = [self.editor_input(x, read, tokens).edits[0] for tokens in tokenized]
        scored: list[tuple[float, int]] = []
        for start in range(0, len(rows), BATCH):
            batch = self.batch(rows[start : start + BATCH])
            mask = batch.target.mask[:, 1:]
            # clamped: a word that can be neither generated nor copied has probability 0
            log_probs = self.network.origins(batch).logsumexp(2).clamp(min=MIN_LOG_PROB)
            totals = (log_probs * mask).sum(1).tolist()
            scored += zip(totals, mask.sum(1).tolist(), strict=True)
        return scored

    def editor_input(
        self,
        x: Input,
        prototypes: Sequence[Prototype],
        output: Sequence[str] = (),
        *,
        reserved_oovs: int = 0,
        neighbours: Sequence[Prototype] = (),
    ) -> EditorInput:
        """Encode an input with its prototypes and, for teacher forcing, its `output` tokens.

        `reserved_oovs` reserves ids for OOVs of an output that will be typed; `neighbours` are the
        examples for test-time training.
        """
        encoding, decoding = self.encoding, self.decoding
        size = encoding.config.prototypes
        read = prototypes[: size * decoding.prototypes]
        groups = [read[i : i + size] for i in range(0, len(read), size or 1)] or [[]]
        cached = prototypes[: decoding.ngram_cache_neighbours] if self.cache else []
        edits = encoding.encode(
            encoding.tokenize_input(x),
            [[self._tokens(prototype) for prototype in group] for group in groups],
            output,
            cached=[self._tokens(prototype).output for prototype in cached],
            neighbours=[
                [self._tokens(prototype) for prototype in group]
                for group in edit_examples(neighbours, size)
            ],
        )
        oovs = [*edits[0].unknown, *[""] * reserved_oovs]
        edits = [replace(edit, unknown=oovs) for edit in edits]
        return EditorInput(groups, cached, edits)

    def _tokens(self, prototype: Prototype) -> Tokens:
        """Tokenize a prototype, with a cache: the same examples are retrieved again and again."""
        identity = prototype.example.identity
        if identity not in self._tokenized:
            if len(self._tokenized) >= _CACHE_SIZE:
                self._tokenized.clear()
            self._tokenized[identity] = self.encoding.tokenize(prototype.example)
        return self._tokenized[identity]

    def _search(
        self, editor_inputs: Sequence[EditorInput], k: int, generator: torch.Generator | None
    ) -> list[list[Candidate]]:
        size = k if generator else max(k, self.decoding.beam_size)
        results = self._hypotheses(editor_inputs, size, generator)
        failed = [i for i, hypotheses in enumerate(results) if not hypotheses]
        while failed and size < MAX_BEAM:  # the syntax pruned all hypotheses: widen the beam
            size = min(4 * size, MAX_BEAM)
            retried = self._hypotheses([editor_inputs[i] for i in failed], size, generator)
            for i, hypotheses in zip(failed, retried, strict=True):
                results[i] = hypotheses
            failed = [i for i in failed if not results[i]]
        best = [
            (editor_input, hypotheses[:k])
            for editor_input, hypotheses in zip(editor_inputs, results, strict=True)
        ]
        return explain(self, best)

    def _hypotheses(
        self, editor_inputs: Sequence[EditorInput], size: int, generator: torch.Generator | None
    ) -> list[list[Hypothesis]]:
        next_tokens, state = self.start_decoding(editor_inputs)
        search = SearchConfig(size, self.decoding.max_length, self.decoding.length_penalty)
        return beam_search(
            next_tokens,
            state,
            search,
            bos=torch.full((len(editor_inputs),), BOS_ID, device=state.weights.device),
            eos_ids=[EOS_ID],
            suppressed=SUPPRESSED,
            generator=generator,
            constraint=self._constraint(editor_inputs),
        )

    def _constraint(self, editor_inputs: Sequence[EditorInput]) -> Constraint | None:
        """Return the constraint that applies the syntax to the text of the tokens, if any."""
        syntax = self.syntax
        if isinstance(syntax, AnySyntax):
            return None

        def constraint(row: int, tokens: Sequence[int]) -> bool:
            has_ended = tokens[-1] == EOS_ID
            ids = tokens[:-1] if has_ended else tokens
            text = detokenize(self.encoding.words(ids, editor_inputs[row].oovs))
            return syntax.accepts(text) if has_ended else syntax.begins(text)

        return constraint

    def start_decoding(self, editor_inputs: Sequence[EditorInput]) -> tuple[Mixture, MixtureState]:
        """Encode the inputs; return their next-token model and its state before the first token.

        Inputs with fewer groups of prototypes are padded with copies of their first, of weight 0.
        """
        count = max(len(editor_input.edits) for editor_input in editor_inputs)
        rows, weights = [], []
        for editor_input in editor_inputs:
            missing = count - len(editor_input.edits)
            rows += editor_input.edits + editor_input.edits[:1] * missing
            weights.append(editor_input.log_weights + [-math.inf] * missing)
        next_tokens = Mixture(self.network, self.cache or NoCache())
        state = self.network.encode(self.batch(rows), generator=None)
        device = self.network.device
        positions = CachePositions.pad([editor_input.edits[0] for editor_input in editor_inputs])
        log_weights = torch.tensor(weights, device=device)
        return next_tokens, next_tokens.start(state, log_weights, positions.to(device))

    @property
    def completes(self) -> bool:
        """True: the network has a distribution over the next token."""
        return True

    @torch.inference_mode()
    def start_session(self, x: Input, prototypes: Sequence[Prototype]) -> NeuralSession:
        """Encode an input and its prototypes once, for the completion of many prefixes."""
        editor_input = self.editor_input(x, prototypes, reserved_oovs=RESERVED_OOVS)
        next_tokens, state = self.start_decoding([editor_input])
        return NeuralSession(
            next_tokens, state, Words(self.encoding, editor_input.oovs), editor_input
        )

    def save(self, folder: Path) -> None:
        """Write vocabulary, settings and weights to `folder`."""
        self.encoding.save(folder)
        save_file(self.network.state_dict(), folder / "weights.safetensors")
        described = {
            "network": asdict(self.network.config),
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
        """Load the editor that `save` wrote; raise ModelError if settings and weights disagree."""
        path, weights = artifact.path("editor.json"), artifact.path("weights.safetensors")
        described = read_json(path)
        encoding = EditEncoder.load(artifact.path("vocabulary.txt"), artifact.path("encoding.json"))
        tables = {name: entry(path, described, name, dict) for name in ("network", "decoding")}
        config = settings.build(EditNetworkConfig, tables["network"], where=str(path))
        decoding = settings.build(DecodingConfig, tables["decoding"], where=str(path))
        check_decoding(path, decoding)
        check_network(path, config, source_ids=encoding.source_ids, weights=weights)
        network = load_network(_sizes(encoding), config, path=weights)
        editor = cls(encoding, network, decoding)
        if "cache.safetensors" in artifact.files:
            editor = editor.with_cache(load_cache(artifact.path("cache.safetensors")))
        if "confidence.json" not in artifact.files:
            return editor
        return editor.with_confidence(Confidence.load(artifact.path("confidence.json")))


def _sizes(encoding: EditEncoder) -> EditSizes:
    """Return the sizes of the network for an encoder's vocabulary and sources."""
    return EditSizes(
        vocab_size=len(encoding.vocabulary),
        output_vocab_size=encoding.output_vocab_size,
        fields=len(encoding.fields),
        copyable=tuple(encoding.copyable),
    )


def _length(editor_input: EditorInput) -> int:
    return sum(map(len, editor_input.edits[0].sources))


def _torch_generator(generator: np.random.Generator) -> torch.Generator:
    """Return a generator for torch, seeded by the next number of NumPy's."""
    return torch.Generator().manual_seed(int(generator.integers(1 << 63)))
