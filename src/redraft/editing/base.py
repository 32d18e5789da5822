"""The interface of editors, and the verbatim editor."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

import numpy as np

from redraft.editing.confidence import Confidence
from redraft.editing.decoding import DecodingConfig
from redraft.editing.session import CompletionSession, VerbatimSession
from redraft.storage.artifact import Artifact
from redraft.types import Candidate, Completion, Input, Prototype

if TYPE_CHECKING:
    from redraft.lm.client import LmClient
    from redraft.lm.settings import LmSettings


class Editor(ABC):
    """Edits the prototypes of an input into outputs for it."""

    name: ClassVar[str]

    distinct_outputs: ClassVar[bool] = True
    """True if of several prototypes with one output only the nearest is of use."""

    @property
    def completes(self) -> bool:
        """True if completions come from a model of the editor rather than from prototypes."""
        return False

    @abstractmethod
    def wants(self, k: int) -> int:
        """Return the number of prototypes needed to predict `k` candidates."""

    @abstractmethod
    def edit(
        self,
        inputs: Sequence[Input],
        prototypes: Sequence[Sequence[Prototype]],
        k: int = 1,
        *,
        generator: np.random.Generator | None = None,
    ) -> list[list[Candidate]]:
        """Edit `prototypes`, one list per input; sample the edits if given a `generator`.

        Returns at most `k` candidates per input with distinct outputs, best first.
        """

    @abstractmethod
    def start_session(self, x: Input, prototypes: Sequence[Prototype]) -> CompletionSession:
        """Encode one input and its prototypes for repeated completion of its output."""

    def complete(
        self,
        inputs: Sequence[Input],
        prefixes: Sequence[str],
        prototypes: Sequence[Sequence[Prototype]],
        k: int = 5,
    ) -> list[list[Completion]]:
        """Return at most `k` completions of each prefix, most probable first."""
        return [
            self.start_session(x, retrieved).complete(prefix, k)
            for x, prefix, retrieved in zip(inputs, prefixes, prototypes, strict=True)
        ]

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the files that `load` reads into an existing, empty folder."""

    @classmethod
    @abstractmethod
    def load(cls, artifact: Artifact) -> "Editor":
        """Load the editor that `save` wrote."""


@runtime_checkable
class CalibratedEditor(Protocol):
    """An editor whose candidates may have a calibrated confidence."""

    @property
    def confidence(self) -> Confidence | None:
        """The calibration; None if no examples were held out for it."""


@runtime_checkable
class DecodingEditor(Protocol):
    """An editor that decodes outputs token by token, with settings."""

    @property
    def decoding(self) -> DecodingConfig:
        """The settings of decoding."""

    def with_decoding(self, decoding: DecodingConfig) -> Editor:
        """Return a copy with other settings."""


@runtime_checkable
class LmAskingEditor(Protocol):
    """An editor that can ask a language model, once it has the address of one."""

    @property
    def lm_settings(self) -> "LmSettings | None":
        """How the language model is asked; None if none was fitted."""

    def with_client(self, client: "LmClient | None") -> Editor:
        """Return a copy that asks through `client`; None asks nowhere."""


class VerbatimEditor(Editor):
    """Returns the prototypes' outputs unchanged; the score is the negative distance."""

    name = "verbatim"

    def wants(self, k: int) -> int:
        """Return `k`: one prototype per candidate."""
        return k

    def edit(
        self,
        inputs: Sequence[Input],  # noqa: ARG002
        prototypes: Sequence[Sequence[Prototype]],
        k: int = 1,
        *,
        generator: np.random.Generator | None = None,  # noqa: ARG002
    ) -> list[list[Candidate]]:
        """Return the outputs of the first `k` prototypes of each input."""
        return [
            [
                Candidate(prototype.example.y, -prototype.distance, prototype)
                for prototype in retrieved[:k]
            ]
            for retrieved in prototypes
        ]

    def start_session(self, x: Input, prototypes: Sequence[Prototype]) -> CompletionSession:  # noqa: ARG002
        """Return a session that completes from the aligned prototypes."""
        return VerbatimSession(prototypes)

    def save(self, folder: Path) -> None:
        """Write nothing: there is no state."""

    @classmethod
    def load(cls, artifact: Artifact) -> "VerbatimEditor":  # noqa: ARG003
        """Return a new editor: there is no state."""
        return cls()
