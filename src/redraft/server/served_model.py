"""A served model: takes requests, returns response schemas, and lets its examples change.

Thread-safe. One request runs at a time, since a second would only slow both. A change builds a
new model while the current one keeps serving, then replaces it. Knows no protocol.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from redraft.completion.extra_context import Excerpt, ExtraContext, merged
from redraft.completion.lm_completion import InstantCompleter, LmGeneration
from redraft.completion.project import Project, index_project
from redraft.errors import PairsError, StoreError
from redraft.model import RetrieveAndEdit
from redraft.persistence import locked, refreshed
from redraft.predictor import (
    PredictOptions,
    Predictor,
    confidence_threshold,
    connect_lm,
    lm_name,
)
from redraft.retrieval.base import Retriever
from redraft.server import responses, schema, serialize
from redraft.server.model_state import ModelState
from redraft.storage.manifest import manifest_bytes
from redraft.types import Completion, Example, Input, Prototype

if TYPE_CHECKING:
    from redraft.lm.client import LmClient

LOCK_TIMEOUT = 10.0
"""Seconds that a change waits for another writer of the folder before it fails."""

Suggestions = tuple[list[responses.CompletionSchema], LmGeneration | None]

_INSTANT = InstantCompleter()

_LOG = logging.getLogger(__name__)


class ServedModel:
    """A named model; if `folder` is given, changes are saved there."""

    def __init__(self, name: str, model: RetrieveAndEdit, folder: Path | None = None) -> None:
        self.name = name
        self.folder = folder
        self.completer = InstantCompleter()
        self._extra = ExtraContext()
        self._lm: LmClient | None = None
        self._state = ModelState.of(model)
        self._manifest = b""  # of the loaded files; empty forces a reload before a change
        self._running = threading.Lock()
        self._changing = threading.Lock()

    @classmethod
    def open(
        cls,
        name: str,
        folder: Path,
        *,
        store: str | None = None,
        persist: bool = True,
        lm: "LmClient | None" = None,
        completer: InstantCompleter | None = None,
    ) -> "ServedModel":
        """Load the model in `folder`; if `persist`, changes are saved there.

        A model that was fitted with a language model asks it through `lm`; one of functions
        completes with `completer`.
        """
        manifest = manifest_bytes(folder)  # before loading: a later manifest is another version
        model = RetrieveAndEdit.load(folder, store=store)
        served = cls(name, _connected(model, lm), folder if persist else None)
        if completer is not None and served._state.completes_python:
            served.completer = completer
        elif lm is not None and lm_name(model) is None:
            _LOG.warning("%s: was fitted without a language model; --lm is not used", name)
        served._lm = lm
        served._manifest = manifest
        served._state.engine.prepare()
        return served

    @property
    def model(self) -> RetrieveAndEdit:
        """Return the current model."""
        return self._state.model

    def info(self) -> responses.ModelInfo:
        """Describe the model."""
        state = self._state
        return responses.ModelInfo(
            name=self.name,
            retriever=state.model.retriever.name,
            editor=state.model.editor.name,
            fields=state.fields,
            meta=state.meta,
            examples=len(state.model.retriever.examples),
            completes_python=state.completes_python,
            samples=[dict(x) for x in state.samples],
        )

    def check_inputs(self, inputs: Sequence[schema.InputValue]) -> None:
        """Raise `FieldError` if the fields of an input are not the model's."""
        self._state.inputs(inputs)

    def predict(self, request: schema.PredictRequest) -> list[list[responses.CandidateSchema]]:
        """Return the candidates for each input, best first."""
        with self._running:
            state = self._state
            inputs = state.inputs(request.inputs)
            options = PredictOptions(request.k, where=request.where or {})
            predictor = Predictor(state.model, options)
            if request.prototype is not None:
                prototypes = [[_prototype(request.prototype, x, state)] for x in inputs]
                predictions = predictor.edit(inputs, prototypes)
            else:
                predictions = predictor.predict(inputs)
        return [list(map(serialize.candidate, prediction.ranked)) for prediction in predictions]

    def threshold(self, request: schema.PredictRequest) -> float | None:
        """Return the confidence below which the request abstains, or None if it never does.

        Raises `OptionError` if the model has no confidence, or never reached the precision.
        """
        options = PredictOptions(min_confidence=request.min_confidence, precision=request.precision)
        return confidence_threshold(self._state.model.editor, options)

    def retrieve(self, request: schema.RetrieveRequest) -> list[list[responses.PrototypeSchema]]:
        """Return the prototypes for each input, nearest first."""
        with self._running:
            state = self._state
            inputs = state.inputs(request.inputs)
            results = state.model.retriever.retrieve(inputs, request.k, where=request.where)
        return [list(map(serialize.prototype, prototypes)) for prototypes in results]

    def complete(self, request: schema.CompleteRequest) -> list[responses.CompletionSchema]:
        """Return the completions, best first, without asking a language model."""
        return self._suggest(request, _INSTANT)[0]

    def suggest(
        self, request: schema.CompleteRequest, generation: LmGeneration | None = None
    ) -> Suggestions:
        """Return the completions, and the generation of a language model that may add to them.

        After waiting for a `generation` it is given again: a newer request may have another.
        """
        return self._suggest(request, self.completer, generation)

    def _suggest(
        self,
        request: schema.CompleteRequest,
        completer: InstantCompleter,
        generation: LmGeneration | None = None,
    ) -> Suggestions:
        completions: Sequence[Completion]
        with self._running:
            state = self._state
            if request.text is None or request.offset is None:
                x = state.ordered(request.x or "", "x")
                completions = state.engine.session(x).complete(request.prefix, request.k)
                generation = None
            elif state.completes_python:
                cursor = (request.text, request.offset, request.k)
                suggested = completer.complete(
                    state.engine, *cursor, file=request.file, generation=generation
                )
                completions, generation = suggested.completions, suggested.generation
                excerpts = [Excerpt(extra.text, extra.filename) for extra in request.extra]
                if excerpts:
                    others = self._extra.engine(excerpts).complete(*cursor, file=request.file)
                    completions = merged([completions, others], request.k)
            else:
                raise schema.FieldError(
                    f"{self.name}: cannot complete a Python buffer, since its input has the "
                    f"fields {', '.join(state.fields)}; give x and prefix",
                    field="text",
                )
        return [serialize.completion(completion) for completion in completions], generation

    def example(self, identity: str) -> responses.ExampleSchema:
        """Return the example with this id."""
        state = self._state
        return serialize.example(state.model.retriever.examples[state.rows(identity)[0]])

    def map(self) -> responses.MapResponse:
        """Return the map of the examples; it is empty if they do not vary in two dimensions."""
        state = self._state
        return serialize.example_map(self.name, state.space, len(state.model.retriever.examples))

    def add(self, examples: Sequence[Example]) -> int:
        """Add examples to the index; returns their number."""

        def added(state: ModelState) -> tuple[Retriever, int]:
            checked = [
                replace(example, x=state.ordered(example.x, f"examples.{i}.x"))
                for i, example in enumerate(examples)
            ]
            return state.model.retriever.add(checked), len(checked)

        return self._change(added)

    def remove(self, identities: Sequence[str], where: schema.Where | None = None) -> int:
        """Remove the examples with these ids or meta values; returns their number."""

        def removed(state: ModelState) -> tuple[Retriever, int]:
            retriever = state.model.retriever
            rows = {row for identity in identities for row in state.rows(identity)}
            rows |= set(retriever.matching(where)) if where else set()
            if len(rows) == len(retriever.examples):
                raise PairsError("that would remove every example; at least one must stay")
            return (retriever.remove(sorted(rows)) if rows else retriever), len(rows)

        return self._change(removed)

    def index(self, project: Project) -> int:
        """Replace the examples by the functions of a project.

        Returns how many examples were added or removed.
        """

        def indexed(state: ModelState) -> tuple[Retriever, int]:
            model, change = index_project(state.model, project)
            return model.retriever, len(change.rows) + len(change.examples)

        return self._change(indexed, prepare=True)

    def refresh(self) -> bool:
        """Adopt changes that other programs made to the folder or the store; True if any."""
        with self._changing:
            before = self._state.model
            self._reload_if_replaced()
            model = refreshed(self._state.model)
            if model is not self._state.model:
                self._state = ModelState.of(model)
            return self._state.model is not before

    @property
    def has_store(self) -> bool:
        """True if the examples are in a database."""
        return self._state.examples.store_name is not None

    def wait(self, seconds: float) -> None:
        """Wait up to `seconds` for another program to change the store."""
        self._state.examples.wait(seconds)

    def _change(
        self, change: Callable[[ModelState], tuple[Retriever, int]], *, prepare: bool = False
    ) -> int:
        """Adopt the retriever that `change` returns, on disk first; returns its count of changes.

        If `prepare`, its functions are indexed for completion before it is adopted.

        A count of 0 changes nothing. The folder stays locked during reload, change and save, so
        that no change of another program is lost.
        """
        with self._changing, self._locked_folder():
            self._reload_if_replaced()
            retriever, count = change(self._state)
            if not count:
                return 0
            model = RetrieveAndEdit(retriever, self._state.model.editor)
            if self.folder is not None:
                model.save(self.folder)
                self._manifest = manifest_bytes(self.folder)
                try:
                    model = refreshed(model)
                except StoreError as error:  # it is saved; the next refresh will load it
                    _LOG.warning("%s", error)
                    return count
            state = ModelState.of(model, self._state)
            if prepare:
                state.engine.prepare()
            self._state = state
            return count

    def _locked_folder(self) -> AbstractContextManager[None]:
        return nullcontext() if self.folder is None else locked(self.folder, timeout=LOCK_TIMEOUT)

    @property
    def is_outdated(self) -> bool:
        """True if another program has replaced the files of the folder."""
        if self.folder is None or self.has_store:
            return False
        return manifest_bytes(self.folder) not in (b"", self._manifest)

    def _reload_if_replaced(self) -> None:
        """Reload the model if another program has replaced its files."""
        if self.folder is not None and self.is_outdated:
            manifest = manifest_bytes(self.folder)
            self._state = ModelState.of(_connected(RetrieveAndEdit.load(self.folder), self._lm))
            self._manifest = manifest


def _connected(model: RetrieveAndEdit, lm: "LmClient | None") -> RetrieveAndEdit:
    """Return a model that asks its language model, if it has one and there is a client."""
    return model if lm is None or lm_name(model) is None else connect_lm(model, lm)


def _prototype(identity: str, x: Input, state: ModelState) -> Prototype:
    row = state.rows(identity)[0]
    retriever = state.model.retriever
    allowed = np.zeros(len(retriever.examples), np.bool_)
    allowed[row] = True
    distances = retriever.search([x], 1, allowed=allowed).distances
    distance = float(distances[0, 0]) if distances.size else 1.0
    return Prototype(retriever.examples[row], distance)
