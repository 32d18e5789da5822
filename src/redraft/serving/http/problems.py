"""What went wrong as an answer: a status, a message, the field it is about, and no input text."""

import logging
import re
import secrets
import traceback
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from redraft.errors import NoAnswerError, PairsError, RedraftError, StoreError
from redraft.serving import schema
from redraft.serving.http.hosting import (
    NotReadyError,
    OverloadedError,
    TimeLimitError,
    UnknownModelError,
)

log = logging.getLogger(__name__)

STATUSES: dict[type[RedraftError], int] = {
    UnknownModelError: 404,
    NoAnswerError: 404,
    NotReadyError: 503,
    OverloadedError: 503,
    TimeLimitError: 504,
}
"""Of errors without a field; one with a field is 422, and other pairs are refused with 409."""

RETRY_SECONDS = 1

_NAME = re.compile(r"[\w.-]{1,64}")
_SUBJECT = re.compile(r"^(Value error, |\w+ (?=should ))")
_STANDARD = {
    400: "the body cannot be read; send JSON",
    404: "no such path; see /openapi.json",
    405: "this path does not take this method; see /openapi.json",
    415: "Content-Type: expected application/json",
}


def answer(
    status: int,
    message: str,
    *,
    field: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """A problem as a response."""
    problem = schema.ErrorResponse(error=schema.Problem(message=message, field=field))
    content = problem.model_dump(mode="json")
    return JSONResponse(content, status, {**_retry(status), **(headers or {})})


def unexpected(error: BaseException) -> JSONResponse:
    """The answer to an error that is ours."""
    return answer(500, f"the server failed; its log tells where under the id {note(error)}")


def note(error: BaseException) -> str:
    """Log where an error of ours came from; the id that it has in the log."""
    identity = secrets.token_hex(4)
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    places = " < ".join(f"{frame.filename}:{frame.lineno}" for frame in reversed(frames))
    # the error's own text may hold what a user typed
    log.error("error %s: %s at %s", identity, type(error).__name__, places)
    return identity


def install(app: FastAPI) -> None:
    """Answer every kind of error of the app in the one form."""
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _standard)
    app.add_exception_handler(RedraftError, _refused)


def _retry(status: int) -> dict[str, str]:
    return {"Retry-After": str(RETRY_SECONDS)} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}


async def _malformed(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    if error.errors()[0]["type"] == "json_invalid":
        place = error.errors()[0]["loc"][-1]
        return answer(400, f"the body is not JSON (at character {place})")
    field, message = describe(error.errors(), error.body)
    return answer(422, f"{field}: {message}" if field else message, field=field)


async def _standard(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    message = _STANDARD.get(error.status_code, HTTPStatus(error.status_code).phrase)
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        # the router names the methods of the first route with this path only
        methods = request.app.openapi()["paths"].get(request.url.path, {})
        headers |= {"Allow": ", ".join(methods).upper()} if methods else {}
    return answer(error.status_code, message, headers=headers)


async def _refused(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RedraftError)
    field = getattr(error, "field", None)
    if field is not None:
        return answer(422, f"{field}: {error}", field=field)
    if isinstance(error, StoreError):
        log.error("%s", error)  # which says where the store is: that is not for whoever asks
        return answer(503, "the store of the examples cannot be reached; ask again soon")
    for kind, status in STATUSES.items():
        if isinstance(error, kind):
            return answer(status, str(error))
    return answer(409, str(error)) if isinstance(error, PairsError) else unexpected(error)


def describe(errors: Sequence[Any], body: object) -> tuple[str | None, str]:
    """The first field that is wrong, and what is wrong with it, without what was sent.

    A value that may be of several kinds has an error for each; those of the kind that it nearly
    is say most: the ones deepest inside it, or else those that are not about its type.
    """
    fields = [_path(error, body) for error in errors]
    first = fields[0]
    about = [at for at, path in enumerate(fields) if path[: len(first)] == first]
    deepest = max(len(fields[at]) for at in about)
    about = [at for at in about if len(fields[at]) == deepest]
    telling = [at for at in about if not errors[at]["type"].endswith("_type")] or about
    messages = dict.fromkeys(_message(errors[at]) for at in telling)
    return ".".join(fields[telling[0]]) or None, " or ".join(messages)


def _path(error: Mapping[str, Any], body: Any) -> list[str]:
    """Where the error is; what is neither in the body nor a field that it lacks is left out."""
    source, *parts = error["loc"]
    if source != "body":
        return [str(part) for part in parts if _NAME.fullmatch(str(part))]
    path = []
    for at, part in enumerate(parts):
        if _holds(body, part):
            body = body[part]
        elif not (error["type"] == "missing" and at == len(parts) - 1):
            continue  # the name of a kind that the value might have been of
        if not _NAME.fullmatch(str(part)):
            break  # the sender's own text
        path.append(str(part))
    return path


def _holds(body: object, part: str | int) -> bool:
    if isinstance(body, list):  # which may be of millions
        return isinstance(part, int) and part < len(body)
    return isinstance(body, dict) and part in body


def _message(error: Mapping[str, Any]) -> str:
    if error["type"] == "missing":
        return "is missing" if len(error["loc"]) > 1 else "the body is missing; send JSON"
    if error["type"] == "extra_forbidden":
        return "is not a known field"
    if error["type"] == "model_attributes_type":
        return "expected a JSON object"
    return _SUBJECT.sub("", str(error["msg"]))
