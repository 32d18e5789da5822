"""Tokens and lexical retrieval on this machine's own standard library."""

import sysconfig
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measurement import Measurement, best_seconds
from redraft.data.rows import BadRow
from redraft.mining.python_functions import find_sources, mine
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.retrieval.bow import BowRetriever
from redraft.text.tokenizer import Tokenizer, detokenize
from redraft.types import Example

QUERIES = 256


def mined() -> list[Example]:
    """The documented functions of the standard library."""
    sources = find_sources([Path(sysconfig.get_paths()["stdlib"])], without=("test", "tests"))
    found = [mine(source) for source in sources]
    return [example for part in found if not isinstance(part, BadRow) for example in part]


def run() -> Iterator[Measurement]:
    """Characters a second, and milliseconds a query beside each other."""
    examples = mined()
    texts = [example.y for example in examples]
    tokenizer = Tokenizer()
    tokens = [tokenizer.tokenize(text) for text in texts]
    seconds = best_seconds(
        {
            "tokenize": lambda: [tokenizer.tokenize(text) for text in texts],
            "detokenize": lambda: [detokenize(each) for each in tokens],
            "split": lambda: [text.split() for text in texts],
        }
    )
    characters = sum(map(len, texts))
    for name in ("tokenize", "detokenize"):
        ratio = seconds["split"] / seconds[name]
        yield Measurement(name, characters / seconds[name] / 1e6, "MB/s", ratio, "str.split")
    lexical, bm25 = BowRetriever.build(examples), Bm25Retriever.build(examples)
    queries = [example.x for example in examples[:QUERIES]]
    seconds = best_seconds(
        {
            "lexical": lambda: lexical.retrieve(queries, 5),
            "bm25": lambda: bm25.retrieve(queries, 5),
        }
    )
    name = f"retrieve 5 of {len(examples):,}"
    each = {system: 1000 * total / QUERIES for system, total in seconds.items()}
    yield Measurement(
        f"{name}, lexical", each["lexical"], "ms", each["lexical"] / each["bm25"], "bm25"
    )
    yield Measurement(f"{name}, bm25", each["bm25"], "ms")
