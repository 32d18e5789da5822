"""Error responses: a status, a message and the field at fault; never text from the request."""

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

from redraft.errors import LockedError, NoAnswerError, PairsError, RedraftError, StoreError
from redraft.server import responses
from redraft.server.http.batching import OverloadedError
from redraft.server.http.model_pool import NotReadyError, TimeLimitError, UnknownModelError

log = logging.getLogger(__name__)

STATUSES: dict[type[RedraftError], int] = {
    UnknownModelError: 404,
    NoAnswerError: 404,
    NotReadyError: 503,
    OverloadedError: 503,
    TimeLimitError: 504,
    PairsError: 409,
}
"""Status codes of errors without a field; an error with a field is 422."""

_LOGGED_ONLY: dict[type[RedraftError], str] = {
    LockedError: "another program is changing this model; retry soon",
    StoreError: "the store of the examples cannot be reached; retry soon",
}
"""Messages that hide errors which name a folder, a process or the address of the store."""

_NAME = re.compile(r"[\w.-]{1,64}")
_SUBJECT = re.compile(r"^(Value error, |\w+ (?=should ))")
_STANDARD = {
    400: "the body cannot be read; send JSON",
    404: "no such path; see /openapi.json",
    405: "this path does not take this method; see /openapi.json",
    415: "Content-Type: expected application/json",
}


def error_response(
    status: int,
    message: str,
    *,
    field: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Return a JSON response with this status, message and `field`."""
    body = responses.ErrorResponse(error=responses.ErrorDetail(message=message, field=field))
    retry = {"Retry-After": "1"} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
    return JSONResponse(body.model_dump(mode="json"), status, {**retry, **(headers or {})})


def internal_error(error: BaseException) -> JSONResponse:
    """Log an unexpected error and return a response with its id."""
    identity = log_error(error)
    return error_response(
        500, f"internal error; the server's log has details under the id {identity}"
    )


def log_error(error: BaseException) -> str:
    """Log the type and the traceback of an unexpected error and return its id in the log."""
    identity = secrets.token_hex(4)
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    lines = " < ".join(f"{frame.filename}:{frame.lineno}" for frame in reversed(frames))
    # the error's text may contain user input
    reason = f" ({error.strerror})" if isinstance(error, OSError) and error.strerror else ""
    log.error("error %s: %s%s at %s", identity, type(error).__name__, reason, lines)
    return identity


def install(app: FastAPI) -> None:
    """Register the exception handlers, so that all errors have the same format."""
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RedraftError, _redraft_error)


async def _validation_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    if error.errors()[0]["type"] == "json_invalid":
        position = error.errors()[0]["loc"][-1]
        return error_response(400, f"the body is not JSON (at character {position})")
    field, message = describe(error.errors(), error.body)
    return error_response(422, f"{field}: {message}" if field else message, field=field)


async def _http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    message = _STANDARD.get(error.status_code, HTTPStatus(error.status_code).phrase)
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        # the router lists only the methods of the first route with this path
        methods = request.app.openapi()["paths"].get(request.url.path, {})
        headers |= {"Allow": ", ".join(methods).upper()} if methods else {}
    return error_response(error.status_code, message, headers=headers)


async def _redraft_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RedraftError)
    field = getattr(error, "field", None)
    if field is not None:
        return error_response(422, f"{field}: {error}", field=field)
    for error_type, message in _LOGGED_ONLY.items():
        if isinstance(error, error_type):
            log.error("%s", error)
            return error_response(503, message)
    for error_type, status in STATUSES.items():
        if isinstance(error, error_type):
            return error_response(status, str(error))
    return internal_error(error)


def describe(errors: Sequence[Any], body: object) -> tuple[str | None, str]:
    """Return the first invalid field and what is wrong with it, without the value.

    For a union Pydantic reports the errors of every variant. The most useful are those of the
    closest variant: the deepest ones, or else those that do not concern the type.
    """
    paths = [_path(error, body) for error in errors]
    first = paths[0]
    related = [i for i, path in enumerate(paths) if path[: len(first)] == first]
    max_depth = max(len(paths[i]) for i in related)
    deepest = [i for i in related if len(paths[i]) == max_depth]
    useful = [i for i in deepest if not errors[i]["type"].endswith("_type")] or deepest
    messages = dict.fromkeys(_message(errors[i]) for i in useful)
    return ".".join(paths[useful[0]]) or None, " or ".join(messages)


def _path(error: Mapping[str, Any], body: Any) -> list[str]:
    """Return the path of the invalid value, without the names of union variants."""
    source, *parts = error["loc"]
    if source != "body":
        return [str(part) for part in parts if _NAME.fullmatch(str(part))]
    path = []
    for i, part in enumerate(parts):
        if _contains(body, part):
            body = body[part]
        elif not (error["type"] == "missing" and i == len(parts) - 1):
            continue  # the name of a union variant
        if not _NAME.fullmatch(str(part)):
            break  # arbitrary text from the client
        path.append(str(part))
    return path


def _contains(body: object, part: str | int) -> bool:
    if isinstance(body, list):  # `part in body` would scan up to millions of items
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
