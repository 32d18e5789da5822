"""Load on a server, from a process of its own: a plan on stdin, what came of it on stdout.

Every connection asks one request after another. Knows no model and nothing of the library, so
that it costs the server as little of the machine as it can.
"""

import asyncio
import json
import sys
import time
from dataclasses import asdict, dataclass, field
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Request:
    """A body for a path; with `names`, it is malformed, and the refusal must name this."""

    path: str
    body: str
    names: str = ""


@dataclass(frozen=True)
class Plan:
    """What each connection asks, and until when it begins again; for 0 seconds it asks once."""

    url: str
    sessions: list[list[Request]]
    seconds: float = 0.0

    @classmethod
    def read(cls, text: str) -> "Plan":
        """The plan that was written as JSON."""
        plan = json.loads(text)
        sessions = [[Request(**each) for each in session] for session in plan["sessions"]]
        return cls(plan["url"], sessions, plan["seconds"])


@dataclass
class Outcome:
    """How long it took, how long each answer took in ms, and what was not as it should be."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)
    wrong: int = 0

    def note(self, request: Request, status: int, answer: bytes, latency: float) -> None:
        """Count an answer."""
        self.latencies.append(latency)
        self.statuses[status] = self.statuses.get(status, 0) + 1
        is_named = 400 <= status < 500 and request.names in json.loads(answer)["error"]["message"]
        self.wrong += not is_named if request.names else status != 200


async def run(plan: Plan) -> Outcome:
    """Ask all that is planned."""
    outcome = Outcome()
    started = time.perf_counter()
    deadline = started + plan.seconds
    await asyncio.gather(
        *(_connect(plan, at, deadline, outcome) for at in range(len(plan.sessions)))
    )
    outcome.seconds = time.perf_counter() - started
    return outcome


async def _connect(plan: Plan, at: int, deadline: float, outcome: Outcome) -> None:
    address = urlsplit(plan.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    while True:
        for request in plan.sessions[at]:
            began = time.perf_counter()
            if plan.seconds and began > deadline:
                break
            status, answer = await _ask(reader, writer, request)
            outcome.note(request, status, answer, 1000 * (time.perf_counter() - began))
        if time.perf_counter() > deadline:
            break
    writer.close()
    await writer.wait_closed()


async def _ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: Request
) -> tuple[int, bytes]:
    body = request.body.encode()
    head = (
        f"POST {request.path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    status, length = 0, 0
    for line in (await reader.readuntil(b"\r\n\r\n")).decode().splitlines():
        name, _, value = line.partition(":")
        if not status:
            status = int(line.split()[1])
        elif name.lower() == "content-length":
            length = int(value)
    return status, await reader.readexactly(length)


if __name__ == "__main__":
    print(json.dumps(asdict(asyncio.run(run(Plan.read(sys.stdin.read()))))))
