"""The contract of every editor, and the one that edits nothing."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from redraft.artifact import Artifact
from redraft.data.example import Input
from redraft.editing.candidate import Candidate
from redraft.retrieval.prototype import Prototype


class Editor(ABC):
    """Turns the prototypes of an input into outputs for it."""

    name: ClassVar[str]

    @abstractmethod
    def edit(
        self, inputs: Sequence[Input], prototypes: Sequence[Sequence[Prototype]]
    ) -> list[list[Candidate]]:
        """The candidates for each input, best first, no two with the same output."""

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

    def edit(
        self,
        inputs: Sequence[Input],  # noqa: ARG002
        prototypes: Sequence[Sequence[Prototype]],
    ) -> list[list[Candidate]]:
        """The prototypes' outputs, in their order."""
        return [
            [Candidate(found.example.y, -found.distance, found) for found in ranked]
            for ranked in prototypes
        ]

    def save(self, folder: Path) -> None:
        """Nothing to write."""

    @classmethod
    def load(cls, artifact: Artifact) -> "VerbatimEditor":  # noqa: ARG003
        """The same editor again."""
        return cls()
