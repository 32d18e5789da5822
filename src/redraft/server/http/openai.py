"""A subset of OpenAI's completions API, for its clients.

For a model of functions the prompt is a buffer up to the cursor, or has the markers of a prompt to
fill in the middle; for other models it is the input, and the completion is the prediction. Converts
requests and responses; runs no model.
"""

import math
import secrets
import time
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from redraft.server import responses, schema
from redraft.server.http.fill_in_the_middle import (
    MAX_TOKENS,
    NOTHING,
    Generation,
    Limits,
    Provenance,
    Stop,
    Stops,
    read_prompt,
    tokens_of,
)
from redraft.server.schema import FieldError

Ignored = "Accepted and ignored: decoding is deterministic."


class CompletionsRequest(schema.ModelRequest):
    """A prompt to complete."""

    prompt: schema.Buffer | Annotated[list[schema.Buffer], Field(min_length=1, max_length=1)] = (
        Field(
            description="A buffer up to the cursor, a prompt with the markers of Qwen, StarCoder, "
            "CodeLlama, DeepSeek or Codestral, or the input; or a list of one."
        )
    )
    suffix: schema.Buffer | None = Field(None, description="The text after the cursor.")
    n: schema.Count = Field(1, description="Maximum number of completions.")
    max_tokens: Annotated[int, Field(ge=1, le=MAX_TOKENS)] | None = Field(
        None, description="Maximum length of a completion. Default: no limit."
    )
    stop: Stop | Stops | None = Field(
        None, description="Stop sequences; a completion ends before the first."
    )
    stream: bool | None = Field(None, description="Stream tokens as server-sent events.")
    temperature: schema.Finite | None = Field(None, description=Ignored)
    top_p: schema.Finite | None = Field(None, description=Ignored)
    presence_penalty: schema.Finite | None = Field(None, description=Ignored)
    frequency_penalty: schema.Finite | None = Field(None, description=Ignored)
    seed: int | None = Field(None, description=Ignored)
    user: schema.Text | None = Field(None, description="Accepted and ignored.")
    environment: schema.Text | None = Field(None, description="Accepted and ignored: Zed's.")

    @property
    def text(self) -> str:
        """Return the prompt as a string."""
        return self.prompt if isinstance(self.prompt, str) else self.prompt[0]

    @property
    def limits(self) -> Limits:
        """Return where a completion ends."""
        stops = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return Limits(stops, self.max_tokens)


class Choice(schema.Message):
    """A completion, or a part of one while streaming; the last part has the provenance."""

    text: str
    index: int
    finish_reason: Literal["stop", "length"] | None
    logprobs: None = None
    redraft: Provenance | None


class Usage(schema.Message):
    """Numbers of tokens; those of a prompt are not counted, since only a part of it is read."""

    prompt_tokens: int = 0
    completion_tokens: int
    total_tokens: int


class CompletionsResponse(schema.Message):
    """The completions, best first."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[Choice]
    usage: Usage | None


def to_complete_request(request: CompletionsRequest) -> schema.CompleteRequest:
    """Convert a request for a model of functions."""
    return read_prompt(request.text, request.suffix).to_request(request.n)


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


def from_candidate(candidate: responses.CandidateSchema) -> Generation:
    """Convert a predicted output."""
    probability = None if candidate.log_prob is None else round(math.exp(candidate.log_prob), 6)
    marks = candidate.model_dump(include={"confidence", "invented", "unfamiliar"})
    return Generation(candidate.output, Provenance.of(candidate.prototype, probability, **marks))


def respond(
    request: CompletionsRequest, model: str, generations: list[Generation]
) -> CompletionsResponse:
    """Return the response of `model`; without generations its one choice is an empty text."""
    choices, count = [], 0
    for index, generation in enumerate(generations or [NOTHING]):
        limited = request.limits.apply(generation.text)
        count += len(limited.tokens)
        choices.append(
            Choice(
                text=limited.text,
                index=index,
                finish_reason=limited.reason,
                redraft=generation.provenance,
            )
        )
    return CompletionsResponse(
        id=f"cmpl-{secrets.token_hex(12)}",
        created=int(time.time()),
        model=model,
        choices=choices,
        usage=Usage(completion_tokens=count, total_tokens=count),
    )


def stream(response: CompletionsResponse) -> Iterator[str]:
    """Yield the response as server-sent events, one per token."""
    for choice in response.choices:
        for token in tokens_of(choice.text):
            part: dict[str, Any] = {"text": token, "finish_reason": None, "redraft": None}
            yield _event(response, choice.model_copy(update=part))
        yield _event(response, choice.model_copy(update={"text": ""}))
    yield "data: [DONE]\n\n"


def _event(response: CompletionsResponse, choice: Choice) -> str:
    part = response.model_copy(update={"choices": [choice], "usage": None})
    return f"data: {part.model_dump_json()}\n\n"
