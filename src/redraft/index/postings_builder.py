"""Builds postings in bounded memory by an external bucket sort.

Word counts are appended to buckets on disk by the leading bits of the word's hash. Each bucket is
then sorted in memory; their concatenation is sorted.
"""

import shutil
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from redraft.index.bm25 import bm25_scores, idf, length_weights
from redraft.index.postings import NAMES, Ids, Postings, term
from redraft.storage.arrays import appended

_BITS = 6
_COPIED = 1 << 20
"""Maximum number of postings copied at once."""

_RECORD = np.dtype([("term", "<u8"), ("row", "<u4"), ("count", "<u4")])

Records = NDArray[np.void]


class PostingsBuilder:
    """Collects bags of words in the order of their rows, then writes their postings to `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._buckets = folder / "buckets"
        self._buckets.mkdir()
        self._lengths = array("I")
        self._count = 0

    def take(self, postings: Postings, removed: Ids) -> None:
        """Copy existing postings without the `removed` rows; later rows move up."""
        is_kept = np.ones(len(postings), np.bool_)
        is_kept[removed] = False
        new_rows = np.cumsum(is_kept) - 1
        self._lengths.frombytes(postings.lengths[is_kept].tobytes())
        starts = np.asarray(postings.starts)
        first = 0
        while first < len(postings.terms):
            end = max(first + 1, int(np.searchsorted(starts, starts[first] + _COPIED)) - 1)
            part = slice(int(starts[first]), int(starts[end]))
            rows = np.asarray(postings.rows[part])
            records = np.empty(len(rows), _RECORD)
            records["term"] = np.repeat(postings.terms[first:end], np.diff(starts[first : end + 1]))
            records["row"], records["count"] = new_rows[rows], postings.counts[part]
            self._spill(records[is_kept[rows]])
            first = end

    def add(self, bags: Iterable[Sequence[str]]) -> None:
        """Count the words of the next rows; a call holds its counts in memory."""
        hashes: dict[str, int] = {}
        terms, rows, counts = array("Q"), array("I"), array("I")
        for bag in bags:
            word_counts = Counter(bag)
            for word, count in word_counts.items():
                if word not in hashes:
                    hashes[word] = term(word)
                terms.append(hashes[word])
                counts.append(count)
            rows.extend([len(self._lengths)] * len(word_counts))
            self._lengths.append(len(bag))
        records = np.empty(len(terms), _RECORD)
        records["term"], records["row"], records["count"] = terms, rows, counts
        self._spill(records)

    def _spill(self, records: Records) -> None:
        """Append records to their buckets; rows stay in ascending order there."""
        bucket = (records["term"] >> np.uint64(64 - _BITS)).astype(np.uint8)
        records = records[np.argsort(bucket, kind="stable")]
        ends = np.cumsum(np.bincount(bucket, minlength=1 << _BITS))
        for number, part in enumerate(np.split(records, ends[:-1])):
            if len(part):
                with (self._buckets / f"{number:02}").open("ab") as stream:
                    part.tofile(stream)
        self._count += len(records)

    def finish(self) -> Postings:
        """Write the postings of all rows and return them; the builder cannot be used again."""
        lengths = np.frombuffer(self._lengths, np.uint32)
        weights = length_weights(lengths)
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
                bucket_terms, begins, frequency = np.unique(
                    records["term"], return_index=True, return_counts=True
                )
                bucket_scores = bm25_scores(
                    records["count"],
                    weights[records["row"]],
                    np.repeat(idf(len(weights), frequency), frequency),
                )
                rows(records["row"])
                counts(records["count"])
                scores(bucket_scores)
                terms.append(bucket_terms)
                frequencies.append(frequency)
                bounds.append(np.maximum.reduceat(bucket_scores, begins))
        self._save("terms", np.concatenate([*terms, np.zeros(0, np.uint64)]))
        ends = np.cumsum(np.concatenate([*frequencies, np.zeros(0, np.int64)]))
        self._save("starts", np.concatenate([[0], ends]).astype(np.int64))
        self._save("bounds", np.concatenate([*bounds, np.zeros(0, np.float32)]))
        self._save("lengths", lengths)
        shutil.rmtree(self._buckets)
        return Postings.open(self.folder / f"{name}.npy" for name in NAMES)

    def _save(self, name: str, values: NDArray[np.generic]) -> None:
        np.save(self.folder / f"{name}.npy", values, allow_pickle=False)
