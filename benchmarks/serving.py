"""The server under load from a second process: answers a second and latencies, with predictions
answered together and one by one; then ten thousand mixed requests, one in ten malformed."""

import contextlib
import json
import re
import subprocess
import sys
import sysconfig
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.completion import keystrokes
from benchmarks.measurement import Measurement
from benchmarks.serving_load import Outcome, Plan, Request
from redraft import RetrieveAndEdit
from redraft.completion.project import Project
from redraft.text.tokenizer import Tokenizer, spell
from redraft.training.fit import FitOptions
from redraft.types import Example

PACKAGES = ("asyncio", "email", "http", "json", "logging", "unittest", "urllib")
CONNECTIONS, SECONDS, TRAINED = (1, 8, 64), 4.0, 15.0
MIXED, MIXED_CONNECTIONS, WARM = 10_000, 8, 1_000
WARM_SECONDS = 1.0
START = 60.0


@dataclass(frozen=True)
class Server:
    """A server process and its address."""

    url: str
    pid: int

    def load(self, sessions: Sequence[Sequence[Request]], seconds: float = 0.0) -> Outcome:
        """What comes of these sessions, one for each connection."""
        plan = Plan(self.url, [list(each) for each in sessions], seconds)
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.serving_load"],
            input=json.dumps(asdict(plan)),
            capture_output=True,
            text=True,
            check=True,
        )
        return Outcome(**json.loads(done.stdout))

    @property
    def megabytes(self) -> float:
        """What it holds of memory; 0 where the system does not tell."""
        status = Path(f"/proc/{self.pid}/status")
        found = re.search(r"VmRSS:\s+(\d+)", status.read_text()) if status.exists() else None
        return int(found[1]) / 1000 if found else 0.0


