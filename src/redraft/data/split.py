"""Split examples with a seed, at random or by groups that stay together."""

import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence

from redraft.errors import PairsError
from redraft.storage.disk import take
from redraft.types import Example


def split(
    examples: Sequence[Example], shares: Mapping[str, float], *, seed: int, by: str | None = None
) -> dict[str, Sequence[Example]]:
    """Split the examples by `shares`; examples with equal `meta[by]` stay together."""
    if not shares or min(shares.values()) < 0 or not math.isclose(sum(shares.values()), 1):
        raise PairsError(f"shares of a split must be positive and sum to 1, got {dict(shares)}")
    groups = _groups(examples, by)
    keys = sorted(groups) if groups else sorted(map(str, range(len(examples))))
    random.Random(seed).shuffle(keys)
    wanted = {name: share * len(examples) for name, share in shares.items()}
    rows: dict[str, list[int]] = {name: [] for name in shares}
    # large groups first, each to the part that lacks most: shares come close for any group sizes
    for key in sorted(keys, key=lambda key: -len(groups[key])) if groups else keys:
        name = max(rows, key=lambda name: wanted[name] - len(rows[name]))
        rows[name].extend(groups[key] if groups else [int(key)])
    return {name: take(examples, sorted(part)) for name, part in rows.items()}


def _groups(examples: Sequence[Example], by: str | None) -> dict[str, list[int]]:
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
