"""A typed client of the server: the library's questions, asked over HTTP. Knows the wire only."""

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

from redraft.data.example import Example
from redraft.errors import MissingExtraError, NoAnswerError, PairsError, RedraftError

try:
    import httpx
    from pydantic import ValidationError

    from redraft.serving import schema
except ImportError as error:
    raise MissingExtraError(
        error.name or "httpx", extra="serve", purpose="redraft.Client"
    ) from error

Input = str | Mapping[str, str]
Response = TypeVar("Response", bound=schema.Wire)


class RefusedError(RedraftError):
    """A request that the server refused: why, the field it is about, and the HTTP status."""

    def __init__(self, message: str, *, status: int, field: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.field = field


class UnreachableError(RedraftError):
    """A server that does not answer."""


class Client:
    """A server at an address; `model` is the name that is asked where a question names none."""

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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave the server."""
        self._http.close()

    def models(self) -> list[schema.ModelInfo]:
        """The models that answer."""
        return self._ask("GET", "/v1/models", schema.ModelsResponse).models

    def predict(
        self,
        inputs: Sequence[Input],
        k: int = 1,
        *,
        where: Mapping[str, Any] | None = None,
        prototype: str | None = None,
    ) -> list[list[schema.Answer]]:
        """At most k answers to each input, best first; with `prototype` edited from that example.

        More inputs than one request may have are asked in several.
        """
        found: list[list[schema.Answer]] = []
        for some in _portions(inputs):
            body = {"inputs": some, "k": k, "where": _plain(where), "prototype": prototype}
            found += self._post("/v1/predict", body, schema.PredictResponse).results
        return found

    def predict_one(self, x: Input, *, where: Mapping[str, Any] | None = None) -> schema.Answer:
        """The best answer to one input."""
        [answers] = self.predict([x], where=where)
        if not answers:
            raise NoAnswerError
        return answers[0]

    def retrieve(
        self, inputs: Sequence[Input], k: int = 5, *, where: Mapping[str, Any] | None = None
    ) -> list[list[schema.ShownPrototype]]:
        """At most k prototypes for each input, nearest first."""
        found: list[list[schema.ShownPrototype]] = []
        for some in _portions(inputs):
            body = {"inputs": some, "k": k, "where": _plain(where)}
            found += self._post("/v1/retrieve", body, schema.RetrieveResponse).results
        return found

    def complete(self, x: Input, prefix: str = "", k: int = 5) -> list[schema.ShownCompletion]:
        """At most k ways to go on after the prefix of the output for an input."""
        body = {"x": _value(x), "prefix": prefix, "k": k}
        return self._post("/v1/complete", body, schema.CompleteResponse).completions

    def complete_buffer(self, text: str, offset: int, k: int = 5) -> list[schema.ShownCompletion]:
        """At most k ways to go on at a cursor of a Python buffer."""
        body = {"text": text, "offset": offset, "k": k}
        return self._post("/v1/complete", body, schema.CompleteResponse).completions

    def add(self, examples: Iterable[Example]) -> int:
        """Let these examples be retrieved; says how many came."""
        rows = [{**each.to_json(), "x": _value(each.x)} for each in examples]
        changed = 0
        for start in range(0, len(rows), schema.MOST_EXAMPLES):
            body = {"examples": rows[start : start + schema.MOST_EXAMPLES]}
            changed += self._post("/v1/examples", body, schema.ExamplesResponse).changed
        return changed

    def remove(self, ids: Sequence[str] = (), *, where: Mapping[str, Any] | None = None) -> int:
        """Forget the examples with these ids, and those whose meta has these values.

        More ids than one request may have are removed in several.
        """
        named, most = list(dict.fromkeys(ids)), schema.MOST_EXAMPLES
        filters = [("where", f"{key}={value}") for key, value in (where or {}).items()]
        changed = 0
        while len(named) > most:  # what the filters find goes last: an id must still be known
            changed += self._remove([("id", each) for each in named[:most]])
            named = named[most:]
        return changed + self._remove([*(("id", each) for each in named), *filters])

    def _remove(self, query: list[tuple[str, str]]) -> int:
        asked = query if self.model is None else [*query, ("model", self.model)]
        return self._ask("DELETE", "/v1/examples", schema.ExamplesResponse, params=asked).changed

    def _post(self, path: str, body: Mapping[str, Any], kind: type[Response]) -> Response:
        return self._ask("POST", path, kind, json={**body, "model": self.model})

    def _ask(self, method: str, path: str, kind: type[Response], **sent: Any) -> Response:
        try:
            response = self._http.request(method, path, **sent)
        except httpx.TransportError as error:
            raise UnreachableError(
                f"{self._http.base_url}: no answer ({type(error).__name__}); "
                "start it with `redraft serve`, or raise timeout"
            ) from error
        except ValueError as error:
            raise PairsError(
                f"{path}: cannot be sent as JSON ({type(error).__name__}); "
                "give whole characters and finite numbers"
            ) from error
        if response.is_error:
            raise _refusal(response)
        try:
            return kind.model_validate_json(response.content)
        except ValidationError as error:
            raise _foreign(response) from error


def _refusal(response: httpx.Response) -> RedraftError:
    try:
        problem = schema.ErrorResponse.model_validate_json(response.content).error
    except ValidationError:
        return _foreign(response)
    return RefusedError(problem.message, status=response.status_code, field=problem.field)


def _foreign(response: httpx.Response) -> RedraftError:
    return RefusedError(
        f"{response.url}: status {response.status_code}, but not an answer of `redraft serve` of "
        "this version; check the address",
        status=response.status_code,
    )


def _portions(inputs: Sequence[Input]) -> Iterable[list[str | dict[str, str]]]:
    values = [_value(x) for x in inputs]
    most = schema.MOST_INPUTS
    return (values[start : start + most] for start in range(0, len(values), most))


def _value(x: Input) -> str | dict[str, str]:
    return x if isinstance(x, str) else dict(x)


def _plain(where: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if where is None else dict(where)
