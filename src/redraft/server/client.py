"""A typed HTTP client for `redraft serve`. Knows only the request and response schemas."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from redraft.errors import MissingExtraError, NoAnswerError, PairsError, RedraftError
from redraft.types import Example

try:
    import httpx
    from pydantic import ValidationError

    from redraft.server import responses, schema
except ImportError as error:
    raise MissingExtraError(
        error.name or "httpx", extra="serve", purpose="redraft.Client"
    ) from error

Input = str | Mapping[str, str]
Item = TypeVar("Item")
Response = TypeVar("Response", bound=schema.Message)


class RefusedError(RedraftError):
    """A request that the server refused, with the HTTP status and the field at fault, if any."""

    def __init__(self, message: str, *, status: int, field: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.field = field


class UnreachableError(RedraftError):
    """The server does not respond."""


class Client:
    """A client of the server at `url`; `model` is the name of the model that all requests use."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        *,
        token: str | None = None,
        model: str | None = None,
        timeout: float = 60.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.model = model
        self._http = httpx.Client(
            base_url=url, headers=headers, timeout=timeout, transport=transport
        )

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def models(self) -> list[responses.ModelInfo]:
        """Return the models that are ready."""
        return self._request("GET", "/v1/models", responses.ModelsResponse).models

    def predict(
        self,
        inputs: Sequence[Input],
        k: int = 1,
        *,
        where: Mapping[str, Any] | None = None,
        prototype: str | None = None,
        min_confidence: float | None = None,
        precision: float | None = None,
    ) -> list[list[responses.CandidateSchema]]:
        """Return at most `k` candidates per input, best first.

        With `prototype`, the id of an example, that example is edited. With `min_confidence` or
        `precision` the list of an input is empty if the model abstains. Long lists of inputs are
        split into several requests.
        """
        options = {
            "k": k,
            "where": dict(where or {}),
            "prototype": prototype,
            "min_confidence": min_confidence,
            "precision": precision,
        }
        results: list[list[responses.CandidateSchema]] = []
        for chunk in _chunks(list(map(_value, inputs)), schema.MAX_INPUTS):
            body = {"inputs": chunk, **options}
            response = self._post("/v1/predict", body, responses.PredictResponse)
            abstained = response.abstained or [False] * len(response.results)
            pairs = zip(response.results, abstained, strict=True)
            results += [[] if abstains else candidates for candidates, abstains in pairs]
        return results

    def predict_one(
        self,
        x: Input,
        *,
        where: Mapping[str, Any] | None = None,
        min_confidence: float | None = None,
        precision: float | None = None,
    ) -> responses.CandidateSchema:
        """Return the best candidate for one input.

        Raises `NoAnswerError` if there is none, or if the model abstains.
        """
        [candidates] = self.predict(
            [x], where=where, min_confidence=min_confidence, precision=precision
        )
        if candidates:
            return candidates[0]
        if min_confidence is not None or precision is not None:
            raise NoAnswerError("the model abstains: its confidence is below the threshold")
        raise NoAnswerError

    def retrieve(
        self, inputs: Sequence[Input], k: int = 5, *, where: Mapping[str, Any] | None = None
    ) -> list[list[responses.PrototypeSchema]]:
        """Return at most `k` prototypes per input, nearest first."""
        results: list[list[responses.PrototypeSchema]] = []
        for chunk in _chunks(list(map(_value, inputs)), schema.MAX_INPUTS):
            body = {"inputs": chunk, "k": k, "where": dict(where or {})}
            results += self._post("/v1/retrieve", body, responses.RetrieveResponse).results
        return results

    def complete(self, x: Input, prefix: str = "", k: int = 5) -> list[responses.CompletionSchema]:
        """Return at most `k` completions of `prefix`, the beginning of the output for `x`."""
        body = {"x": _value(x), "prefix": prefix, "k": k}
        return self._post("/v1/complete", body, responses.CompleteResponse).completions

    def complete_buffer(
        self, text: str, offset: int, k: int = 5, *, file: str | None = None
    ) -> list[responses.CompletionSchema]:
        """Return at most `k` completions at the character `offset` of a Python buffer.

        `file` is the path of the buffer, if it has one.
        """
        body = {"text": text, "offset": offset, "k": k, "file": file}
        return self._post("/v1/complete", body, responses.CompleteResponse).completions

    def add(self, examples: Iterable[Example]) -> int:
        """Add examples to the index and return their number."""
        rows = [{**example.to_json(), "x": _value(example.x)} for example in examples]
        return sum(
            self._post("/v1/examples", {"examples": chunk}, responses.ExamplesResponse).changed
            for chunk in _chunks(rows, schema.MAX_EXAMPLES)
        )

    def remove(self, ids: Sequence[str] = (), *, where: Mapping[str, Any] | None = None) -> int:
        """Remove the examples with these ids or these meta values and return their number.

        Long lists of ids are split into several requests.
        """
        # filters come last: they may match ids, and removing a missing id is an error
        *full, last = _chunks(list(dict.fromkeys(ids)), schema.MAX_EXAMPLES) or [[]]
        filters = [("where", f"{key}={value}") for key, value in (where or {}).items()]
        return sum(self._remove(chunk, []) for chunk in full) + self._remove(last, filters)

    def _remove(self, ids: Sequence[str], filters: Sequence[tuple[str, str]]) -> int:
        params = [*(("id", identity) for identity in ids), *filters]
        params += [("model", self.model)] if self.model is not None else []
        response = self._request(
            "DELETE", "/v1/examples", responses.ExamplesResponse, params=params
        )
        return response.changed

    def _post(self, path: str, body: Mapping[str, Any], kind: type[Response]) -> Response:
        return self._request("POST", path, kind, json={**body, "model": self.model})

    def _request(self, method: str, path: str, kind: type[Response], **content: Any) -> Response:
        try:
            response = self._http.request(method, path, **content)
        except httpx.TransportError as error:
            raise UnreachableError(
                f"{self._http.base_url}: no response ({type(error).__name__}); "
                "start the server with `redraft serve`, or raise timeout"
            ) from error
        except ValueError as error:
            raise PairsError(
                f"{path}: cannot be sent as JSON ({type(error).__name__}); "
                "use valid Unicode and finite numbers"
            ) from error
        try:
            if not response.is_error:
                return kind.model_validate_json(response.content)
            detail = responses.ErrorResponse.model_validate_json(response.content).error
        except ValidationError as error:
            raise RefusedError(
                f"{response.url}: status {response.status_code}, but not a response of this "
                "version of `redraft serve`; check the address",
                status=response.status_code,
            ) from error
        raise RefusedError(detail.message, status=response.status_code, field=detail.field)


def _chunks(values: Sequence[Item], size: int) -> list[Sequence[Item]]:
    return [values[start : start + size] for start in range(0, len(values), size)]


def _value(x: Input) -> str | dict[str, str]:
    return x if isinstance(x, str) else dict(x)
