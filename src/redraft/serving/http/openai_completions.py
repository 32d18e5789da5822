"""OpenAI's completions as a subset, so that its clients can ask a model of ours.

A model of functions reads the prompt as a Python buffer up to the cursor; any other reads it as
the input, and the completion is its prediction. Knows messages only, and runs no model.
"""

import math
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from redraft.data.tokenizer import Tokenizer, spell
from redraft.serving import schema
from redraft.serving.field_error import FieldError

MOST_TOKENS = 100_000
MOST_STOPS = 16

Stop = Annotated[str, StringConstraints(min_length=1, max_length=schema.LONGEST_NAME)]
Ignored = "Read and ignored: a model of ours gives its best completions, and the same ones again."


class CompletionsRequest(schema.Question):
    """A prompt to complete."""

    prompt: schema.Buffer | Annotated[list[schema.Buffer], Field(min_length=1, max_length=1)] = (
        Field(description="A Python buffer up to the cursor, or the input; or a list of one.")
    )
    suffix: schema.Buffer | None = Field(None, description="What stands after the cursor.")
    n: schema.Count = Field(1, description="How many completions.")
    max_tokens: Annotated[int, Field(ge=1, le=MOST_TOKENS)] | None = Field(
        None, description="Where a completion is cut off; nowhere without one."
    )
    stop: Stop | Annotated[list[Stop], Field(max_length=MOST_STOPS)] | None = Field(
        None, description="Texts before which a completion ends."
    )
    stream: bool | None = Field(None, description="Whether to send it token by token, as events.")
    temperature: schema.Finite | None = Field(None, description=Ignored)
    top_p: schema.Finite | None = Field(None, description=Ignored)
    presence_penalty: schema.Finite | None = Field(None, description=Ignored)
    frequency_penalty: schema.Finite | None = Field(None, description=Ignored)
    seed: int | None = Field(None, description=Ignored)
    user: schema.Text | None = Field(None, description="Read and ignored.")

    @property
    def text(self) -> str:
        """The prompt."""
        return self.prompt if isinstance(self.prompt, str) else self.prompt[0]

    @property
    def stops(self) -> list[str]:
        """The texts before which a completion ends."""
        return [self.stop] if isinstance(self.stop, str) else self.stop or []


class Provenance(schema.Wire):
    """What a choice was made from."""

    prototype: schema.ShownPrototype | None
    distance: float | None
    probability: float | None
    confidence: float | None = None


class Choice(schema.Wire):
    """A completion, or while it is streamed a piece of one: the last piece has the provenance."""

    text: str
    index: int
    finish_reason: Literal["stop", "length"] | None
    logprobs: None = None
    redraft: Provenance | None


class CompletionsResponse(schema.Wire):
    """The completions, best first."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[Choice]


@dataclass(frozen=True)
class Written:
    """A text that a model gave, and what it was made from."""

    text: str
    provenance: Provenance


def as_completion(request: CompletionsRequest) -> schema.CompleteRequest:
    """The question for a model of functions."""
    text = request.text + (request.suffix or "")
    if len(text) > schema.LONGEST_BUFFER:
        raise FieldError(
            f"with prompt at most {schema.LONGEST_BUFFER:,} characters", field="suffix"
        )
    return schema.CompleteRequest(text=text, offset=len(request.text), k=request.n)


def as_prediction(request: CompletionsRequest, fields: list[str]) -> schema.PredictRequest:
    """The question for any other model."""
    if len(fields) > 1:
        raise FieldError(
            f"the input of this model has the fields {', '.join(fields)}; use /v1/predict",
            field="prompt",
        )
    if len(request.text) > schema.LONGEST_TEXT:
        raise FieldError(f"should have at most {schema.LONGEST_TEXT} characters", field="prompt")
    x: str | dict[str, str] = {fields[0]: request.text} if fields else request.text
    return schema.PredictRequest(inputs=[x], k=request.n)


def from_completion(found: schema.ShownCompletion) -> Written:
    """A suggestion at a cursor."""
    return Written(found.text, _provenance(found.prototype, found.probability))


def from_answer(answer: schema.Answer) -> Written:
    """An answer to an input."""
    probability = None if answer.log_prob is None else round(math.exp(answer.log_prob), 6)
    provenance = _provenance(answer.prototype, probability, answer.confidence)
    return Written(answer.output, provenance)


def respond(request: CompletionsRequest, model: str, found: list[Written]) -> CompletionsResponse:
    """What was found as one message; where nothing was, an empty text."""
    nothing = Written("", _provenance(None, None))
    choices = []
    for index, written in enumerate(found or [nothing]):
        pieces, reason = cut(written.text, request)
        choices.append(
            Choice(
                text="".join(pieces),
                index=index,
                finish_reason=reason,
                redraft=written.provenance,
            )
        )
    return CompletionsResponse(
        id=f"cmpl-{secrets.token_hex(12)}", created=int(time.time()), model=model, choices=choices
    )


def stream(response: CompletionsResponse) -> Iterator[str]:
    """The same message as server-sent events, a token in each."""
    for choice in response.choices:
        for piece in _pieces(choice.text):
            part: dict[str, Any] = {"text": piece, "finish_reason": None, "redraft": None}
            yield _event(response, choice.model_copy(update=part))
        yield _event(response, choice.model_copy(update={"text": ""}))
    yield "data: [DONE]\n\n"


def cut(text: str, request: CompletionsRequest) -> tuple[list[str], Literal["stop", "length"]]:
    """The tokens of the text as far as the request lets it go, and why it ends there."""
    found = [at for at in (text.find(stop) for stop in request.stops) if at >= 0]
    pieces = _pieces(text[: min(found, default=len(text))])
    if request.max_tokens is not None and len(pieces) > request.max_tokens:
        return pieces[: request.max_tokens], "length"
    return pieces, "stop"


def _pieces(text: str) -> list[str]:
    return [piece for piece in spell(Tokenizer().tokenize(text)) if piece]


def _event(response: CompletionsResponse, choice: Choice) -> str:
    part = response.model_copy(update={"choices": [choice]})
    return f"data: {part.model_dump_json()}\n\n"


def _provenance(
    prototype: schema.ShownPrototype | None,
    probability: float | None,
    confidence: float | None = None,
) -> Provenance:
    return Provenance(
        prototype=prototype,
        distance=prototype.distance if prototype else None,
        probability=probability,
        confidence=confidence,
    )
