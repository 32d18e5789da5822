"""A client of OpenAI-compatible endpoints: completions and chat, streamed, within a time limit.

Ollama, llama.cpp, LM Studio, vLLM and remote services speak this protocol. Errors and logs have
neither the key nor any text of a prompt or an answer.
"""

import json
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from redraft.errors import LmError, MissingExtraError, RedraftError, listed
from redraft.lm.address import KEY, LmAddress
from redraft.lm.prompt import Prompt, estimated_tokens

try:
    import httpx
except ImportError as error:
    raise MissingExtraError("httpx", extra="lm", purpose="a language model") from error

_LOG = logging.getLogger(__name__)

TIME_LIMIT = 60.0
"""Seconds for an answer, with all retries."""

RETRIES = 2
BACKOFF = 0.5
"""Seconds before the first retry; each further one waits twice as long."""

PAUSE = 30.0
"""Seconds without requests after a fault: a server that is down must not slow every answer."""

CONNECT_LIMIT = 5.0
LARGEST_RESPONSE = 1 << 22
_IGNORED = (b":", b"event:", b"id:", b"retry:")
"""Beginnings of lines of a stream that carry no data."""

Result = TypeVar("Result")


class _RetryableError(LmError):
    """A fault that may pass; the server may say after how many seconds."""

    def __init__(self, message: str, *, seconds: float | None = None) -> None:
        super().__init__(message)
        self.seconds = seconds


@dataclass(frozen=True)
class LmAnswer:
    """A generated text, its log-probability if the endpoint gives one, and if it came to an end.

    `tokens` are those of prompt and text; 0 if the endpoint does not tell.
    """

    text: str
    log_prob: float | None
    is_complete: bool
    tokens: int = 0


