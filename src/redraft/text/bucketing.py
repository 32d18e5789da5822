"""Bucketing: batches of rows with similar lengths, which need little padding.

Knows only lengths and a seed: the same two give the same batches in every process.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

POOL = 512
"""Batches whose rows are sorted together; more would take longer and hardly reduce padding."""

NOISE = 0.05
"""Relative noise in the sort keys, so that every epoch has different batches."""

PASS_COST = 100
"""Positions that take as long as the overhead of a pass: on a CPU 100 to 220, at default size."""

Lengths = Sequence[Sequence[int]]
"""The lengths of each row's sequences; each is padded to the longest of the rows beside it."""

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def padded_size(lengths: Lengths) -> int:
    """Return the number of positions, padding included, of rows that are padded together."""
    columns: Iterator[tuple[int, ...]] = zip(*lengths, strict=True)
    return len(lengths) * sum(map(max, columns))


def bucket(lengths: Lengths, batch_size: int, *, seed: int, parts: int = 1) -> list[list[int]]:
    """Group rows into shuffled batches of `parts` groups, each of similar lengths.

    Returns batches of row indices; each row occurs once, and all batches but one are full. With
    several parts a batch mixes lengths, and `split` finds the groups again.
    """
    if not lengths:
        return []
    table = np.array(lengths, dtype=np.int64)  # (R, S)
    # With the batch size the stream differs from others of this seed, which draw prototypes.
    rng = np.random.default_rng([seed, batch_size])
    keys = table * rng.uniform(1 - NOISE, 1 + NOISE, table.shape)
    rows = rng.permutation(len(table))
    size, pool = max(1, batch_size // parts), POOL * batch_size
    groups: list[Integers] = []
    for start in range(0, len(rows), pool):
        groups += _groups(rows[start : start + pool], table, keys, size=size)
    shuffled = [groups[group] for group in rng.permutation(len(groups))]
    shuffled.sort(key=lambda group: len(group) < size)  # the incomplete group last
    rows = np.concatenate(shuffled)
    batches = [rows[i : i + batch_size].tolist() for i in range(0, len(rows), batch_size)]
    return [batches[batch] for batch in rng.permutation(len(batches))]


def split(lengths: Lengths) -> list[list[int]]:
    """Split the rows of a batch into parts to pad apart, where that saves more than it costs."""
    table = np.array(lengths, dtype=np.int64)
    parts, pending = [], [np.arange(len(table))]
    while pending:
        rows = pending.pop()
        if len(rows) > 1:
            left, right, padded = _cut(rows, table, table, size=1)
            if len(rows) * int(table[rows].max(0).sum()) - padded > PASS_COST:
                pending += [right, left]
                continue
        parts.append(rows.tolist())
    return parts


def _groups(rows: Integers, table: Integers, keys: Floats, *, size: int) -> list[Integers]:
    """Cut rows in two until no group has more than `size`; all groups but one are full."""
    groups, pending = [], [rows]
    while pending:
        rows = pending.pop()
        if len(rows) <= size:
            groups.append(rows)
        else:
            left, right, _ = _cut(rows, table, keys, size=size)
            pending += [right, left]
    return groups


def _cut(
    rows: Integers, table: Integers, keys: Floats | Integers, *, size: int
) -> tuple[Integers, Integers, int]:
    """Sort rows by a column of `keys` and cut them at a multiple of `size`, to pad them least.

    Returns both sides and their number of positions, padding included.
    """
    cuts = np.arange(size, len(rows), size)
    cuts = cuts[np.argsort(abs(2 * cuts - len(rows)), kind="stable")]  # of equal ones, the middle
    candidates = []
    for column in keys.T:
        order = rows[np.argsort(column[rows], kind="stable")]
        before = np.maximum.accumulate(table[order]).sum(1)
        after = np.maximum.accumulate(table[order[::-1]])[::-1].sum(1)
        padded = cuts * before[cuts - 1] + (len(rows) - cuts) * after[cuts]
        best = int(padded.argmin())
        candidates.append((int(padded[best]), order, int(cuts[best])))
    least, order, cut = min(candidates, key=lambda candidate: candidate[0])
    return order[:cut], order[cut:], least
