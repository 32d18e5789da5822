"""Vectors in PostgreSQL beside FAISS: `python -m benchmarks.store 200000` starts a server itself.

Needs what `make test-cluster` installs. Every figure is of one run, the systems taking turns.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.measurement import Measurement, told
from benchmarks.vectors import clustered
from redraft.index.base import ExactIndex
from redraft.index.faiss import FaissIndex
from redraft.index.neighbours import Neighbours
from redraft.postgres.examples import PostgresExamples
from redraft.postgres.store import created
from redraft.types import Example
from tests.cluster.postgres_server import postgres_server

SIZE = 200_000
QUERIES = 200
K = 10
RESULTS = Path(__file__).parent / "store.json"

Result = TypeVar("Result")
Search = Callable[[NDArray[np.float32]], Neighbours]


def run(size: int = SIZE) -> Iterator[Measurement]:
    """Building, searching, searching what a filter leaves, and adding one example."""
    vectors = clustered(size + QUERIES)
    # queries as they come: like the vectors, and none of them
    held_out = np.random.default_rng(1).permutation(size + QUERIES)
    queries, vectors = vectors[held_out[:QUERIES]], vectors[held_out[QUERIES:]]
    examples = [Example({"text": str(at)}, str(at), {"part": at % 100}) for at in range(size)]
    built, faiss = _timed(lambda: FaissIndex.build(vectors))
    exact = ExactIndex(vectors)
    with postgres_server() as server:
        started = time.perf_counter()
        with created(server.url(), examples, vectors) as store:
            filled = time.perf_counter() - started
            name = f"{size:,} vectors of width {vectors.shape[1]}"
            yield Measurement(f"{name}, fill and index", filled, "s", filled / built, "FAISS")
            stored = PostgresExamples.read(store)
            index = stored.vector_index
            yield from _searching(
                name,
                queries,
                {
                    "PostgreSQL": lambda query: index.search(query, K),
                    "FAISS": lambda query: faiss.search(query, K),
                    "exact": lambda query: exact.search(query, K),
                },
            )
            where = {"part": 7}
            allowed = stored.allowed(where, {})
            yield from _searching(
                f"{name}, a filter keeps {allowed.mean():.0%}",
                queries,
                {
                    "PostgreSQL": lambda query: index.search(
                        query, K, allowed=stored.allowed(where, {})
                    ),
                    "FAISS": lambda query: faiss.search(query, K, allowed=allowed),
                    "exact": lambda query: exact.search(query, K, allowed=allowed),
                },
            )
            seconds = [
                _timed(lambda: stored.replaced([], examples[:1]).write(queries[:1]))[0]
                for _ in range(20)
            ]
            yield Measurement(f"{name}, add one example", 1000 * statistics.median(seconds), "ms")
            store.close()


def _searching(
    name: str, queries: NDArray[np.float32], searches: dict[str, Search]
) -> Iterator[Measurement]:
    """The median time of a query, and how many of the nearest are found."""
    seconds: dict[str, list[float]] = {system: [] for system in searches}
    found: dict[str, list[Neighbours]] = {system: [] for system in searches}
    for query in queries:
        for system, search in searches.items():
            took, neighbours = _timed(lambda: search(query[None]))  # noqa: B023
            seconds[system].append(took)
            found[system].append(neighbours)
    truth = Neighbours.join(found["exact"]).distances
    median = {system: 1000 * statistics.median(each) for system, each in seconds.items()}
    for system in searches:
        ratio = median[system] / median["FAISS"]
        yield Measurement(f"{name}, median search, {system}", median[system], "ms", ratio, "FAISS")
    for system in searches:
        results = Neighbours.join(found[system])
        least = int((results.rows >= 0).sum(axis=1).min())
        yield Measurement(f"{name}, fewest results of {K}, {system}", least, "results")
        # by distance and not by row: of several at the same distance any one will do
        recall = float((results.distances <= truth + 1e-4).mean())
        yield Measurement(f"{name}, recall@{K}, {system}", recall, "")


def _timed(work: Callable[[], Result]) -> tuple[float, Result]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def main() -> None:
    """Measure, print, write."""
    size = int(sys.argv[1]) if len(sys.argv) > 1 else SIZE
    measured = told(run(size))
    text = json.dumps({"vectors": size, "measurements": measured}, indent=2, ensure_ascii=False)
    RESULTS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
