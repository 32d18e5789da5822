"""The contract of every editor, and the one that edits nothing."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from redraft.artifact import Artifact
from redraft.data.example import Input
from redraft.editing.candidate import Candidate
from redraft.editing.completion import Completion
from redraft.editing.draft import Draft, VerbatimDraft
from redraft.retrieval.prototype import Prototype

if TYPE_CHECKING:
    import torch


class Editor(ABC):
    """Turns the prototypes of an input into outputs for it."""

    name: ClassVar[str]

    @abstractmethod
    def wants(self, k: int) -> int:
        """How many prototypes k candidates are made from."""

    @abstractmethod
    def edit(
        self,
        inputs: Sequence[Input],
        prototypes: Sequence[Sequence[Prototype]],
        k: int = 1,
        *,
        generator: "torch.Generator | None" = None,
    ) -> list[list[Candidate]]:
        """At most k candidates for each input, best first, no two with the same output.

        With a generator they are drawn from what the editor thinks possible.
        """

    @abstractmethod
    def begin(self, x: Input, prototypes: Sequence[Prototype]) -> Draft:
        """The output for an input before anything of it is written."""

    def complete(
        self,
        inputs: Sequence[Input],
        prefixes: Sequence[str],
        prototypes: Sequence[Sequence[Prototype]],
        k: int = 5,
    ) -> list[list[Completion]]:
        """At most k ways to go on after the prefix of each output, best first."""
        return [
            self.begin(x, found).complete(prefix, k)
            for x, prefix, found in zip(inputs, prefixes, prototypes, strict=True)
        ]

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write what `load` needs into an existing, empty folder."""

    @classmethod
    @abstractmethod
    def load(cls, artifact: Artifact) -> "Editor":
        """The editor that was saved."""


class VerbatimEditor(Editor):
    """Returns the prototypes' outputs as they are; the score is minus the distance."""

    name = "verbatim"

    def wants(self, k: int) -> int:
        """One prototype for each candidate."""
        return k

    def edit(
        self,
        inputs: Sequence[Input],  # noqa: ARG002
        prototypes: Sequence[Sequence[Prototype]],
        k: int = 1,
        *,
        generator: "torch.Generator | None" = None,  # noqa: ARG002
    ) -> list[list[Candidate]]:
        """The prototypes' outputs, in their order."""
        return [
            [Candidate(found.example.y, -found.distance, found) for found in ranked[:k]]
            for ranked in prototypes
        ]

    def begin(self, x: Input, prototypes: Sequence[Prototype]) -> Draft:  # noqa: ARG002
        """A draft that goes on as its prototypes do."""
        return VerbatimDraft(prototypes)

    def save(self, folder: Path) -> None:
        """Nothing to write."""

    @classmethod
    def load(cls, artifact: Artifact) -> "VerbatimEditor":  # noqa: ARG003
        """The same editor again."""
        return cls()
