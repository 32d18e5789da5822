"""Schemas of the responses. Imports no model and no server."""

from typing import Any, Literal

from pydantic import Field

from redraft.server.schema import Message


class ExampleSchema(Message):
    """An example of a model."""

    id: str
    x: str | dict[str, str]
    y: str
    meta: dict[str, Any]


class PrototypeSchema(ExampleSchema):
    """A retrieved example with its distance from the input."""

    distance: float


class Token(Message):
    """A token of an output, with the white space before it and its origin."""

    text: str
    origin: Literal["prototype", "input", "mapped", "generated"]


class DiffSpan(Message):
    """A span of text that was kept from the prototype's output, removed from it or added to it."""

    change: Literal["kept", "removed", "added"]
    text: str


class CandidateSchema(Message):
    """An output with its scores, its prototype and its provenance."""

    output: str
    score: float
    log_prob: float | None
    confidence: float | None
    prototype: PrototypeSchema | None
    tokens: list[Token]
    diff: list[DiffSpan]
    invented: list[str] = Field(
        [], description="Values from nowhere: neither the input nor the examples explain them."
    )
    unfamiliar: bool = Field(False, description="True if nothing similar is in the index.")


class PredictResponse(Message):
    """The candidates for each input, best first, and whether the model abstains from them."""

    model: str
    results: list[list[CandidateSchema]]
    abstained: list[bool] | None = Field(
        None, description="For each input; null without min_confidence and precision."
    )
    threshold: float | None = Field(
        None, description="The confidence below which the model abstains."
    )


class RetrieveResponse(Message):
    """The prototypes for each input, nearest first."""

    model: str
    results: list[list[PrototypeSchema]]


class CompletionSchema(Message):
    """A text to insert, its first token with its probability, and the prototype."""

    text: str
    token: str
    probability: float | None = Field(description="Null if copied verbatim from the prototype.")
    prototype: PrototypeSchema | None
    generated: bool = Field(False, description="True if a language model wrote it.")


class CompleteResponse(Message):
    """The completions, best first."""

    model: str
    completions: list[CompletionSchema]
    pending: bool = Field(False, description="True while a language model is generating another.")


class ExamplesResponse(Message):
    """The number of examples that were added or removed, and of all examples."""

    model: str
    changed: int
    examples: int


class ModelInfo(Message):
    """A served model."""

    name: str
    retriever: str
    editor: str
    fields: list[str]
    meta: list[str]
    examples: int
    completes_python: bool = Field(description="True if the examples are Python functions.")
    samples: list[dict[str, str]] = Field(description="Typical inputs, to start from.")


class ModelCard(Message):
    """A model in the format of OpenAI's API."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "redraft"


class ModelsResponse(Message):
    """All served models; the first is the default."""

    models: list[ModelInfo]
    object: Literal["list"] = "list"
    data: list[ModelCard] = Field([], description="The models in the format of OpenAI's API.")


class HealthResponse(Message):
    """The state of the server and the names of the models that are ready."""

    status: Literal["ok"] = "ok"
    models: list[str] = Field([])


class MapPoint(Message):
    """An example on the map."""

    id: str
    label: str
    group: str
    x: float
    y: float


class MapResponse(Message):
    """The embeddings of the examples, projected to two dimensions."""

    model: str
    key: str | None = Field(description="The meta key by which points are grouped.")
    share: float = Field(description="Fraction of the variance explained by the two dimensions.")
    examples: int
    points: list[MapPoint]


class ErrorDetail(Message):
    """An error message and the request field that it concerns."""

    message: str
    field: str | None = None


class ErrorResponse(Message):
    """The response to a failed request."""

    error: ErrorDetail
