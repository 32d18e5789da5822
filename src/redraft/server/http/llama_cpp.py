"""The messages of llama.cpp's server that its editor plug-ins use: `/infill`, `/health`, `/props`.

Follows `tools/server` of llama.cpp. Unknown fields are ignored, as there: sampling parameters have
no meaning here. Converts requests and responses; runs no model.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from redraft.server import schema
from redraft.server.http.fill_in_the_middle import (
    MAX_TOKENS,
    NOTHING,
    Gap,
    Generation,
    Limits,
    Provenance,
    Stops,
    tokens_of,
)

MAX_RESPONSE_FIELDS = 64

Milliseconds = Annotated[int, Field(description="Accepted and ignored: answers take milliseconds.")]


class InfillFile(schema.ContextFile):
    """An excerpt of another file; plug-ins also send the time at which they read it."""

    model_config = ConfigDict(extra="ignore")


class InfillRequest(schema.ModelRequest):
    """The text around a cursor, and excerpts of other files."""

    model_config = ConfigDict(extra="ignore")

    input_prefix: schema.Buffer = Field(description="The lines before that of the cursor.")
    input_suffix: schema.Buffer = Field(description="The text after the cursor.")
    prompt: schema.Buffer = Field("", description="The line of the cursor, up to the cursor.")
    input_extra: Annotated[list[InfillFile], Field(max_length=schema.MAX_CONTEXT_FILES)] = Field(
        [], description="Excerpts of other files: their functions count as context."
    )
    n_predict: Annotated[int, Field(ge=-1, le=MAX_TOKENS)] = Field(
        -1, description="Maximum number of tokens; -1: no limit, 0: only prepare the context."
    )
    n_cmpl: schema.Count = Field(1, description="Number of completions; above 1, a list of them.")
    n_indent: Annotated[int, Field(ge=0)] = Field(
        0, description="Least indentation of further lines: a completion ends before others."
    )
    stop: Stops = Field([], description="Stop sequences; a completion ends before the first.")
    stream: bool = Field(False, description="Stream tokens as server-sent events.")
    id_slot: int = Field(-1, description="Returned as it is: every request sees every cache.")
    t_max_prompt_ms: Milliseconds = -1
    t_max_predict_ms: Milliseconds = -1
    response_fields: Annotated[list[schema.Text], Field(max_length=MAX_RESPONSE_FIELDS)] = Field(
        [], description="Fields to return, such as `timings/prompt_n`. Default: all."
    )

    @property
    def gap(self) -> Gap:
        """Return the gap to fill.

        Plug-ins do not send the name of its file: the ending is that of most excerpts.
        """
        endings = Counter(PurePath(file.filename or "").suffix for file in self.input_extra)
        del endings[""]
        file = f"untitled{endings.most_common(1)[0][0]}" if endings else None
        prefix = self.input_prefix + self.prompt
        return Gap(prefix, self.input_suffix, file, tuple(self.input_extra))

    @property
    def limits(self) -> Limits:
        """Return where a completion ends."""
        return Limits(self.stop, None if self.n_predict < 0 else self.n_predict, self.n_indent)


class Timings(schema.Message):
    """Numbers and durations: of waiting and reading (`prompt`), of completing (`predicted`)."""

    prompt_n: int
    prompt_ms: float
    prompt_per_token_ms: float
    prompt_per_second: float
    predicted_n: int
    predicted_ms: float
    predicted_per_token_ms: float
    predicted_per_second: float


class GenerationSettings(schema.Message):
    """The settings of the request that have an effect."""

    n_predict: int
    n_indent: int
    stop: list[str]


class InfillResponse(schema.Message):
    """A completion as llama.cpp returns it, and its provenance."""

    index: int
    content: str
    id_slot: int
    stop: Literal[True] = True
    model: str
    tokens_predicted: int
    tokens_evaluated: int
    generation_settings: GenerationSettings
    has_new_line: bool
    truncated: bool = False
    stop_type: Literal["eos", "limit", "word"]
    stopping_word: str
    tokens_cached: int
    timings: Timings
    redraft: Provenance


class PropsResponse(BaseModel):
    """The properties of the server."""

    model_config = ConfigDict(protected_namespaces=())

    total_slots: int = 1
    model_path: str
    build_info: str


@dataclass(frozen=True)
class Measured:
    """The costs of a completion: tokens of the prompt, and seconds before and during it."""

    tokens: int
    waited: float
    completed: float


def respond(
    request: InfillRequest, model: str, generations: Sequence[Generation], measured: Measured
) -> list[InfillResponse]:
    """Return the responses of `model`; without generations the one content is empty."""
    shown = generations if request.n_predict else ()
    return [
        _response(request, model, index, generation, measured)
        for index, generation in enumerate(shown or [NOTHING])
    ]


def _response(
    request: InfillRequest, model: str, index: int, generation: Generation, measured: Measured
) -> InfillResponse:
    limited = request.limits.apply(generation.text)
    stop_type: Literal["eos", "limit", "word"] = "word" if limited.word else "eos"
    return InfillResponse(
        index=index,
        content=limited.text,
        id_slot=request.id_slot,
        model=model,
        tokens_predicted=len(limited.tokens),
        tokens_evaluated=measured.tokens,
        generation_settings=GenerationSettings(
            n_predict=request.n_predict, n_indent=request.n_indent, stop=request.stop
        ),
        has_new_line="\n" in limited.text,
        stop_type="limit" if limited.reason == "length" else stop_type,
        stopping_word=limited.word,
        tokens_cached=measured.tokens + len(limited.tokens),
        timings=_timings(measured, len(limited.tokens)),
        redraft=generation.provenance,
    )


def _timings(measured: Measured, predicted: int) -> Timings:
    read, written = 1000 * measured.waited, 1000 * measured.completed
    return Timings(
        prompt_n=measured.tokens,
        prompt_ms=read,
        prompt_per_token_ms=read / max(1, measured.tokens),
        prompt_per_second=1000 * measured.tokens / max(read, 1e-3),
        predicted_n=predicted,
        predicted_ms=written,
        predicted_per_token_ms=written / max(1, predicted),
        predicted_per_second=1000 * predicted / max(written, 1e-3),
    )


def select(response: InfillResponse, paths: Sequence[str]) -> dict[str, Any]:
    """Return the fields at these paths, each under its whole path; all fields without paths."""
    fields = response.model_dump()
    if not paths:
        return fields
    found = ((path, _at(fields, path.split("/"))) for path in paths)
    return {path: value for path, value in found if value is not None}


def _at(value: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def stream(responses: Sequence[InfillResponse]) -> Iterator[str]:
    """Yield the responses as server-sent events: a part per token, then the rest."""
    for response in responses:
        for token in tokens_of(response.content):
            yield _event({"index": response.index, "content": token, "stop": False})
        yield _event({**response.model_dump(), "content": ""})


def _event(part: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(part)}\n\n"
