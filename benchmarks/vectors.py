"""Directions: sampling, embedding, and searching 10,000 to 1,000,000 of them."""

import time
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.measurement import Measurement, best_seconds
from benchmarks.retrieval import mined
from redraft.config.presets import SMALL
from redraft.index.base import ExactIndex, exact_search
from redraft.index.faiss import FaissIndex
from redraft.models import vmf
from redraft.models.autoencoder import FieldsEncoder
from redraft.retrieval.encoder import DenseEncoder
from redraft.text.token_encoder import TokenEncoder
from redraft.training.retriever_config import default_config
from redraft.types import input_text

WIDTH = 64
SIZES = (10_000, 100_000, 1_000_000)
QUERIES = 200


def run() -> Iterator[Measurement]:
    """Samples, embeddings, searches."""
    yield from sampling()
    yield from embedding()
    for size in SIZES:
        yield from searching(size)


def sampling() -> Iterator[Measurement]:
    """A million vMF samples of width 256, beside as many normal numbers."""
    generator = torch.Generator().manual_seed(0)
    direction = torch.nn.functional.normalize(torch.randn(1000, 256, generator=generator), dim=1)

    def sample() -> None:
        for _ in range(1000):
            vmf.sample(direction, 500.0, generator=generator)

    def draw() -> None:
        for _ in range(1000):
            torch.randn(1000, 256, generator=generator)

    seconds = best_seconds({"sample": sample, "draw": draw}, rounds=2)
    ratio = seconds["sample"] / seconds["draw"]
    yield Measurement("sample 1M vMF vectors of 256", seconds["sample"], "s", ratio, "torch.randn")


def embedding() -> Iterator[Measurement]:
    """Inputs a second through an encoder of the default size."""
    examples = mined()[:2000]
    config = default_config(SMALL)
    encoding = TokenEncoder.learn((input_text(each.x) for each in examples), config.encoding)
    fields = list(examples[0].x)
    network = FieldsEncoder(len(encoding.vocabulary), len(fields), config.network).eval()
    encoder = DenseEncoder(network, encoding, fields)
    inputs = [example.x for example in examples]
    seconds = best_seconds({"embed": lambda: encoder.encode(inputs)}, rounds=2)
    yield Measurement("embed documented functions", len(inputs) / seconds["embed"], "inputs/s")


def clustered(size: int) -> NDArray[np.float32]:
    """Unit vectors around as many centres as there are hundreds of them."""
    generator = np.random.default_rng(0)
    centres = generator.standard_normal((size // 100, WIDTH), np.float32)
    vectors = centres[generator.integers(len(centres), size=size)]
    vectors = vectors + 0.5 * generator.standard_normal((size, WIDTH), np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


def searching(size: int) -> Iterator[Measurement]:
    """Milliseconds a query, one at a time, beside exact search; how long the index took; recall."""
    vectors = clustered(size)
    queries = vectors[:: max(1, size // QUERIES)][:QUERIES]
    started = time.perf_counter()
    index = FaissIndex.build(vectors)
    build = time.perf_counter() - started
    exact = ExactIndex(vectors)
    asked = {
        "faiss": lambda: [index.search(query[None], 10) for query in queries],
        "exact": lambda: [exact.search(query[None], 10) for query in queries[:20]],
    }
    seconds = best_seconds(asked, rounds=2)
    each = {"faiss": seconds["faiss"] / len(queries), "exact": seconds["exact"] / 20}
    truth = exact_search(vectors, queries, 10).distances
    found = index.search(queries, 10).distances
    name = f"search {size:,} of width {WIDTH}"
    ratio = each["faiss"] / each["exact"]
    yield Measurement(f"{name}, FAISS", 1000 * each["faiss"], "ms", ratio, "exact search")
    yield Measurement(f"{name}, recall@10", 100 * float((found <= truth + 1e-4).mean()), "%")
    yield Measurement(f"{name}, build", build, "s")
    yield from annoy(vectors, queries, truth, name)


def annoy(
    vectors: NDArray[np.float32],
    queries: NDArray[np.float32],
    truth: NDArray[np.float32],
    name: str,
) -> Iterator[Measurement]:
    """The paper's index, 10 trees by angle, where it is installed."""
    try:
        from annoy import AnnoyIndex
    except ImportError:
        return
    trees = AnnoyIndex(vectors.shape[1], "angular")
    for row, vector in enumerate(vectors):
        trees.add_item(row, vector)
    trees.build(10)
    rows = [trees.get_nns_by_vector(query, 10) for query in queries]
    found = np.array([2 - 2 * vectors[each] @ q for each, q in zip(rows, queries, strict=True)])
    recall = 100 * float((found <= truth + 1e-4).mean())
    yield Measurement(f"{name}, recall@10, Annoy with 10 trees", recall, "%")
