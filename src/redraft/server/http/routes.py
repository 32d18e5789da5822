"""The routes: each passes a request to a model and returns its response."""

import time
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Path, Query, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from prometheus_client import CONTENT_TYPE_LATEST

from redraft import __version__
from redraft.server import responses, schema
from redraft.server.http import llama_cpp, openai
from redraft.server.http.fill_in_the_middle import Generation, tokens_of
from redraft.server.http.llama_cpp import InfillRequest, InfillResponse, Measured, PropsResponse
from redraft.server.http.lm_completion import suggest
from redraft.server.http.metrics import Metrics
from redraft.server.http.model_pool import ModelPool, NotReadyError, PooledModel
from redraft.server.http.openai import CompletionsRequest, CompletionsResponse
from redraft.types import Example, as_input

if TYPE_CHECKING:
    from redraft.server.served_model import ServedModel

ModelName = Annotated[str, Path(max_length=schema.MAX_NAME_LENGTH, description="Name of a model.")]
ExampleId = Annotated[str, Path(max_length=schema.MAX_NAME_LENGTH, description="Id of an example.")]

_REASONS = {
    400: "The body cannot be read.",
    401: "The token is missing or wrong.",
    403: "The Host header does not name this server.",
    404: "No such model or example.",
    408: "The body did not arrive in time.",
    409: "The model does not allow this change.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    422: "A field is invalid; the message names it.",
    500: "Internal server error; see the server's log.",
    503: "A model is still loading or overloaded.",
    504: "The request exceeded the time limit.",
}
_EVENTS = {"text/event-stream": {"schema": {"type": "string"}}}


def _error_responses(*excluded: int) -> dict[int | str, dict[str, Any]]:
    return {
        status: {"model": responses.ErrorResponse, "description": reason}
        for status, reason in _REASONS.items()
        if status not in excluded
    }


def _get_pool(request: Request) -> ModelPool:
    pool: ModelPool = request.app.state.pool
    return pool


