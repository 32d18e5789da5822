"""A subset of OpenAI's completions API, for its clients.

For a model of Python functions the prompt is a buffer up to the cursor; for other models it is
the input, and the completion is the prediction. Converts requests and responses; runs no model.
"""

import math
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from redraft.server import schema
from redraft.server.schema import FieldError
from redraft.text.tokenizer import Tokenizer, spell

MAX_TOKENS = 100_000
MAX_STOPS = 16

Stop = Annotated[str, StringConstraints(min_length=1, max_length=schema.MAX_NAME_LENGTH)]
Ignored = "Accepted and ignored: decoding is deterministic."


class CompletionsRequest(schema.ModelRequest):
    """A prompt to complete."""

    prompt: schema.Buffer | Annotated[list[schema.Buffer], Field(min_length=1, max_length=1)] = (
        Field(description="A Python buffer up to the cursor, or the input; or a list of one.")
    )
    suffix: schema.Buffer | None = Field(None, description="The text after the cursor.")
    n: schema.Count = Field(1, description="Maximum number of completions.")
    max_tokens: Annotated[int, Field(ge=1, le=MAX_TOKENS)] | None = Field(
        None, description="Maximum length of a completion. Default: no limit."
    )
    stop: Stop | Annotated[list[Stop], Field(max_length=MAX_STOPS)] | None = Field(
        None, description="Stop sequences; a completion ends before the first."
    )
    stream: bool | None = Field(None, description="Stream tokens as server-sent events.")
    temperature: schema.Finite | None = Field(None, description=Ignored)
    top_p: schema.Finite | None = Field(None, description=Ignored)
    presence_penalty: schema.Finite | None = Field(None, description=Ignored)
    frequency_penalty: schema.Finite | None = Field(None, description=Ignored)
    seed: int | None = Field(None, description=Ignored)
    user: schema.Text | None = Field(None, description="Accepted and ignored.")

    @property
    def text(self) -> str:
        """Return the prompt as a string."""
        return self.prompt if isinstance(self.prompt, str) else self.prompt[0]

    @property
    def stops(self) -> list[str]:
        """Return the stop sequences as a list."""
        return [self.stop] if isinstance(self.stop, str) else self.stop or []


class Provenance(schema.Message):
    """The prototype and the scores of a choice."""

    prototype: schema.PrototypeSchema | None
    distance: float | None
    probability: float | None
    confidence: float | None = None
    invented: list[str] = Field([])
    unfamiliar: bool = False


class Choice(schema.Message):
    """A completion, or a part of one while streaming; the last part has the provenance."""

    text: str
    index: int
    finish_reason: Literal["stop", "length"] | None
    logprobs: None = None
    redraft: Provenance | None


class CompletionsResponse(schema.Message):
    """The completions, best first."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[Choice]


@dataclass(frozen=True)
class Generation:
    """A generated text and its provenance."""

    text: str
    provenance: Provenance


def to_complete_request(request: CompletionsRequest) -> schema.CompleteRequest:
    """Convert a request for a model of Python functions."""
    text = request.text + (request.suffix or "")
    if len(text) > schema.MAX_BUFFER_LENGTH:
        raise FieldError(
            f"prompt and suffix may have {schema.MAX_BUFFER_LENGTH:,} characters together; "
            "send less",
            field="suffix",
        )
    return schema.CompleteRequest(text=text, offset=len(request.text), k=request.n)


def to_predict_request(request: CompletionsRequest, fields: list[str]) -> schema.PredictRequest:
    """Convert a request for any other model, whose input has these `fields`."""
    if len(fields) > 1:
        raise FieldError(
            f"the input of this model has the fields {', '.join(fields)}; use /v1/predict",
            field="prompt",
        )
    if len(request.text) > schema.MAX_TEXT_LENGTH:
        raise FieldError(f"should have at most {schema.MAX_TEXT_LENGTH} characters", field="prompt")
    x: str | dict[str, str] = {fields[0]: request.text} if fields else request.text
    return schema.PredictRequest(inputs=[x], k=request.n)


def from_completion(completion: schema.CompletionSchema) -> Generation:
    """Convert a completion at a cursor."""
    return Generation(completion.text, _provenance(completion.prototype, completion.probability))


def from_candidate(candidate: schema.CandidateSchema) -> Generation:
    """Convert a predicted output."""
    probability = None if candidate.log_prob is None else round(math.exp(candidate.log_prob), 6)
    marks = candidate.model_dump(include={"confidence", "invented", "unfamiliar"})
    return Generation(candidate.output, _provenance(candidate.prototype, probability, **marks))


def respond(
    request: CompletionsRequest, model: str, generations: list[Generation]
) -> CompletionsResponse:
    """Return the response of `model`; without generations its one choice is an empty text."""
    nothing = Generation("", _provenance())
    choices = []
    for index, generation in enumerate(generations or [nothing]):
        tokens, reason = truncate(generation.text, request)
        text, provenance = "".join(tokens), generation.provenance
        choices.append(Choice(text=text, index=index, finish_reason=reason, redraft=provenance))
    return CompletionsResponse(
        id=f"cmpl-{secrets.token_hex(12)}", created=int(time.time()), model=model, choices=choices
    )


def stream(response: CompletionsResponse) -> Iterator[str]:
    """Yield the response as server-sent events, one per token."""
    for choice in response.choices:
        for token in _tokens(choice.text):
            part: dict[str, Any] = {"text": token, "finish_reason": None, "redraft": None}
            yield _event(response, choice.model_copy(update=part))
        yield _event(response, choice.model_copy(update={"text": ""}))
    yield "data: [DONE]\n\n"


def truncate(text: str, request: CompletionsRequest) -> tuple[list[str], Literal["stop", "length"]]:
    """Return the tokens of `text` up to a stop sequence or `max_tokens`, and the finish reason."""
    stops = [index for index in (text.find(stop) for stop in request.stops) if index >= 0]
    tokens = _tokens(text[: min(stops, default=len(text))])
    if request.max_tokens is not None and len(tokens) > request.max_tokens:
        return tokens[: request.max_tokens], "length"
    return tokens, "stop"


def _tokens(text: str) -> list[str]:
    return [token for token in spell(Tokenizer().tokenize(text)) if token]


def _event(response: CompletionsResponse, choice: Choice) -> str:
    part = response.model_copy(update={"choices": [choice]})
    return f"data: {part.model_dump_json()}\n\n"


def _provenance(
    prototype: schema.PrototypeSchema | None = None, probability: float | None = None, **marks: Any
) -> Provenance:
    distance = prototype.distance if prototype else None
    return Provenance(prototype=prototype, distance=distance, probability=probability, **marks)
