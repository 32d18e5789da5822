"""Examples into seeded parts: at random, or whole groups at a time so that none is torn."""

import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence

from redraft.data.example import Example
from redraft.data.filed import pick
from redraft.errors import PairsError


def split(
    examples: Sequence[Example], shares: Mapping[str, float], *, seed: int, by: str | None = None
) -> dict[str, Sequence[Example]]:
    """The examples in parts of about these shares; those of equal `meta[by]` stay together."""
    if not shares or min(shares.values()) < 0 or not math.isclose(sum(shares.values()), 1):
        raise PairsError(f"shares of a split must be positive and sum to 1, got {dict(shares)}")
    groups = _groups(examples, by)
    keys = sorted(groups) if groups else sorted(map(str, range(len(examples))))
    random.Random(seed).shuffle(keys)
    wanted = {name: share * len(examples) for name, share in shares.items()}
    rows: dict[str, list[int]] = {name: [] for name in shares}
    # large groups first, each to the part that lacks most: shares come out close for any sizes
    for key in sorted(keys, key=lambda key: -len(groups[key])) if groups else keys:
        name = max(rows, key=lambda name: wanted[name] - len(rows[name]))
        rows[name].extend(groups[key] if groups else [int(key)])
    return {name: pick(examples, sorted(part)) for name, part in rows.items()}


def _groups(examples: Sequence[Example], by: str | None) -> dict[str, list[int]]:
    """The rows that stay together; none if each stands for itself, so that none is read."""
    if by is None:
        return {}
    groups: dict[str, list[int]] = defaultdict(list)
    for row, example in enumerate(examples):
        if by not in example.meta:
            known = ", ".join(example.meta) or "none"
            raise PairsError(f"pair {row + 1} has no meta key {by!r} to split by (it has: {known})")
        groups[str(example.meta[by])].append(row)
    return groups