async def _expect_json(request: Request) -> None:
    """Refuse other content types: a form on another site can post plain text, but not JSON."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.method == "POST" and kind != "application/json":
        raise HTTPException(415)


Pool = Annotated[ModelPool, Depends(_get_pool)]
health_routes = APIRouter(
    tags=["health"], responses=_error_responses(400, 401, 404, 409, 415, 422, 504)
)
model_routes = APIRouter(
    prefix="/v1",
    tags=["models"],
    responses=_error_responses(),
    dependencies=[Depends(_expect_json)],
)
llama_routes = APIRouter(
    tags=["llama.cpp"], responses=_error_responses(), dependencies=[Depends(_expect_json)]
)


@health_routes.get("/healthz", summary="Liveness: the server is up")
async def healthz() -> responses.HealthResponse:
    return responses.HealthResponse()


@health_routes.get("/readyz", summary="Readiness: every model that can be loaded is loaded")
async def readyz(pool: Pool) -> responses.HealthResponse:
    loadable = [model for model in pool.models.values() if not model.failure]
    for model in loadable or pool.models.values():
        _ = model.served  # raises NotReadyError while the model is loading
    return responses.HealthResponse(models=[model.name for model in loadable])


@health_routes.get(
    "/metrics",
    summary="Metrics for Prometheus",
    response_class=Response,
    responses={200: {"content": {CONTENT_TYPE_LATEST: {"schema": {"type": "string"}}}}},
)
async def read_metrics(request: Request, pool: Pool) -> Response:
    examples = {model.name: model.served.info().examples for model in pool.ready}
    metrics: Metrics = request.app.state.metrics
    return Response(metrics.render(examples), media_type=CONTENT_TYPE_LATEST)


@model_routes.get("/models", summary="List the models that are ready")
async def _models(pool: Pool) -> responses.ModelsResponse:
    if not pool.ready:
        raise NotReadyError("no model is loaded yet; retry soon")
    models = [model.served.info() for model in pool.ready]
    cards = [responses.ModelCard(id=model.name) for model in models]
    return responses.ModelsResponse(models=models, data=cards)


@model_routes.get("/models/{name}/map", summary="Get a model's examples in two dimensions")
async def _map(name: ModelName, pool: Pool) -> responses.MapResponse:
    return await pool.find(name).run_in_background(lambda served: served.map())


@model_routes.get("/models/{name}/examples/{identity}", summary="Get one example")
async def _example(name: ModelName, identity: ExampleId, pool: Pool) -> responses.ExampleSchema:
    return await pool.find(name).run(lambda served: served.example(identity))


@model_routes.post("/predict", summary="Predict outputs")
async def _predict(request: schema.PredictRequest, pool: Pool) -> responses.PredictResponse:
    model = pool.find(request.model)
    if request.min_confidence is None and request.precision is None:
        return responses.PredictResponse(model=model.name, results=await model.predict(request))
    from redraft.predictor import is_below  # imports NumPy, which the model has loaded by now

    # a refusal comes before any prediction
    threshold = await model.run(lambda served: served.threshold(request))
    results = await model.predict(request)
    confidences = [candidates[0].confidence if candidates else None for candidates in results]
    return responses.PredictResponse(
        model=model.name,
        results=results,
        abstained=[is_below(confidence, threshold) for confidence in confidences],
        threshold=threshold,
    )


@model_routes.post("/retrieve", summary="Retrieve examples")
async def _retrieve(request: schema.RetrieveRequest, pool: Pool) -> responses.RetrieveResponse:
    model = pool.find(request.model)
    results = await model.run(lambda served: served.retrieve(request), lane="retrieve")
    return responses.RetrieveResponse(model=model.name, results=results)


@model_routes.post("/complete", summary="Complete an output")
async def _complete(request: schema.CompleteRequest, pool: Pool) -> responses.CompleteResponse:
    model = pool.find(request.model)
    completions, generation = await suggest(model, request)
    is_pending = generation is not None
    return responses.CompleteResponse(model=model.name, completions=completions, pending=is_pending)


@model_routes.post("/examples", summary="Add examples")
async def _add(request: schema.AddRequest, pool: Pool) -> responses.ExamplesResponse:
    model = pool.find(request.model)
    examples = [Example(as_input(new.x), new.y, new.meta) for new in request.examples]
    changed = await model.run_in_background(lambda served: served.add(examples))
    return _examples_response(model, changed)


@model_routes.delete("/examples", summary="Remove examples")
async def _remove(
    query: Annotated[schema.RemoveQuery, Query()], pool: Pool
) -> responses.ExamplesResponse:
    model = pool.find(query.model)
    changed = await model.run_in_background(lambda served: served.remove(query.id, query.filters))
    return _examples_response(model, changed)


@model_routes.post(
    "/completions",
    summary="Complete a prompt (OpenAI-compatible)",
    response_model=CompletionsResponse,
    responses={200: {"content": _EVENTS}},
)
async def _completions(request: CompletionsRequest, pool: Pool) -> Any:
    model = pool.find(request.model)
    info = model.served.info()
    if info.completes_python:
        complete_request = openai.to_complete_request(request)
        completions = await model.run(
            lambda served: served.complete(complete_request), lane="complete"
        )
        generations = [Generation.of(completion) for completion in completions]
    else:
        predict_request = openai.to_predict_request(request, info.fields)
        [candidates] = await model.predict(predict_request)
        generations = [openai.from_candidate(candidate) for candidate in candidates]
    response = openai.respond(request, model.name, generations)
    if request.stream:
        return _stream(openai.stream(response))
    return response


@llama_routes.get("/health", summary="Readiness, as llama.cpp's server answers it")
async def _health(pool: Pool) -> responses.HealthResponse:
    return await readyz(pool)


@llama_routes.get("/props", summary="Properties, as llama.cpp's server answers them")
async def _props(pool: Pool) -> PropsResponse:
    return PropsResponse(model_path=pool.find(None).name, build_info=f"redraft {__version__}")


@llama_routes.post(
    "/infill",
    summary="Fill in the middle, as llama.cpp's server answers it",
    response_model=None,
    responses={200: {"model": InfillResponse | list[InfillResponse] | dict[str, Any]}},
)
async def _infill(request: InfillRequest, pool: Pool) -> Response:
    # llama.cpp ignores the name of the model, and plug-ins send that of another server's
    model = pool.find(request.model if request.model in pool.models else None)
    complete_request = request.gap.to_request(request.n_cmpl)
    began = time.perf_counter()

    def complete(served: "ServedModel") -> tuple[list[responses.CompletionSchema], Measured]:
        tokens = len(tokens_of(request.input_prefix + request.prompt))
        started = time.perf_counter()
        completions = served.complete(complete_request)
        ended = time.perf_counter()
        return completions, Measured(tokens, started - began, ended - started)

    completions, measured = await model.run(complete, lane="complete")
    generations = [Generation.of(completion) for completion in completions]
    answers = llama_cpp.respond(request, model.name, generations, measured)
    if request.stream:
        return _stream(llama_cpp.stream(answers))
    selected = [llama_cpp.select(answer, request.response_fields) for answer in answers]
    return JSONResponse(selected if request.n_cmpl > 1 else selected[0])


def _stream(events: Iterable[str]) -> StreamingResponse:
    async def send() -> AsyncIterator[str]:  # a sync generator would need a thread
        for event in events:
            yield event

    return StreamingResponse(send(), media_type="text/event-stream")


def _examples_response(model: PooledModel, changed: int) -> responses.ExamplesResponse:
    examples = model.served.info().examples
    return responses.ExamplesResponse(model=model.name, changed=changed, examples=examples)
