"""Latency of the endpoints for editor plug-ins, `/infill` and `/v1/completions`, over HTTP.

Cursors are anywhere in the standard library, whose functions are the index. The
excerpts, 16 of 64 lines per request, are as llama.vim sends them.
"""

import random
import sysconfig
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import numpy as np

from benchmarks.measurement import Measurement
from benchmarks.serving import PACKAGES, serving
from redraft.completion.project import Project, empty_model, index_project

CURSORS, SEED = 200, 0
LINES_BEFORE, LINES_AFTER = 256, 64
EXCERPTS, EXCERPT_LINES = 16, 64


def run() -> Iterator[Measurement]:
    """Measure each kind of request at the same cursors."""
    library = Path(sysconfig.get_paths()["stdlib"])
    project = Project.read([library / name for name in PACKAGES])
    model, _ = index_project(empty_model(), project)
    files = [path for name in PACKAGES for path in sorted((library / name).rglob("*.py"))]
    requests = list(_requests(files, random.Random(SEED)))
    count = len(model.retriever.examples)
    with TemporaryDirectory() as folder:
        model.save(Path(folder) / "code")
        with serving(Path(folder) / "code") as server, httpx.Client(base_url=server.url) as client:
            for name, path, bodies in _kinds(requests):
                taken = [_milliseconds(client, path, body) for body in bodies]
                label = f"{name}, {count:,} functions, {len(taken)} cursors"
                yield Measurement(f"{label}, median", float(np.median(taken)), "ms")
                yield Measurement(
                    f"{label}, 99th percentile", float(np.quantile(taken, 0.99)), "ms"
                )


def _kinds(
    requests: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    excerpts = requests[0]["input_extra"]
    plain = [{**request, "input_extra": []} for request in requests]
    yield "/infill", "/infill", plain
    same = [{**request, "input_extra": excerpts} for request in requests]
    yield "/infill with the same 16 excerpts", "/infill", same
    yield "/infill with 16 new excerpts each time", "/infill", [dict(one) for one in requests]
    prompts = [
        f"<|fim_prefix|>{one['input_prefix']}{one['prompt']}<|fim_suffix|>{one['input_suffix']}"
        "<|fim_middle|>"
        for one in requests
    ]
    yield "/v1/completions, Qwen", "/v1/completions", [{"prompt": prompt} for prompt in prompts]


def _requests(files: Sequence[Path], generator: random.Random) -> Iterator[dict[str, Any]]:
    texts = [path.read_text(errors="replace").split("\n") for path in files]
    texts = [lines for lines in texts if len(lines) > 2 * EXCERPT_LINES]
    for _ in range(CURSORS):
        lines = generator.choice(texts)
        row = generator.randrange(10, len(lines))
        column = generator.randint(0, len(lines[row]))
        yield {
            "input_prefix": "\n".join(lines[max(0, row - LINES_BEFORE) : row]) + "\n",
            "prompt": lines[row][:column],
            "input_suffix": "\n" + "\n".join(lines[row + 1 : row + 1 + LINES_AFTER]),
            "input_extra": [_excerpt(generator.choice(texts), generator) for _ in range(EXCERPTS)],
            "n_predict": 128,
        }


def _excerpt(lines: Sequence[str], generator: random.Random) -> dict[str, str]:
    start = generator.randrange(len(lines) - EXCERPT_LINES)
    return {"text": "\n".join(lines[start : start + EXCERPT_LINES]), "filename": "other.py"}


def _milliseconds(client: httpx.Client, path: str, body: Mapping[str, Any]) -> float:
    started = time.perf_counter()
    client.post(path, json=body).raise_for_status()
    return 1000 * (time.perf_counter() - started)


if __name__ == "__main__":
    for measurement in run():
        print(f"{measurement.name}: {measurement.value:.1f} {measurement.unit}")
