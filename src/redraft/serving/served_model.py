"""A model that is served: it answers on the wire's terms, and its examples can change meanwhile.

Calls may come from any thread. One runs at a time: a second would only slow both. A change is
prepared beside the model that answers, and takes its place when it is whole. Knows no protocol.
"""

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from redraft.artifact import MANIFEST
from redraft.autocomplete.engine import CompletionEngine
from redraft.autocomplete.project import Project, index_project
from redraft.data.example import Example, Input, as_input
from redraft.data.filed import FiledExamples
from redraft.data.python_functions import FIELDS
from redraft.errors import NoAnswerError, PairsError, StoreError
from redraft.evaluation.space import Space, space_of
from redraft.experiment import refreshed
from redraft.retrieval.prototype import Prototype
from redraft.retrieval.stored import StoredExamples
from redraft.retrieve_and_edit import RetrieveAndEdit
from redraft.serving import schema, wire

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class _State:
    """What answers at a moment."""

    model: RetrieveAndEdit
    engine: CompletionEngine
    meta: list[str]

    @classmethod
    def of(cls, model: RetrieveAndEdit) -> "_State":
        meta = sorted({key for each in model.retriever.examples for key in each.meta})
        return cls(model, CompletionEngine(model), meta)

    @property
    def fields(self) -> list[str]:
        examples = self.model.retriever.examples
        return list(examples[0].x) if examples else []

    @cached_property
    def space(self) -> Space | None:
        """The map of the examples."""
        return space_of(self.model.retriever, [])

    def rows(self, identity: str) -> list[int]:
        """The rows of an identity, which duplicates share."""
        examples = self.model.retriever.examples
        if isinstance(examples, FiledExamples):
            return examples.with_identity(identity)
        return self._rows.get(identity, [])

    @cached_property
    def _rows(self) -> dict[str, list[int]]:
        rows: dict[str, list[int]] = {}
        for row, each in enumerate(self.model.retriever.examples):
            rows.setdefault(each.identity, []).append(row)
        return rows