class LmClient:
    """A client of the endpoint at `address`; thread-safe.

    `requests` is the most that it sends, retries included; `sent` counts them. `tokens` counts
    those of prompts and answers, estimated where the endpoint does not tell.
    """

    def __init__(
        self,
        address: LmAddress,
        *,
        time_limit: float = TIME_LIMIT,
        requests: int | None = None,
        backoff: float = BACKOFF,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        key = address.key(environment)
        self.address = address
        self.sent = self.tokens = 0
        self._time_limit, self._requests, self._backoff = time_limit, requests, backoff
        self._fault: tuple[float, str] = (0.0, "")
        self._warned = set[str]()
        self._http = httpx.Client(
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx.Timeout(time_limit, connect=min(CONNECT_LIMIT, time_limit)),
            trust_env=not address.is_local,  # a proxy is not local
        )

    def models(self) -> list[str]:
        """Return the names of the endpoint's models."""
        response = self._bounded(lambda deadline: self._retried(self._get_models, deadline))
        try:
            return [str(row["id"]) for row in json.loads(response)["data"]]
        except (ValueError, LookupError, TypeError) as error:
            raise self._error("sent something else than a list of models") from error

    def find_model(self, name: str | None) -> str:
        """Return `name`, or the only model that the endpoint has."""
        if name is not None:
            return name
        models = self.models()
        if len(models) == 1:
            return models[0]
        raise LmError(
            f"{self.address.url}: choose one of its models with --lm-model: "
            f"{listed(models) if models else 'it lists none'}"
        )

    def generate(
        self, prompt: Prompt, *, model: str, max_tokens: int, is_chat: bool = False
    ) -> LmAnswer:
        """Return the most probable continuation of a prompt; raise an LmError on any fault."""
        until, message = self._fault
        if time.monotonic() < until:
            raise LmError(message)
        body: dict[str, Any] = {
            "model": model,
            "max_tokens": max_tokens,
            "temperature": 0,
            "stop": list(prompt.stop),
            "stream": True,
        }
        if is_chat:
            path, body = "/chat/completions", {**body, "messages": list(prompt.messages)}
            body["logprobs"] = True
        else:
            path, body = "/completions", {**body, "prompt": prompt.text, "logprobs": 1}
        try:
            answer = self._bounded(
                lambda deadline: self._retried(
                    lambda deadline: self._generate(path, body, deadline), deadline
                )
            )
        except LmError as error:
            self._fault = (time.monotonic() + PAUSE, str(error))
            raise
        self.tokens += answer.tokens or prompt.tokens + estimated_tokens(answer.text)
        return answer

    def warn(self, error: RedraftError) -> None:
        """Log why there is no answer of the language model, each reason once."""
        if str(error) not in self._warned:
            self._warned.add(str(error))
            _LOG.warning("language model: %s; answering without it", error)

    def __enter__(self) -> "LmClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _bounded(self, call: Callable[[float], Result]) -> Result:
        """Return the result of `call`, which gets the deadline, or raise an LmError at that time.

        httpx limits the time between two bytes, not that of a response. The thread ends by itself.
        """
        deadline = time.monotonic() + self._time_limit
        results: queue.SimpleQueue[Result | Exception] = queue.SimpleQueue()

        def run() -> None:
            try:
                results.put(call(deadline))
            except Exception as error:
                results.put(error)

        threading.Thread(target=run, daemon=True).start()
        try:
            result = results.get(timeout=self._time_limit)
        except queue.Empty:
            raise self._late() from None
        if isinstance(result, Exception):
            raise result
        return result

    def _retried(self, call: Callable[[float], Result], deadline: float) -> Result:
        """Call until it succeeds, waiting longer each time; other errors are not retried."""
        for attempt in range(RETRIES + 1):
            if self._requests is not None and self.sent >= self._requests:
                raise LmError(f"its limit of {self._requests:,} requests is used up")
            self.sent += 1
            try:
                return call(deadline)
            except _RetryableError as error:
                wait = self._backoff * 2**attempt if error.seconds is None else error.seconds
                if attempt == RETRIES or time.monotonic() + wait > deadline:
                    raise LmError(str(error)) from error
                time.sleep(wait)
        raise AssertionError("unreachable")

    def _get_models(self, deadline: float) -> bytes:
        return b"".join(self._read("GET", "/models", None, deadline))

    def _generate(self, path: str, body: Mapping[str, Any], deadline: float) -> LmAnswer:
        generation = _Stream(tuple(body["stop"]))
        buffered = b""
        for chunk in self._read("POST", path, body, deadline):
            buffered += chunk
            if buffered.lstrip().startswith(b"{"):
                continue  # a server that does not stream
            *lines, buffered = buffered.split(b"\n")
            for line in lines:
                self._take(generation, line)
            if generation.is_done:
                break
        self._take(generation, buffered)
        if not generation.is_done:
            raise _RetryableError(f"{self.address.url}: its answer broke off")
        return generation.finished()

    def _take(self, generation: "_Stream", line: bytes) -> None:
        """Read an event of a stream, or a whole response."""
        line = line.strip()
        if generation.is_done or not line or line.startswith(_IGNORED):
            return
        data = line.removeprefix(b"data:").strip()
        if data == b"[DONE]":
            generation.is_done = True
            return
        try:
            generation.add(json.loads(data), is_whole=not line.startswith(b"data:"))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise self._error("sent something else than a completion") from error

    def _read(
        self, method: str, path: str, body: Mapping[str, Any] | None, deadline: float
    ) -> Iterator[bytes]:
        """Yield the bytes of a response until the deadline."""
        size = 0
        try:
            with self._http.stream(method, self.address.url + path, json=body) as response:
                self._check(response, path)
                for chunk in response.iter_bytes():
                    size += len(chunk)
                    if size > LARGEST_RESPONSE:
                        raise self._error(f"sent more than {LARGEST_RESPONSE:,} bytes")
                    if time.monotonic() > deadline:
                        raise self._late()
                    yield chunk
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise _RetryableError(
                f"{self.address.url}: nothing answers there; start the server, or check the address"
            ) from error
        except httpx.TimeoutException as error:
            raise self._late() from error  # the same question would take as long again
        except httpx.HTTPError as error:
            raise _RetryableError(f"{self.address.url}: its answer broke off") from error

    def _check(self, response: httpx.Response, path: str) -> None:
        """Raise the error of a status but 200, without the body: it may hold inputs."""
        status = response.status_code
        if status == 200:
            return
        said = f"{self.address.url}: answered with status {status}"
        if status == 429 or status >= 500:
            seconds = response.headers.get("Retry-After", "")
            raise _RetryableError(said, seconds=float(seconds) if seconds.isdigit() else None)
        hints = {
            401: f"; put its key into {KEY}",
            403: f"; put its key into {KEY}",
            404: "; check the address and --lm-model"
            + (", or try --lm-chat" if path == "/completions" else ""),
            400: "; check --lm-model and --lm-context",
        }
        raise LmError(said + hints.get(status, ""))

    def _late(self) -> LmError:
        limit = f"no answer within {self._time_limit:g} s"
        return self._error(f"{limit}; raise --lm-time-limit, or take a smaller model")

    def _error(self, what: str) -> LmError:
        return LmError(f"{self.address.url}: {what}")


class _Stream:
    """Collects the events of a completion, and cuts the text at a stop sequence."""

    def __init__(self, stop: tuple[str, ...]) -> None:
        self.is_done = False
        self._stop = stop
        self._text = ""
        self._log_prob: float | None = None
        self._is_complete = False
        self._tokens = 0

    def add(self, event: Any, *, is_whole: bool) -> None:
        """Add an event; raise a LookupError or a TypeError if it is not one."""
        if "error" in event:
            raise LookupError("an error")
        self._tokens = int((event.get("usage") or {}).get("total_tokens") or self._tokens)
        choices = event["choices"]
        if not choices:
            return  # the usage, after the last token
        choice = choices[0]
        message = choice.get("delta" if not is_whole else "message") or {}
        self._text += choice.get("text") or message.get("content") or ""
        for log_prob in _log_probs(choice.get("logprobs")):
            self._log_prob = (self._log_prob or 0.0) + float(log_prob)
        ends = [end for stop in self._stop if (end := self._text.lstrip().find(stop)) >= 0]
        if ends:
            self._text = self._text.lstrip()[: min(ends)]
        if ends or is_whole or choice.get("finish_reason"):
            self.is_done = True
            self._is_complete = bool(ends) or choice.get("finish_reason") != "length"

    def finished(self) -> LmAnswer:
        """Return the text without white space around it."""
        return LmAnswer(self._text.strip(), self._log_prob, self._is_complete, self._tokens)


def _log_probs(logprobs: Any) -> list[float]:
    """Return the log-probabilities of an event, in the form of chats or of completions."""
    if not logprobs:
        return []
    if logprobs.get("content"):
        return [token["logprob"] for token in logprobs["content"]]
    return [value for value in logprobs.get("token_logprobs") or [] if value is not None]
