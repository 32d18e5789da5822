"""Split examples with a seed, at random or by groups that stay together.

Groups are those of a meta value, or of similar inputs.
"""

import math
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from redraft.data.check import NEAR, PERMUTATIONS, signature_of
from redraft.errors import PairsError
from redraft.storage.disk import take
from redraft.types import Example, input_digest, normal_input

TEMPLATE_SHARE = 0.1
"""A larger share of nearly equal inputs is a template: only equal inputs of it stay together."""

Groups = Mapping[str, Sequence[int]]
"""Rows that stay together, by the name of their group."""


def split(
    examples: Sequence[Example],
    shares: Mapping[str, float],
    *,
    seed: int,
    by: str | None = None,
    groups: Groups | None = None,
) -> dict[str, Sequence[Example]]:
    """Split the examples by `shares`; those with equal `meta[by]`, or of a group, stay together."""
    rows = split_rows(examples, shares, seed=seed, by=by, groups=groups)
    return {name: take(examples, part) for name, part in rows.items()}


def split_rows(
    examples: Sequence[Example],
    shares: Mapping[str, float],
    *,
    seed: int,
    by: str | None = None,
    groups: Groups | None = None,
) -> dict[str, list[int]]:
    """Return the rows, ascending, of the parts that `split` returns."""
    if not shares or min(shares.values()) < 0 or not math.isclose(sum(shares.values()), 1):
        raise PairsError(f"shares of a split must be positive and sum to 1, got {dict(shares)}")
    groups = _groups(examples, by) if groups is None else groups
    keys = sorted(groups) if groups else sorted(map(str, range(len(examples))))
    random.Random(seed).shuffle(keys)
    wanted = {name: share * len(examples) for name, share in shares.items()}
    rows: dict[str, list[int]] = {name: [] for name in shares}
    # large groups first, each to the part that lacks most: shares come close for any group sizes
    for key in sorted(keys, key=lambda key: -len(groups[key])) if groups else keys:
        name = max(rows, key=lambda name: wanted[name] - len(rows[name]))
        rows[name].extend(groups[key] if groups else [int(key)])
    return {name: sorted(part) for name, part in rows.items()}


def _groups(examples: Sequence[Example], by: str | None) -> Groups:
    """Return the rows of each group; empty without `by`, so that no example is read."""
    if by is None:
        return {}
    groups: dict[str, list[int]] = defaultdict(list)
    for row, example in enumerate(examples):
        if by not in example.meta:
            keys = ", ".join(example.meta) or "none"
            raise PairsError(f"pair {row + 1} has no meta key {by!r} to split by (it has: {keys})")
        groups[str(example.meta[by])].append(row)
    return groups


def similar_inputs(examples: Iterable[Example]) -> Groups:
    """Return groups of rows whose inputs are equal or nearly so.

    Equal inputs differ at most in case, white space and final punctuation; nearly equal ones share
    trigrams of tokens as near leaks do. Above the number of examples that fit in memory only equal
    ones are found.
    """
    from datasketch import MinHashLSH

    from redraft.storage import disk

    equal: dict[str, list[int]] = {}
    near = MinHashLSH(threshold=NEAR, num_perm=PERMUTATIONS)
    signatures: dict[str, Any] = {}
    parents: dict[str, str] = {}
    count = 0
    for count, example in enumerate(examples, start=1):
        digest = input_digest(example.x).hex()
        equal.setdefault(digest, []).append(count - 1)
        if digest in parents or len(parents) >= disk.IN_MEMORY_LIMIT:
            continue
        signature = signatures[digest] = signature_of("\n".join(normal_input(example.x)))
        parents[digest] = digest
        for other in near.query(signature):
            if signature.jaccard(signatures[other]) >= NEAR:
                parents[_root(parents, other)] = _root(parents, digest)
        near.insert(digest, signature)
    groups: dict[str, list[str]] = defaultdict(list)
    for digest in equal:
        groups[_root(parents, digest) if digest in parents else digest].append(digest)
    joined = {
        name: [row for part in group for row in equal[part]] for name, group in groups.items()
    }
    for name, rows in list(joined.items()):
        if len(rows) > max(2, TEMPLATE_SHARE * count):
            del joined[name]
            joined |= {digest: equal[digest] for digest in groups[name]}
    return joined


def _root(parents: Mapping[str, str], name: str) -> str:
    while parents[name] != name:
        name = parents[name]
    return name