class ServedModel:
    """A named model; with a folder, what is added to it is written there too."""

    def __init__(self, name: str, model: RetrieveAndEdit, folder: Path | None = None) -> None:
        self.name = name
        self.folder = folder
        self._state = _State.of(model)
        self._written = _manifest(folder) if folder else b""
        self._running = threading.Lock()
        self._changing = threading.Lock()

    @property
    def model(self) -> RetrieveAndEdit:
        """The model as it is now."""
        return self._state.model

    def info(self) -> schema.ModelInfo:
        """What it is made of."""
        state = self._state
        return schema.ModelInfo(
            name=self.name,
            retriever=state.model.retriever.name,
            editor=state.model.editor.name,
            fields=state.fields,
            meta=state.meta,
            examples=len(state.model.retriever.examples),
            completes_python=state.fields == list(FIELDS),
        )

    def predict(self, request: schema.PredictRequest) -> list[list[schema.Answer]]:
        """The answers to each input, best first."""
        with self._running:
            state = self._state
            inputs = [self._input(x, state, at) for at, x in enumerate(request.inputs)]
            if request.prototype is not None:
                found = [[self._prototype(request.prototype, x, state)] for x in inputs]
                ranked = state.model.editor.edit(inputs, found, request.k)
            else:
                ranked = state.model.predict(inputs, request.k, where=request.where)
        return [[wire.answer(each) for each in candidates] for candidates in ranked]

    def retrieve(self, request: schema.RetrieveRequest) -> list[list[schema.ShownPrototype]]:
        """The prototypes of each input, nearest first."""
        with self._running:
            state = self._state
            inputs = [self._input(x, state, at) for at, x in enumerate(request.inputs)]
            found = state.model.retriever.retrieve(inputs, request.k, where=request.where)
        return [[wire.prototype(each) for each in ranked] for ranked in found]

    def complete(self, request: schema.CompleteRequest) -> list[schema.ShownCompletion]:
        """The ways to go on, best first."""
        with self._running:
            state = self._state
            if request.text is not None and request.offset is not None:
                if state.fields != list(FIELDS):
                    raise wire.FieldError(
                        f"{self.name}: completes no Python buffer, since its input has the fields "
                        f"{', '.join(state.fields)}; give x and prefix",
                        field="text",
                    )
                found = state.engine.complete(request.text, request.offset, request.k)
                return [wire.completion(each) for each in found]
            x = self._input(request.x or "", state, None)
            completions = state.engine.draft(x).complete(request.prefix, request.k)
        return [wire.completion(each) for each in completions]

    def example(self, identity: str) -> schema.ShownExample:
        """One of its examples."""
        state = self._state
        return wire.example(state.model.retriever.examples[self._rows(identity, state)[0]])

    def map(self) -> schema.MapResponse:
        """Its examples in two dimensions; no points where the retriever has no space."""
        state = self._state
        return wire.example_map(self.name, state.space, len(state.model.retriever.examples))

    def add(self, examples: Sequence[Example]) -> int:
        """Let these examples be retrieved; says how many came."""
        with self._changing:
            state = self._state
            added = [
                replace(each, x=self._fields(each.x, state, f"examples.{at}.x"))
                for at, each in enumerate(examples)
            ]
            retriever = state.model.retriever.add(added)
            self._exchange(RetrieveAndEdit(retriever, state.model.editor))
        return len(examples)

    def remove(self, identities: Sequence[str], where: schema.Where | None = None) -> int:
        """Forget the examples with these identities, and those whose meta has these values."""
        with self._changing:
            state = self._state
            retriever = state.model.retriever
            rows = {row for each in identities for row in self._rows(each, state)}
            rows |= set(retriever.matching(where)) if where else set()
            if len(rows) == len(retriever.examples):
                raise PairsError("that would remove every example; at least one must stay")
            if rows:
                model = RetrieveAndEdit(retriever.remove(sorted(rows)), state.model.editor)
                self._exchange(model)
        return len(rows)

    def index(self, project: Project) -> int:
        """Make the functions of a project its examples; says how many came or went."""
        with self._changing:
            model, change = index_project(self._state.model, project)
            if change.rows or change.examples:
                self._exchange(model)
        return len(change.rows) + len(change.examples)

    def refresh(self) -> bool:
        """Take over what others have changed in its store; says whether there was anything."""
        with self._changing:
            model = refreshed(self._state.model)
            if model is self._state.model:
                return False
            self._state = _State.of(model)
            return True

    def wait(self, seconds: float) -> None:
        """Wait until others change its store, but not for longer."""
        examples = self._state.model.retriever.examples
        if isinstance(examples, StoredExamples):
            examples.store.wait(seconds)

    def _exchange(self, model: RetrieveAndEdit) -> None:
        if self.folder is not None:
            if _manifest(self.folder) != self._written:
                raise PairsError(
                    f"{self.name}: its folder was changed by another program since it was loaded; "
                    "serve it again, so that neither change is lost"
                )
            model.save(self.folder)  # whole or not at all, before anyone is answered from it
            self._written = _manifest(self.folder)
            try:
                model = refreshed(model)
            except StoreError as error:  # it is written: it will be there with the next refresh
                _LOG.warning("%s", error)
                return
        self._state = _State.of(model)

    def _input(self, x: str | Input, state: _State, at: int | None) -> Input:
        return self._fields(as_input(x), state, "x" if at is None else f"inputs.{at}")

    def _fields(self, x: Input, state: _State, where: str) -> Input:
        """The input with the model's fields in the model's order, which JSON need not keep."""
        fields = state.fields or list(x)
        if set(x) != set(fields):
            expected = ", ".join(fields)
            raise wire.FieldError(f"expected an input with the fields {expected}", field=where)
        return {name: x[name] for name in fields}

    def _rows(self, identity: str, state: _State) -> list[int]:
        rows = state.rows(identity)
        if not rows:
            raise NoAnswerError("no example has this id; it may have been removed")
        return rows

    def _prototype(self, identity: str, x: Input, state: _State) -> Prototype:
        row = self._rows(identity, state)[0]
        retriever = state.model.retriever
        allowed = np.zeros(len(retriever.examples), np.bool_)
        allowed[row] = True
        distances = retriever.search([x], 1, allowed=allowed).distances
        distance = float(distances[0, 0]) if distances.size else 1.0
        return Prototype(retriever.examples[row], distance)


def _manifest(folder: Path) -> bytes:
    """What names every file of a saved model; another one is another state."""
    path = folder / MANIFEST
    return path.read_bytes() if path.exists() else b""
