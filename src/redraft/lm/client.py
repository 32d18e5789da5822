"""A client of OpenAI-compatible endpoints: completions and chat, streamed, within a time limit.

Ollama, llama.cpp, LM Studio, vLLM and remote services speak this protocol. Errors and logs have
neither the key nor any text of a prompt or an answer.
"""

import asyncio
import json
import logging
import os
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import aclosing
from functools import cached_property
from typing import Any, TypeVar, cast

from redraft.errors import LmError, LmTimeoutError, MissingExtraError, RedraftError, listed
from redraft.lm.address import KEY, LmAddress
from redraft.lm.prompt import Prompt, estimated_tokens
from redraft.lm.stream import Enough, LmAnswer, LmStream

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
        self._starting = threading.Lock()
        self._http = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx.Timeout(time_limit, connect=min(CONNECT_LIMIT, time_limit)),
            trust_env=not address.is_local,  # a proxy is not local
        )

    def models(self) -> list[str]:
        """Return the names of the endpoint's models."""
        response = _result(self._run(self._bounded(self._get_models)))
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
        self,
        prompt: Prompt,
        *,
        model: str,
        max_tokens: int,
        is_chat: bool = False,
        enough: Enough = lambda _: False,
    ) -> LmAnswer:
        """Return the most probable continuation of a prompt; raise an LmError on any fault.

        `enough` may end the generation early; it is called in another thread.
        """
        return _result(
            self.start(prompt, model=model, max_tokens=max_tokens, is_chat=is_chat, enough=enough)
        )

    def start(
        self,
        prompt: Prompt,
        *,
        model: str,
        max_tokens: int,
        is_chat: bool = False,
        enough: Enough = lambda _: False,
        delay: float = 0.0,
    ) -> "Future[LmAnswer]":
        """Start to continue a prompt after `delay` seconds.

        The result is an answer or an LmError. `enough` may end the generation early; it is called
        in another thread. Cancelling the future closes the connection, so that the server stops.
        """
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

        async def answer() -> LmAnswer:
            await asyncio.sleep(delay)
            self._check_pause()
            try:
                answer = await self._bounded(lambda: self._generate(path, body, enough))
            except LmError as error:
                self._fault = (time.monotonic() + PAUSE, str(error))
                raise
            self.tokens += answer.tokens or prompt.tokens + estimated_tokens(answer.text)
            return answer

        return self._run(answer())

    def resume(self) -> None:
        """Forget the last fault, so that the next question is asked without a pause."""
        self._fault = (0.0, "")

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
        """Close the connections; requests that are under way are cancelled."""
        if "_loop" not in self.__dict__:
            return

        async def cancel_all() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._http.aclose()
            await asyncio.get_running_loop().shutdown_asyncgens()

        self._run(cancel_all()).result()
        loop, thread = self.__dict__.pop("_loop")
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    @cached_property
    def _loop(self) -> tuple[asyncio.AbstractEventLoop, threading.Thread]:
        """The event loop of all requests, and its thread, started by the first request."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="language model", daemon=True)
        thread.start()
        return loop, thread

    def _run(self, work: Coroutine[Any, Any, Result]) -> "Future[Result]":
        with self._starting:
            loop, _ = self._loop
        return asyncio.run_coroutine_threadsafe(work, loop)

    def _check_pause(self) -> None:
        until, message = self._fault
        if time.monotonic() < until:
            raise LmError(message)

    async def _bounded(self, call: Callable[[], Awaitable[Result]]) -> Result:
        """Return the result of `call`, retried, or raise an LmError at the time limit.

        httpx limits the time between two bytes, not that of a response.
        """
        try:
            async with asyncio.timeout(self._time_limit):
                return await self._retried(call, time.monotonic() + self._time_limit)
        except TimeoutError:
            raise self._late() from None

    async def _retried(self, call: Callable[[], Awaitable[Result]], deadline: float) -> Result:
        """Call until it succeeds, waiting longer each time; other errors are not retried."""
        for attempt in range(RETRIES + 1):
            if self._requests is not None and self.sent >= self._requests:
                raise LmError(f"its limit of {self._requests:,} requests is used up")
            self.sent += 1
            try:
                return await call()
            except _RetryableError as error:
                wait = self._backoff * 2**attempt if error.seconds is None else error.seconds
                if attempt == RETRIES or time.monotonic() + wait > deadline:
                    raise LmError(str(error)) from error
                await asyncio.sleep(wait)
        raise AssertionError("unreachable")

    async def _get_models(self) -> bytes:
        async with aclosing(self._read("GET", "/models", None)) as chunks:
            return b"".join([chunk async for chunk in chunks])

    async def _generate(self, path: str, body: Mapping[str, Any], enough: Enough) -> LmAnswer:
        generation = LmStream(body["stop"], enough)
        buffered = b""
        async with aclosing(self._read("POST", path, body)) as chunks:
            async for chunk in chunks:
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

    def _take(self, generation: LmStream, line: bytes) -> None:
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

    async def _read(
        self, method: str, path: str, body: Mapping[str, Any] | None
    ) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of a response."""
        size = 0
        try:
            async with self._http.stream(method, self.address.url + path, json=body) as response:
                self._check(response, path)
                generator = cast(AsyncGenerator[bytes, None], response.aiter_bytes())
                async with aclosing(generator) as chunks:
                    async for chunk in chunks:
                        size += len(chunk)
                        if size > LARGEST_RESPONSE:
                            raise self._error(f"sent more than {LARGEST_RESPONSE:,} bytes")
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

    def _late(self) -> LmTimeoutError:
        limit = f"{self.address.url}: no answer within {self._time_limit:g} s"
        return LmTimeoutError(f"{limit}; raise --lm-time-limit, or take a smaller model")

    def _error(self, what: str) -> LmError:
        return LmError(f"{self.address.url}: {what}")


def _result(future: "Future[Result]") -> Result:
    """Wait for a result; an interrupt cancels the request."""
    try:
        return future.result()
    finally:
        future.cancel()
