"""A small HTTP server that answers like an OpenAI-compatible endpoint, or fails in some way."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[dict[str, Any]], str]
"""Returns the text of a completion for the body of a request."""


@dataclass
class Endpoint:
    """The address of a running server, what it was asked, and the faults that come next.

    A fault is one of the names in `Handler`, or a status such as "500"; "" is a good answer.
    """

    url: str = ""
    answer: Answer = lambda _: "fine"
    faults: list[str] = field(default_factory=list)
    always: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    log_prob: float | None = -0.5
    released: threading.Event = field(default_factory=threading.Event)
    hung_up: int = 0  # clients that closed the connection before the answer was over

    def fault(self) -> str:
        """Return the fault of the next response."""
        return self.faults.pop(0) if self.faults else self.always


@contextmanager
def endpoint(answer: Answer = lambda _: "fine", **settings: Any) -> Iterator[Endpoint]:
    """Run a server for the block."""
    state = Endpoint(answer=answer, **settings)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

        def do_GET(self) -> None:
            self._whole({"data": [{"id": "tiny"}]})

        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            body = json.loads(self.rfile.read(size))
            state.bodies.append(body)
            state.headers.append(dict(self.headers))
            fault = state.fault()
            if fault.isdigit():
                text = json.dumps({"error": {"message": f"cannot answer {body}"}}).encode()
                self.send_response(int(fault))
                if fault == "429":
                    self.send_header("Retry-After", "0")
                self._end(text)
            elif fault in ("", "break", "trickle", "wrong event"):
                self._stream(body, fault)
            else:
                getattr(self, fault.replace(" ", "_"))(body)

        def silent(self, _: Any) -> None:
            """Accept the request and say nothing."""
            state.released.wait(10)
            self.close_connection = True

        def hang_up(self, _: Any) -> None:
            """Close the connection without an answer."""
            self.close_connection = True

        def html(self, _: Any) -> None:
            self.send_response(200)
            self._end(b"<html>Sign in</html>")

        def half_json(self, _: Any) -> None:
            self.send_response(200)
            self._end(b'{"choices": [{"text": "SELECT')

        def other_json(self, _: Any) -> None:
            self._whole({"object": "list", "data": []})

        def error_event(self, _: Any) -> None:
            self.send_response(200)
            self._end(b'data: {"error": {"message": "out of memory"}}\n\n')

        def unstreamed(self, body: Any) -> None:
            """Answer with one JSON object over several lines, as servers without streams do."""
            choice = {"text": " " + state.answer(body), "finish_reason": "stop"}
            self.send_response(200)
            self._end(json.dumps({"choices": [choice]}, indent=2).encode())

        def _whole(self, value: Any) -> None:
            self.send_response(200)
            self._end(json.dumps(value).encode())

        def _end(self, content: bytes) -> None:
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _stream(self, body: Any, fault: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            self.wfile.write(b": ping\n\n")
            words = [" " + word for word in state.answer(body).split(" ")]
            for i, word in enumerate(words):
                self._event(body, {"text": word})
                if fault == "break" and i == 0:
                    return
                if fault == "wrong event":
                    self.wfile.write(b"data: [1, 2\n\n")
                while fault == "trickle" and not state.released.wait(0.01):
                    self.wfile.write(b":")
                    self.wfile.flush()
            self._event(body, {"text": "", "finish_reason": "stop"})
            self.wfile.write(b"data: [DONE]\n\n")

        def _event(self, body: Any, choice: dict[str, Any]) -> None:
            text = choice.pop("text")
            if "messages" in body:
                choice["delta"] = {"content": text}
                logprobs: Any = {"content": [{"token": text, "logprob": state.log_prob}]}
            else:
                choice["text"] = text
                logprobs = {"tokens": [text], "token_logprobs": [state.log_prob]}
            if text and state.log_prob is not None:
                choice["logprobs"] = logprobs
            self.wfile.write(f"data: {json.dumps({'choices': [choice]})}\n\n".encode())
            self.wfile.flush()

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """Count clients that hang up."""
            state.hung_up += 1

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield state
    finally:
        state.released.set()
        server.shutdown()
        server.server_close()


def question(body: dict[str, Any]) -> str:
    """Return the last question of a request in the default template."""
    text = body["prompt"] if "prompt" in body else body["messages"][-1]["content"]
    return str(text).rpartition("Input: ")[2].partition("\nOutput:")[0]


def elapsed(start: float) -> float:
    """Return the seconds since `start`."""
    return time.monotonic() - start
