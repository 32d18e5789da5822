"""Retrieve and edit (Hashimoto et al. 2018) on one screen.

For an input x, a retriever finds a training example (x', y') whose output should be easy to edit
into the answer, and an editor generates y from x and (x', y').
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from redraft.config.toml import DEFAULT_EDITOR, DEFAULT_RETRIEVER
from redraft.data.in_memory import Source, examples_from
from redraft.data.inputs import as_inputs, fields_of, in_fields, refuse_empty
from redraft.data.tables import Columns
from redraft.editing.base import Editor
from redraft.editing.session import CompletionSession
from redraft.errors import NoAnswerError
from redraft.retrieval.base import Retriever
from redraft.storage.examples import is_on_disk
from redraft.types import Candidate, Completion, Example, Input

if TYPE_CHECKING:
    from redraft.training.fit import FitOptions


class RetrieveAndEdit:
    """A retriever and an editor, combined as in equation 1 of the paper.

    p(y | x) = Σ p_edit(y | x, (x', y')) · p_ret((x', y') | x), summed over training examples.
    """

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
        """Predict outputs by editing the nearest prototypes.

        `exclude` gives one example per input that must not be its prototype, nor any with the same
        output (for inputs from the training set); `where` restricts retrieval to examples whose
        meta has these values.

        Returns at most `k` candidates per input, best first.
        """
        fields = as_inputs(inputs, self.retriever.examples)
        refuse_empty(fields)
        prototypes = self.retriever.retrieve(
            fields,
            self.editor.wants(k),
            exclude=exclude,
            where=where,
            distinct=self.editor.distinct_outputs,
        )
        return self.editor.edit(fields, prototypes, k)

    def sample(
        self, inputs: Sequence[str | Input], k: int = 1, *, seed: int
    ) -> list[list[Candidate]]:
        """Sample outputs: prototypes from p_ret, then edits from p_edit.

        Returns at most `k` candidates per input; equal seeds give equal samples.
        """
        fields = as_inputs(inputs, self.retriever.examples)
        refuse_empty(fields)
        rng = np.random.default_rng(seed)
        prototypes = self.retriever.retrieve(fields, self.editor.wants(k), rng=rng)
        return self.editor.edit(fields, prototypes, k, generator=rng)

    def predict_one(self, x: str | Input, *, where: Mapping[str, Any] | None = None) -> Candidate:
        """Return the best candidate for `x`; raise `NoAnswerError` if there is none."""
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
        """Complete partial outputs: predict the text that follows each prefix.

        Returns at most `k` completions per input, most probable first.
        """
        fields = as_inputs(inputs, self.retriever.examples)
        prototypes = self.retriever.retrieve(fields, self.editor.wants(k), where=where)
        return self.editor.complete(fields, prefixes, prototypes, k)

    def start_session(self, x: str | Input, k: int = 5) -> CompletionSession:
        """Retrieve and encode the prototypes of `x` once, to complete many prefixes of its output.

        `k` is the largest number of completions that will be requested.
        """
        fields = as_inputs([x], self.retriever.examples)[0]
        return self.editor.start_session(
            fields, self.retriever.retrieve([fields], self.editor.wants(k))[0]
        )

    def add(self, examples: Source, *, columns: Columns | None = None) -> "RetrieveAndEdit":
        """Return a model with `examples` appended: they count at once, and nothing is retrained.

        `examples` and `columns` are those of `fit`; their inputs must have the fields of the model.
        """
        known = self.retriever.examples
        added = examples_from(examples, columns or Columns())
        if known and not is_on_disk(added):
            fields = fields_of(known)
            added = [replace(example, x=in_fields(example.x, fields)) for example in added]
        return RetrieveAndEdit(self.retriever.add(added), self.editor)

    # Imported inside the methods: these modules construct models and import this one.

    @classmethod
    def fit(
        cls,
        examples: Source,
        *,
        columns: Columns | None = None,
        retriever: str | type[Retriever] | Retriever = DEFAULT_RETRIEVER,
        editor: str | type[Editor] | Editor = DEFAULT_EDITOR,
        options: "FitOptions | None" = None,
    ) -> "RetrieveAndEdit":
        """Index the examples and train the components that learn.

        `examples` are `Example`s, tuples (x, y), rows with x and y, a pandas DataFrame or a Hugging
        Face dataset; `columns` names the input and output columns of the latter two. `retriever`
        and `editor` are names from the registry, classes or instances; an instance is used as it
        is, a retriever over these examples in place of its own. `options` sets hyperparameters,
        time budget, device and callbacks. Returns a model ready to predict.
        """
        from redraft.training.fit_model import fit_model

        known = examples_from(examples, columns or Columns())
        return fit_model(known, retriever=retriever, editor=editor, options=options)

    def save(self, folder: str | PathLike[str], *, store: str | None = None) -> None:
        """Save the model to `folder` atomically.

        With `store`, a PostgreSQL URL, the examples are saved there instead of in the folder. A
        model whose examples are already in the store of `folder` writes only the changes to it.
        """
        from redraft.persistence import save_model

        save_model(self, folder, store=store)

    @classmethod
    def load(cls, folder: str | PathLike[str], *, store: str | None = None) -> "RetrieveAndEdit":
        """Load the model in `folder`, with the examples of `store` if they were saved there.

        Safe for untrusted folders: every file is validated, nothing is unpickled or executed.
        """
        from redraft.persistence import load_model

        return load_model(folder, store=store)
