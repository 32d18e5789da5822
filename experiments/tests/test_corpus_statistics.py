"""Corpus statistics: counts after each filter, split sizes and leakage."""

import json
import sys

from experiments.corpus.mined_files import MinedFunction, MinedPackage, content_tokens
from experiments.corpus.rules import Corpus, Selection
from experiments.corpus.statistics import corpus_statistics
from redraft.data.rows import BadRow
from redraft.types import Example

SIDES = {"a": "train", "b": "dev", "c": "test"}
COUNTING = " ".join(f"x{at}" for at in range(20))
NEARLY = COUNTING.replace("x4", "y").replace("x11", "y").replace("x17", "y")


def function(package: str, body: str) -> MinedFunction:
    x = {"docstring": "Do it.", "name": "f", "arguments": ""}
    meta = {"file": "a.py", "line": 1, "package": package}
    return MinedFunction(Example(x, body, meta), len(content_tokens(body)), 3)


def corpus() -> Corpus:
    functions = [
        *(function("a", "f(x)"), function("a", COUNTING)),
        *(function("b", "g(x)"), function("c", "f(x)"), function("c", NEARLY)),
        *(function("c", "a + b"), function("c", "not at all like the others")),
    ]
    return Corpus({"paper": Selection(functions, {"seen": 9, "kept": 7})}, {}, SIDES)


def test_statistics_count_functions_splits_and_leaks() -> None:
    bad = BadRow("a.py", 1, "not Python 3")
    packages = [MinedPackage(name, (), 3, 2, (bad,)) for name in SIDES]
    found = corpus_statistics(corpus(), packages, wanted=["a", "b", "c", "gone"], seed=7)
    assert json.loads(json.dumps(found)) == {
        "seed": 7,
        "read as Python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "packages mined": 3,
        "packages without an archive that can be read": ["gone"],
        "groups of packages that share code": 0,
        "files that cannot be read": 3,
        "files of tests, of others, or generated": 6,
        "rules": {
            "paper": {
                "after each filter": {"seen": 9, "kept": 7},
                "packages": 3,
                "largest package": "c",
                "largest share": 0.57143,
                "split": {
                    "train": {"functions": 2, "packages": 1},
                    "dev": {"functions": 1, "packages": 1},
                    "test": {"functions": 4, "packages": 1},
                },
                "test bodies with a near-duplicate in train": {
                    "similarity ≥ 0.9": 0.25,
                    "similarity ≥ 0.7": 0.5,
                },
                "body tokens": {"10%": 3, "50%": 4, "90%": 20, "99%": 20},
                "docstring tokens": {"10%": 3, "50%": 3, "90%": 3, "99%": 3},
            }
        },
    }


def test_an_empty_corpus_has_statistics() -> None:
    empty = Corpus({"paper": Selection([], {})}, {}, {})
    rule = corpus_statistics(empty, [], wanted=[], seed=0)["rules"]["paper"]
    assert rule["largest share"] == 0
    assert rule["body tokens"] == {}
    assert rule["test bodies with a near-duplicate in train"]["similarity ≥ 0.9"] == 0
