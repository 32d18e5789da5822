"""The routes: each hands a message to a model and its answer back."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Path, Query, Request
from fastapi.responses import Response, StreamingResponse

from redraft.data.example import Example, as_input
from redraft.serving import schema
from redraft.serving.http import openai_completions
from redraft.serving.http.hosting import HostedModel, Hosting, NotReadyError
from redraft.serving.http.metrics import CONTENT_TYPE, Metrics
from redraft.serving.http.openai_completions import CompletionsRequest, CompletionsResponse

ModelName = Annotated[str, Path(max_length=schema.LONGEST_NAME, description="Name of a model.")]
ExampleId = Annotated[str, Path(max_length=schema.LONGEST_NAME, description="Id of an example.")]

_REASONS = {
    400: "The body cannot be read.",
    401: "The token is missing or wrong.",
    403: "Asked under a name that is not this server's.",
    404: "No such model or example.",
    408: "The body did not come in time.",
    409: "The model cannot be changed so.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    422: "A field is wrong; the message names it.",
    500: "The server failed; its log tells where.",
    503: "A model is being loaded, or has too much to do.",
    504: "No answer within the time limit.",
}
_EVENTS = {"text/event-stream": {"schema": {"type": "string"}}}


def _refusals(*but: int) -> dict[int | str, dict[str, Any]]:
    return {
        status: {"model": schema.ErrorResponse, "description": reason}
        for status, reason in _REASONS.items()
        if status not in but
    }


def _hosting(request: Request) -> Hosting:
    hosting: Hosting = request.app.state.hosting
    return hosting


async def _expect_json(request: Request) -> None:
    """Refuse other bodies: a form of another site can post plain text unasked, but no JSON."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415)


Hosted = Annotated[Hosting, Depends(_hosting)]
READS = [Depends(_expect_json)]


def health_routes(metrics: Metrics) -> APIRouter:
    """Whether the server lives, and what it has done."""
    router = APIRouter(tags=["health"], responses=_refusals(400, 401, 404, 409, 415, 422, 504))

    @router.get("/healthz", summary="Whether the server lives")
    async def healthz() -> schema.HealthResponse:
        return schema.HealthResponse()

    @router.get("/readyz", summary="Whether every model that can be loaded is")
    async def readyz(hosting: Hosted) -> schema.HealthResponse:
        waited_for = [model for model in hosting.models.values() if not model.failure]
        for model in waited_for or hosting.models.values():
            _ = model.served
        return schema.HealthResponse(models=[model.name for model in waited_for])

    @router.get(
        "/metrics",
        summary="Counts for Prometheus",
        response_class=Response,
        responses={200: {"content": {CONTENT_TYPE: {"schema": {"type": "string"}}}}},
    )
    async def read_metrics(hosting: Hosted) -> Response:
        examples = {model.name: model.served.info().examples for model in hosting.ready}
        return Response(metrics.render(examples), media_type=CONTENT_TYPE)

    return router


def model_routes() -> APIRouter:
    """What models can be asked."""
    router = APIRouter(prefix="/v1", tags=["models"], responses=_refusals())
    router.get("/models", summary="The models that answer")(_models)
    router.get("/models/{name}/map", summary="A model's examples in two dimensions")(_map)
    router.get("/models/{name}/examples/{identity}", summary="One example")(_example)
    router.post("/predict", summary="Answer inputs", dependencies=READS)(_predict)
    router.post("/retrieve", summary="Find examples for inputs", dependencies=READS)(_retrieve)
    router.post("/complete", summary="Go on with an output", dependencies=READS)(_complete)
    router.post("/examples", summary="Add examples", dependencies=READS)(_add)
    router.delete("/examples", summary="Remove examples")(_remove)
    router.post(
        "/completions",
        summary="Complete a prompt, as OpenAI's clients ask",
        dependencies=READS,
        response_model=CompletionsResponse,
        responses={200: {"content": _EVENTS}},
    )(_completions)
    return router


async def _models(hosting: Hosted) -> schema.ModelsResponse:
    if not hosting.ready:
        raise NotReadyError("no model is loaded yet; ask again soon")
    models = [model.served.info() for model in hosting.ready]
    cards = [schema.ModelCard(id=each.name) for each in models]
    return schema.ModelsResponse(models=models, data=cards)


async def _map(name: ModelName, hosting: Hosted) -> schema.MapResponse:
    return await hosting.find(name).beside(lambda served: served.map())


async def _example(name: ModelName, identity: ExampleId, hosting: Hosted) -> schema.ShownExample:
    return await hosting.find(name).answer(lambda served: served.example(identity))


async def _predict(request: schema.PredictRequest, hosting: Hosted) -> schema.PredictResponse:
    model = hosting.find(request.model)
    return schema.PredictResponse(model=model.name, results=await model.predict(request))


async def _retrieve(request: schema.RetrieveRequest, hosting: Hosted) -> schema.RetrieveResponse:
    model = hosting.find(request.model)
    results = await model.answer(lambda served: served.retrieve(request), lane="retrieve")
    return schema.RetrieveResponse(model=model.name, results=results)


async def _complete(request: schema.CompleteRequest, hosting: Hosted) -> schema.CompleteResponse:
    model = hosting.find(request.model)
    found = await model.answer(lambda served: served.complete(request), lane="complete")
    return schema.CompleteResponse(model=model.name, completions=found)


async def _add(request: schema.AddRequest, hosting: Hosted) -> schema.ExamplesResponse:
    model = hosting.find(request.model)
    examples = [Example(as_input(each.x), each.y, each.meta) for each in request.examples]
    return _changed(model, await model.beside(lambda served: served.add(examples)))


async def _remove(
    query: Annotated[schema.RemoveQuery, Query()], hosting: Hosted
) -> schema.ExamplesResponse:
    model = hosting.find(query.model)
    changed = await model.beside(lambda served: served.remove(query.id, query.filters))
    return _changed(model, changed)


async def _completions(request: CompletionsRequest, hosting: Hosted) -> Any:
    model = hosting.find(request.model)
    info = model.served.info()
    if info.completes_python:
        question = openai_completions.as_completion(request)
        found = await model.answer(lambda served: served.complete(question), lane="complete")
        written = [openai_completions.from_completion(each) for each in found]
    else:
        asked = openai_completions.as_prediction(request, info.fields)
        [answers] = await model.predict(asked)
        written = [openai_completions.from_answer(each) for each in answers]
    response = openai_completions.respond(request, model.name, written)
    if request.stream:
        return StreamingResponse(_events(response), media_type="text/event-stream")
    return response


async def _events(response: CompletionsResponse) -> AsyncIterator[str]:
    for event in openai_completions.stream(response):  # async, or each would take a thread
        yield event


def _changed(model: HostedModel, changed: int) -> schema.ExamplesResponse:
    examples = model.served.info().examples
    return schema.ExamplesResponse(model=model.name, changed=changed, examples=examples)
