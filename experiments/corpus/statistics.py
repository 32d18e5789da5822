"""Statistics of a corpus: counts after each filter, split sizes, leakage from train to test.

They are reproducible for a given version of Python; older versions cannot parse new syntax.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from experiments.corpus.mined_files import MinedPackage
from experiments.corpus.near_duplicates import nearest_similarities
from experiments.corpus.rules import SHARES, Corpus, Functions

SIMILARITIES = (0.9, 0.7)
QUANTILES = (0.1, 0.5, 0.9, 0.99)


def corpus_statistics(
    corpus: Corpus, packages: Sequence[MinedPackage], *, wanted: Iterable[str], seed: int
) -> dict[str, Any]:
    """Return the statistics of a corpus as JSON; `wanted` are the package names of its list."""
    mined = {package.package for package in packages}
    return {
        "seed": seed,
        "read as Python": ".".join(map(str, sys.version_info[:2])),
        "packages mined": len(mined),
        "packages without an archive that can be read": sorted(set(wanted) - mined),
        "groups of packages that share code": len(set(corpus.groups.values())),
        "files that cannot be read": sum(len(package.skipped) for package in packages),
        "files of tests, of others, or generated": sum(package.foreign for package in packages),
        "rules": {rule: _rule_statistics(corpus, rule) for rule in corpus.rules},
    }


def _rule_statistics(corpus: Corpus, rule: str) -> dict[str, Any]:
    selection = corpus.rules[rule]
    parts = {side: corpus.part(rule, side) for side in SHARES}
    sizes = Counter(function.package for function in selection.functions)
    largest, size = max(sizes.items(), key=lambda item: (item[1], item[0]), default=("", 0))
    return {
        "after each filter": dict(selection.stages),
        "packages": len(sizes),
        "largest package": largest,
        "largest share": _share(size, len(selection.functions)),
        "split": {
            side: {"functions": len(part), "packages": len({f.package for f in part})}
            for side, part in parts.items()
        },
        "test bodies with a near-duplicate in train": _leaks(parts["train"], parts["test"]),
        "body tokens": _quantiles(f.body_length for f in selection.functions),
        "docstring tokens": _quantiles(f.docstring_length for f in selection.functions),
    }


def _leaks(train: Functions, test: Functions) -> Mapping[str, float]:
    """Return the share of test bodies with a near-duplicate in train, by similarity threshold."""
    best = nearest_similarities(
        [function.tokens for function in test],
        [function.tokens for function in train],
        least=min(SIMILARITIES),
    )
    return {
        f"similarity ≥ {least}": _share(sum(value >= least for value in best), len(best))
        for least in SIMILARITIES
    }


def _share(part: int, whole: int) -> float:
    return round(part / max(1, whole), 5)


def _quantiles(lengths: Iterable[int]) -> dict[str, int]:
    ordered = sorted(lengths)
    if not ordered:
        return {}
    return {f"{share:.0%}": ordered[int(share * (len(ordered) - 1))] for share in QUANTILES}
