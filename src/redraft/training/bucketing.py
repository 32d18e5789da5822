"""Batches of sequences of similar length."""

import math
import random
from collections.abc import Sequence


def bucket(lengths: Sequence[Sequence[int]], batch_size: int, *, seed: int) -> list[list[int]]:
    """Group rows of similar lengths into shuffled batches, to reduce padding.

    `lengths` has the lengths of each row's sequences. Returns batches of row indices; each row
    occurs once.
    """
    rng = random.Random(seed)
    columns = [column for column in zip(*lengths, strict=True) if len(set(column)) > 1]
    # noise in the sort keys, so that every epoch has different batches
    keys = [[length * rng.uniform(0.95, 1.05) for length in column] for column in columns]
    rows = _arrange(list(range(len(lengths))), keys, batch_size)
    batches = [rows[start : start + batch_size] for start in range(0, len(rows), batch_size)]
    rng.shuffle(batches)
    return batches


def _arrange(rows: list[int], keys: Sequence[Sequence[float]], batch_size: int) -> list[int]:
    """Sort rows by the first key, cut them into strips, and sort each strip by the other keys."""
    if not keys:
        return rows
    first, *others = keys
    rows = sorted(rows, key=lambda row: first[row])
    batches = math.ceil(len(rows) / batch_size)
    strip = batch_size * max(1, math.ceil(batches ** (len(others) / len(keys))))
    return [
        row
        for start in range(0, len(rows), strip)
        for row in _arrange(rows[start : start + strip], others, batch_size)
    ]
