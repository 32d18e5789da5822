"""An editor that asks a language model: the prototypes are the examples in its prompt.

Alone it answers with whatever the language model says. In the default editor it is one proposer
among others, and a question that it cannot answer is answered without it.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from redraft.editing.alignment import aligned
from redraft.editing.base import Editor
from redraft.editing.proposals import merge_key
from redraft.editing.session import CompletionSession, VerbatimSession
from redraft.errors import ConfigError, LmError
from redraft.lm.loops import LoopCheck
from redraft.lm.selection import covering
from redraft.lm.settings import LmSettings
from redraft.storage.artifact import Artifact
from redraft.text.spans import WordSpans
from redraft.types import Candidate, Input, Prototype, input_text, normal_input

if TYPE_CHECKING:
    from redraft.lm.client import LmClient

SETTINGS = "lm.json"

POOL = 30
"""Prototypes that the examples of a prompt are selected from."""

UNKNOWN_PROBABILITY = 0.5
"""Of an output whose probability the endpoint does not give."""


class LmEditor(Editor):
    """Asks a language model with the examples that cover the input, or with the nearest.

    Without a `client` it knows its settings, but has no address to ask.
    """

    name = "lm"
    distinct_outputs = False

    def __init__(
        self,
        settings: LmSettings | None = None,
        client: "LmClient | None" = None,
        *,
        selection: Literal["cover", "nearest"] = "cover",
    ) -> None:
        self.settings = settings or LmSettings()
        self.client = client
        self.selection: Literal["cover", "nearest"] = selection

    @property
    def lm_settings(self) -> LmSettings:
        """How the language model is asked."""
        return self.settings

    def with_client(self, client: "LmClient | None") -> "LmEditor":
        """Return an editor that asks through `client`; None asks nowhere."""
        return LmEditor(self.settings, client, selection=self.selection)

    def wants(self, k: int) -> int:  # noqa: ARG002
        """Return the number of prototypes to select from."""
        return POOL if self.settings.shots else 0

    def edit(
        self,
        inputs: Sequence[Input],
        prototypes: Sequence[Sequence[Prototype]],
        k: int = 1,  # noqa: ARG002
        *,
        generator: np.random.Generator | None = None,  # noqa: ARG002
    ) -> list[list[Candidate]]:
        """Return the language model's answer to each input; raise an LmError on a fault."""
        pairs = zip(inputs, prototypes, strict=True)
        return [self._answer(x, retrieved) for x, retrieved in pairs]

    def propose(self, x: Input, prototypes: Sequence[Prototype]) -> list[Candidate]:
        """Return the answer to one input; nothing, and a warning, if there is a fault."""
        if self.client is None:
            return []
        try:
            return self._answer(x, prototypes)
        except LmError as error:
            self.client.warn(error)
            return []

    def shown(self, x: Input, prototypes: Sequence[Prototype]) -> list[Prototype]:
        """Return the prototypes for the prompt, nearest first, with different inputs."""
        different = list(
            {
                normal_input(prototype.example.x): prototype for prototype in reversed(prototypes)
            }.values()
        )[::-1]
        if self.selection == "nearest":
            return different[: self.settings.shots]
        inputs = [prototype.example.x for prototype in different]
        return covering(x, different, inputs, self.settings.shots)

    def _answer(self, x: Input, prototypes: Sequence[Prototype]) -> list[Candidate]:
        if self.client is None:
            raise ConfigError(
                "this model asks a language model; name its address with --lm http://…, "
                "or in Python with connect_lm"
            )
        settings, shown = self.settings, self.shown(x, prototypes)
        examples = [prototype.example for prototype in shown]
        loop = LoopCheck(example.y for example in examples)
        prompt = settings.prompt_template.prompt(
            x,
            examples,
            tokens=settings.context - settings.max_tokens,
            multiline=settings.multiline,
        )
        generation = self.client.generate(
            prompt,
            model=settings.model,
            max_tokens=settings.limit(examples),
            is_chat=settings.is_chat,
            enough=loop,
        )
        if not generation.text or not generation.is_complete or loop.found:
            return []
        words = WordSpans.of(input_text(x)).folded
        candidate = aligned(words, generation.text, shown)
        log_prob = generation.log_prob
        return [replace(candidate, score=log_prob or 0.0, log_prob=log_prob)]

    def start_session(self, x: Input, prototypes: Sequence[Prototype]) -> CompletionSession:  # noqa: ARG002
        """Return a session that completes from the prototypes."""
        return VerbatimSession(prototypes)

    def save(self, folder: Path) -> None:
        """Write the settings, without an address."""
        self.settings.save(folder / SETTINGS)

    @classmethod
    def load(cls, artifact: Artifact) -> "LmEditor":
        """Load an editor without an address."""
        return cls(LmSettings.load(artifact.path(SETTINGS)))


def likelihoods(outputs: Sequence[str], generated: Sequence[Candidate]) -> list[float]:
    """Return log-probabilities of `outputs`: of the generated one as given, of the others alike.

    Endpoints score their own answer only; the others share the rest of the probability.
    """
    if not generated:
        return [0.0] * len(outputs)
    log_prob = generated[0].log_prob
    own = UNKNOWN_PROBABILITY if log_prob is None else math.exp(min(log_prob, 0.0))
    own = min(max(own, 1e-6), 1 - 1e-6)
    rest = (1 - own) / max(1, len(outputs) - 1)
    answer = merge_key(generated[0].output)
    return [math.log(own if merge_key(output) == answer else rest) for output in outputs]
