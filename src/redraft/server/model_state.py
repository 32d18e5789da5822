"""The state of a served model: the model, and what requests derive from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from redraft.completion.engine import CompletionEngine
from redraft.data.inputs import in_fields, refuse_empty
from redraft.errors import NoAnswerError, PairsError
from redraft.mining.python_functions import FIELDS
from redraft.model import RetrieveAndEdit
from redraft.report.embedding_map import EmbeddingMap, embedding_map
from redraft.server import schema
from redraft.server.samples import typical_functions, typical_inputs
from redraft.storage.examples import Examples
from redraft.types import Input, as_input


@dataclass(frozen=True)
class ModelState:
    """An immutable snapshot: the model, its completion engine, input fields and meta keys."""

    model: RetrieveAndEdit
    engine: CompletionEngine
    fields: list[str]
    meta: list[str]

    @classmethod
    def of(cls, model: RetrieveAndEdit, previous: "ModelState | None" = None) -> "ModelState":
        examples = model.retriever.examples
        fields = list(examples[0].x) if examples else []
        meta = sorted({key for example in examples for key in example.meta})
        engine = CompletionEngine(model, previous.engine if previous else None)
        return cls(model, engine, fields, meta)

    @property
    def completes_python(self) -> bool:
        """True if the examples are functions, or may become functions."""
        return self.fields in ([], list(FIELDS))

    @cached_property
    def space(self) -> EmbeddingMap | None:
        """Return the map of the examples."""
        return embedding_map(self.model.retriever, [])

    @cached_property
    def samples(self) -> list[Input]:
        """Return typical inputs."""
        typical = typical_functions if self.fields == list(FIELDS) else typical_inputs
        return typical(self.model.retriever.examples)

    @cached_property
    def examples(self) -> Examples:
        """Return the examples of the retriever, wherever they are stored."""
        return self.model.retriever.stored

    def inputs(self, inputs: Sequence[str | Input]) -> list[Input]:
        """Return the inputs of a request, ordered."""
        return [self.ordered(x, f"inputs.{i}") for i, x in enumerate(inputs)]

    def ordered(self, x: str | Input, path: str) -> Input:
        """Return `x` with its fields in the model's order, since JSON objects are unordered."""
        x = as_input(x)
        try:
            refuse_empty([x])
            return in_fields(x, self.fields or list(x))
        except PairsError as error:
            raise schema.FieldError(str(error), field=path) from error

    def rows(self, identity: str) -> list[int]:
        """Return the rows with this id; duplicates share one."""
        rows = self.examples.with_identity(identity)
        if not rows:
            raise NoAnswerError("no example has this id; it may have been removed")
        return rows