@contextlib.contextmanager
def serving(*arguments: object) -> Iterator[Server]:
    """`redraft serve` in a process of its own, its models loaded."""
    command = [sys.executable, "-m", "redraft", "serve", *map(str, arguments), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found is not None, "the server did not start"
        deadline = time.monotonic() + START
        while not is_ready(found[0]):
            assert time.monotonic() < deadline, "its models were not loaded"
            time.sleep(0.05)
        yield Server(found[0], process.pid)
    finally:
        process.terminate()
        process.communicate()


def is_ready(url: str) -> bool:
    """Whether every model is loaded."""
    try:
        urllib.request.urlopen(f"{url}/readyz").close()
    except urllib.error.HTTPError as error:
        error.close()
        return False
    return True


def run() -> Iterator[Measurement]:
    """Neural predictions and completions under load, and a plain model's mixed requests."""
    library = Path(sysconfig.get_paths()["stdlib"])
    project = Project.read([library / name for name in PACKAGES])
    functions = [each for found in project.files.values() for each in found]
    neural = RetrieveAndEdit.fit(
        sentences(), editor="neural", options=FitOptions(dev=(), budget=TRAINED)
    )
    plain = RetrieveAndEdit.fit(functions, retriever="lexical", editor="verbatim")
    with TemporaryDirectory() as folder:
        neural.save(Path(folder) / "neural")
        plain.save(Path(folder) / "plain")
        yield from under_load(Path(folder) / "neural")
        yield from mixed(Path(folder) / "plain", functions)


def sentences() -> list[Example]:
    """Pairs whose answers are short, so that much of an answer's time is the server's."""
    return [
        Example({"text": f"{verb} the first {count} items of {name}"}, f"{verb}({name}[:{count}])")
        for name in ("cards", "players", "minions", "decks", "turns", "spells", "heroes", "boards")
        for verb in ("sum", "max", "min", "sorted", "list", "len")
        for count in range(1, 9)
    ]


def sessions(verb: str) -> list[list[Request]]:
    """For each connection what it asks, each another beginning of the same requests."""
    asked = []
    for each in sentences():
        tokens = spell(Tokenizer().tokenize(each.y))
        if verb == "predict":
            asked.append(Request("/v1/predict", json.dumps({"inputs": [each.x["text"]]})))
        else:  # the output is typed token by token
            asked += [
                Request("/v1/complete", json.dumps({"x": each.x["text"], "prefix": prefix}))
                for prefix in accumulate(tokens[:-1])
            ]
    step = len(asked) // max(CONNECTIONS)
    return [asked[at * step :] + asked[: at * step] for at in range(max(CONNECTIONS))]


def under_load(folder: Path) -> Iterator[Measurement]:
    """Answers a second and their latencies, the two servers taking turns."""
    with serving(folder, "--no-batching") as alone, serving(folder) as together:
        for verb in ("predict", "complete"):
            asked = sessions(verb)
            for server in (alone, together):
                server.load(asked[:1], WARM_SECONDS)  # the first calls of a process are slower
            for count in CONNECTIONS:
                label = f"serve: {verb}, {count} connection{'s' * (count > 1)}"
                one_by_one = alone.load(asked[:count], SECONDS)
                yield from figures(f"{label}, one by one", one_by_one)
                yield from figures(label, together.load(asked[:count], SECONDS), one_by_one)


def figures(
    label: str, outcome: Outcome, yardstick: Outcome | None = None
) -> Iterator[Measurement]:
    """The rate, beside that of the yardstick, and latencies; all must have been answered."""
    assert not outcome.wrong, f"{label}: {outcome.statuses}"
    ratio = rate(outcome) / rate(yardstick) if yardstick else None
    yield Measurement(label, rate(outcome), "1/s", ratio, "one by one" if yardstick else "")
    quantiles = {"median": 0.5, "99th percentile": 0.99}
    for name, share in quantiles.items():
        value = float(np.quantile(outcome.latencies, share))
        other = float(np.quantile(yardstick.latencies, share)) if yardstick else None
        compared = (value / other, "one by one") if other else (None, "")
        yield Measurement(f"{label}, {name}", value, "ms", *compared)


def rate(outcome: Outcome) -> float:
    """Answers a second."""
    return len(outcome.latencies) / outcome.seconds


def mixed(folder: Path, examples: Sequence[Example]) -> Iterator[Measurement]:
    """What ten thousand requests of all kinds leave behind."""
    with serving(folder) as server:
        server.load(shares(islice(requests(examples), WARM)))
        before = server.megabytes
        outcome = server.load(shares(islice(requests(examples), MIXED)))
        growth = 100 * (server.megabytes / before - 1) if before else 0.0
    label = f"serve: {MIXED:,} mixed requests, one in ten malformed"
    failed = sum(n for status, n in outcome.statuses.items() if int(status) >= 500)
    yield Measurement(f"{label}", rate(outcome), "1/s")
    yield Measurement(f"{label}, 5xx", failed, "answers")
    yield Measurement(f"{label}, wrong or not named", outcome.wrong, "answers")
    yield Measurement(f"{label}, growth of memory", growth, "%")


def shares(asked: Iterator[Request]) -> list[list[Request]]:
    """The requests dealt out to the connections."""
    every = list(asked)
    return [every[at::MIXED_CONNECTIONS] for at in range(MIXED_CONNECTIONS)]


def requests(examples: Sequence[Example]) -> Iterator[Request]:
    """Requests of all kinds without end, every tenth of them malformed."""
    malformed = (
        Request("/v1/predict", '{"inputs": ["a", 5]}', "inputs.1"),
        Request("/v1/predict", '{"inputs": ["a"], "k": "3"}', "k"),
        Request("/v1/predict", '{"inputs": ["only text"]}', "inputs.0"),
        Request("/v1/retrieve", '{"inputs": []}', "inputs"),
        Request("/v1/complete", '{"text": "abc", "offset": 9}', "offset"),
        Request("/v1/examples", '{"examples": [{"x": "a"}]}', "examples.0.y"),
        Request("/v1/completions", '{"prompt": "a", "n": 99}', "n"),
        Request("/v1/predict", '{"inputs": ["a"', "JSON"),
    )
    at = 0
    while True:
        example = examples[at % len(examples)]
        inputs = [dict(example.x)]
        text, cursors = keystrokes(example)
        good = (
            ("/v1/predict", {"inputs": inputs, "k": 1 + at % 3}),
            ("/v1/retrieve", {"inputs": inputs * 2}),
            ("/v1/complete", {"text": text, "offset": cursors[0] if cursors else 0}),
            ("/v1/completions", {"prompt": text, "stream": False}),
        )
        path, body = good[at % len(good)]
        is_bad = at % 10 == 0
        yield malformed[at // 10 % len(malformed)] if is_bad else Request(path, json.dumps(body))
        at += 1
