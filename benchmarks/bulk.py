"""Embedding in one process, and on three Ray nodes of which one is killed in the middle.

`python -m benchmarks.bulk 100000` starts the cluster itself and writes benchmarks/bulk.json. Needs
what `make test-cluster` installs.
"""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from benchmarks.measurement import Measurement, told
from redraft import Example, RetrieveAndEdit
from redraft.config.presets import SMALL
from redraft.data.pairs import write_pairs
from redraft.editing.base import VerbatimEditor
from redraft.models.autoencoder import FieldsEncoder
from redraft.retrieval.dense import TaskRetriever
from redraft.retrieval.encoder import DenseEncoder
from redraft.text.token_encoder import TokenEncoder, TokenEncoderConfig
from redraft.training.retriever_config import default_config
from tests.cluster.ray_cluster import ray_nodes

PAIRS = 100_000
NODES = 3
RESULTS = Path(__file__).parent / "bulk.json"


def pairs(count: int) -> Iterator[Example]:
    """Made-up requests of a dozen words."""
    draw = random.Random(0)
    words = [f"{verb}_{noun}" for verb in ("read", "add", "find") for noun in "abcdefghijklmnop"]
    for _ in range(count):
        used = draw.choices(words, k=draw.randint(4, 16))
        yield Example({"text": " ".join(used)}, f"{used[0]}({used[1]})")


def save_model(folder: Path) -> None:
    """A model with a retriever of the usual size, which nobody trained."""
    examples = list(pairs(100))
    torch.manual_seed(0)
    encoding = TokenEncoder.learn(
        [each.x["text"] for each in examples], TokenEncoderConfig(min_count=1)
    )
    config = default_config(SMALL).network
    network = FieldsEncoder(len(encoding.vocabulary), 1, config).eval()
    encoder = DenseEncoder(network, encoding, ["text"])
    RetrieveAndEdit(TaskRetriever.build(examples, encoder), VerbatimEditor()).save(folder)


def embed(folder: Path, out: str, *options: str) -> "subprocess.Popen[str]":
    """The command, as users start it."""
    command = [sys.executable, "-m", "redraft", "embed", "model", "pairs.jsonl", "-o", out]
    return subprocess.Popen(
        [*command, *options], cwd=folder, stdout=subprocess.PIPE, text=True, env=os.environ
    )


def finished(process: "subprocess.Popen[str]") -> dict[str, int]:
    """What the command tells when it is done."""
    said, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"left with {process.returncode}")
    told: dict[str, int] = json.loads(said)
    return told


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, hidden ones too."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def wait_for_shards(folder: Path, count: int) -> None:
    """Return when so many shards are written."""
    while not folder.exists() or len(list(folder.glob("*.parquet"))) < count:
        time.sleep(0.1)


def run(count: int = PAIRS) -> Iterator[Measurement]:
    """Seconds of both, and whether they wrote the same."""
    name = f"embed {count:,} pairs"
    with TemporaryDirectory() as made:
        folder = Path(made)
        save_model(folder / "model")
        write_pairs(pairs(count), folder / "pairs.jsonl")
        started = time.perf_counter()
        shards = finished(embed(folder, "alone"))["shards"]
        alone = time.perf_counter() - started
        yield Measurement(f"{name}, one process", alone, "s")
        yield Measurement(f"{name}, shards", shards, "shards")
        with ray_nodes(NODES) as nodes:
            started = time.perf_counter()
            process = embed(folder, "cluster", "--ray", nodes.address)
            wait_for_shards(folder / "cluster", shards // 2)
            tasks = nodes.kill_one()
            at = len(list((folder / "cluster").glob("*.parquet")))
            finished(process)
            took = time.perf_counter() - started
        system = f"{NODES} Ray nodes, one killed"
        yield Measurement(f"{name}, {system}", took, "s", took / alone, "one process")
        yield Measurement(f"{name}, {system}: shards written when it was killed", at, "shards")
        yield Measurement(f"{name}, {system}: tasks that died with it", tasks, "tasks")
        alike = contents(folder / "alone") == contents(folder / "cluster")
        yield Measurement(f"{name}, {system}: all files equal", float(alike), "")


def main() -> None:
    """Measure, print, write."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS
    measured = told(run(count))
    machine = {"cores": os.cpu_count(), "load": os.getloadavg()[0]}
    text = json.dumps({"pairs": count, **machine, "measurements": measured}, indent=2)
    RESULTS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
