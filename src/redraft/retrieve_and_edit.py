"""The paper in one class: retrieve the example that is easiest to edit, then edit it."""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from redraft.config import DEFAULT_EDITOR, DEFAULT_RETRIEVER
from redraft.data.example import Example, Input, as_input
from redraft.data.filed import FiledExamples
from redraft.editing.candidate import Candidate
from redraft.editing.completion import Completion
from redraft.editing.draft import Draft
from redraft.editing.editor import Editor
from redraft.errors import NoAnswerError
from redraft.retrieval.retriever import Retriever

if TYPE_CHECKING:
    from redraft.fitting import FitOptions


class RetrieveAndEdit:
    """p(y | x) = Σ p_edit(y | x, (x', y')) · p_ret((x', y') | x), equation 1."""

    def __init__(self, retriever: Retriever, editor: Editor) -> None:
        self.retriever = retriever
        self.editor = editor

    def predict(
        self,
        inputs: Sequence[str | Input],
        k: int = 1,
        *,
        exclude: Sequence[Example] | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> list[list[Candidate]]:
        """At most k candidates for each input, best first; `exclude`, `where` as in retrieval."""
        fields = [as_input(x) for x in inputs]
        wanted = self.editor.wants(k)
        prototypes = self.retriever.retrieve(fields, wanted, exclude=exclude, where=where)
        return self.editor.edit(fields, prototypes, k)

    def sample(
        self, inputs: Sequence[str | Input], k: int = 1, *, seed: int
    ) -> list[list[Candidate]]:
        """k candidates drawn at random for each input: the prototypes by p_ret, then the edits."""
        import torch

        fields = [as_input(x) for x in inputs]
        chance = np.random.default_rng(seed)
        prototypes = self.retriever.retrieve(fields, self.editor.wants(k), chance=chance)
        generator = torch.Generator().manual_seed(seed)
        return self.editor.edit(fields, prototypes, k, generator=generator)

    def predict_one(self, x: str | Input, *, where: Mapping[str, Any] | None = None) -> Candidate:
        """The best candidate for one input."""
        candidates = self.predict([x], where=where)[0]
        if not candidates:
            raise NoAnswerError
        return candidates[0]

    def complete(
        self,
        inputs: Sequence[str | Input],
        prefixes: Sequence[str],
        k: int = 5,
        *,
        where: Mapping[str, Any] | None = None,
    ) -> list[list[Completion]]:
        """At most k ways to go on after the prefix of each output, best first."""
        fields = [as_input(x) for x in inputs]
        prototypes = self.retriever.retrieve(fields, self.editor.wants(k), where=where)
        return self.editor.complete(fields, prefixes, prototypes, k)

    def begin(self, x: str | Input, k: int = 5) -> Draft:
        """An output before anything of it is written, to be completed in up to k ways."""
        fields = as_input(x)
        return self.editor.begin(fields, self.retriever.retrieve([fields], self.editor.wants(k))[0])

    def complete_one(self, x: str | Input, prefix: str, k: int = 5) -> list[Completion]:
        """At most k ways to go on after the prefix of one output."""
        return self.begin(x, k).complete(prefix, k)

    # The doors to the composition root, which alone knows parts by their names.

    @classmethod
    def fit(
        cls,
        examples: Iterable[Example],
        *,
        retriever: str = DEFAULT_RETRIEVER,
        editor: str = DEFAULT_EDITOR,
        options: "FitOptions | None" = None,
    ) -> "RetrieveAndEdit":
        """A model of these examples, its parts chosen by name; those that learn are trained."""
        from redraft.experiment import fit_model

        held = examples if isinstance(examples, FiledExamples) else list(examples)
        return fit_model(held, retriever=retriever, editor=editor, options=options)

    def save(self, folder: str | PathLike[str], *, store: str | None = None) -> None:
        """Write the model to a folder, its examples to a store if named, whole or not at all."""
        from redraft.experiment import save_model

        save_model(self, folder, store=store)

    @classmethod
    def load(cls, folder: str | PathLike[str], *, store: str | None = None) -> "RetrieveAndEdit":
        """The model in a folder; runs none of its content and checks every file."""
        from redraft.experiment import load_model

        return load_model(folder, store=store)
