"""Completion over HTTP that may wait for a language model, outside of the model's thread."""

import asyncio
from typing import TYPE_CHECKING

from redraft.server import responses, schema
from redraft.server.http.model_pool import PooledModel
from redraft.server.waiting import finished

if TYPE_CHECKING:
    from redraft.completion.lm_completion import LmGeneration

Suggested = tuple[list[responses.CompletionSchema], "LmGeneration | None"]


async def suggest(model: PooledModel, request: schema.CompleteRequest) -> Suggested:
    """Return the completions after at most `request.wait` seconds, and what is still generated.

    A client that disconnects while it waits stops the generation.
    """
    suggested = await _suggest(model, request)
    generation = suggested[1]
    if generation is None or not request.wait:
        return suggested
    try:
        await finished(generation.future, request.wait)
    except asyncio.CancelledError:
        model.served.completer.release(generation)
        raise
    return await _suggest(model, request, generation)


async def _suggest(
    model: PooledModel,
    request: schema.CompleteRequest,
    generation: "LmGeneration | None" = None,
) -> Suggested:
    return await model.run(lambda served: served.suggest(request, generation), lane="complete")
