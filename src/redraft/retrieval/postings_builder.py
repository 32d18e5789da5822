"""Making postings in little memory: what is counted goes to buckets on disk, by the word's number.

Buckets are sorted one by one, and one after the other they are the whole in its order.
"""

import shutil
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from redraft.data.arrays import appended
from redraft.retrieval.postings import K1, B, Ids, Postings, term

_BITS = 6
_COPIED = 1 << 20
"""Postings that are taken over at once."""

_RECORD = np.dtype([("term", "<u8"), ("row", "<u4"), ("count", "<u4")])

Records = NDArray[np.void]


class PostingsBuilder:
    """Collects bags of words in the order of their rows; then writes their postings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._buckets = folder / "buckets"
        self._buckets.mkdir()
        self._lengths = array("I")
        self._count = 0

    def take(self, postings: Postings, removed: Ids) -> None:
        """Take over what was built before, without some rows, the later ones moving up."""
        kept = np.ones(len(postings), np.bool_)
        kept[removed] = False
        moved = np.cumsum(kept) - 1
        self._lengths.frombytes(postings.lengths[kept].tobytes())
        starts = np.asarray(postings.starts)
        first = 0
        while first < len(postings.terms):
            end = max(first + 1, int(np.searchsorted(starts, starts[first] + _COPIED)) - 1)
            part = slice(int(starts[first]), int(starts[end]))
            rows = np.asarray(postings.rows[part])
            records = np.empty(len(rows), _RECORD)
            records["term"] = np.repeat(postings.terms[first:end], np.diff(starts[first : end + 1]))
            records["row"], records["count"] = moved[rows], postings.counts[part]
            self._spill(records[kept[rows]])
            first = end

    def add(self, bags: Iterable[Sequence[str]]) -> None:
        """Count the words of the next rows, no more than memory holds."""
        numbers: dict[str, int] = {}
        terms, rows, counts = array("Q"), array("I"), array("I")
        for bag in bags:
            counted = Counter(bag)
            for word, count in counted.items():
                if word not in numbers:
                    numbers[word] = term(word)
                terms.append(numbers[word])
                counts.append(count)
            rows.extend([len(self._lengths)] * len(counted))
            self._lengths.append(len(bag))
        records = np.empty(len(terms), _RECORD)
        records["term"], records["row"], records["count"] = terms, rows, counts
        self._spill(records)

    def _spill(self, records: Records) -> None:
        """Append records to their buckets, in which rows stay ascending."""
        bucket = (records["term"] >> np.uint64(64 - _BITS)).astype(np.uint8)
        records = records[np.argsort(bucket, kind="stable")]
        ends = np.cumsum(np.bincount(bucket, minlength=1 << _BITS))
        for number, part in enumerate(np.split(records, ends[:-1])):
            if len(part):
                with (self._buckets / f"{number:02}").open("ab") as stream:
                    part.tofile(stream)
        self._count += len(records)

    def finish(self) -> Postings:
        """The postings of all rows, in the folder; the builder is of no more use."""
        lengths = np.frombuffer(self._lengths, np.uint32)
        mean = float(lengths.mean()) if self._count else 1.0
        weights = K1 * ((1 - B) + B * lengths.astype(np.float64) / mean)
        terms: list[NDArray[np.uint64]] = []
        frequencies: list[Ids] = []
        bounds: list[NDArray[np.float32]] = []
        with ExitStack() as stack:
            rows, counts, scores = (
                stack.enter_context(appended(self.folder / f"{name}.npy", (self._count,), dtype))
                for name, dtype in (("rows", "<u4"), ("counts", "<u4"), ("scores", "<f4"))
            )
            for path in sorted(self._buckets.iterdir()):
                records = np.fromfile(path, _RECORD)
                records = records[np.argsort(records["term"], kind="stable")]
                held, begins, frequency = np.unique(
                    records["term"], return_index=True, return_counts=True
                )
                scored = _scored(records, frequency, weights)
                rows(records["row"])
                counts(records["count"])
                scores(scored)
                terms.append(held)
                frequencies.append(frequency)
                bounds.append(np.maximum.reduceat(scored, begins))
        self._save("terms", np.concatenate([*terms, np.zeros(0, np.uint64)]))
        ends = np.cumsum(np.concatenate([*frequencies, np.zeros(0, np.int64)]))
        self._save("starts", np.concatenate([[0], ends]).astype(np.int64))
        self._save("bounds", np.concatenate([*bounds, np.zeros(0, np.float32)]))
        self._save("lengths", lengths)
        shutil.rmtree(self._buckets)
        return Postings.open(self.folder)

    def _save(self, name: str, values: NDArray[np.generic]) -> None:
        np.save(self.folder / f"{name}.npy", values, allow_pickle=False)


def _scored(records: Records, frequency: Ids, weights: NDArray[np.float64]) -> NDArray[np.float32]:
    """What each record scores, as the library in memory computes it: in 64 bits, kept in 32."""
    rarity = np.log(1 + (len(weights) - frequency + 0.5) / (frequency + 0.5))
    count = records["count"].astype(np.float32)
    share = count / (weights[records["row"]] + count)
    return np.asarray(np.repeat(rarity.astype(np.float32), frequency) * share, np.float32)
