"""Score outputs against references: per-example metrics, means and 95 % intervals."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redraft.errors import PairsError
from redraft.metrics.bleu import (
    bleu_corpus,
    bleu_paper,
    bleu_yin,
    corpus_signature,
    corpus_statistics,
)
from redraft.metrics.bootstrap import Interval, bootstrap, mean_interval
from redraft.metrics.completion import Ranks, completion_metrics, completion_metrics_paper
from redraft.metrics.exact_match import (
    Language,
    detect_language,
    is_exact,
    is_exact_paper,
    parses,
)

LABELS = {
    "exact": "right",
    "exact_unseen": "right, output not in train",
    "bleu_yin": "similarity, sentence BLEU",
    "bleu_paper": "sentence BLEU, unsmoothed",
    "bleu_corpus": "corpus BLEU",
    "parses": "parses",
}
"""Labels of the metrics in tables, in order."""


@dataclass(frozen=True)
class Scores:
    """The metrics of a system, in per cent; completion lengths in tokens."""

    n: int
    metrics: Mapping[str, float]
    interval: Mapping[str, Interval]
    per_example: Mapping[str, Sequence[float]]
    notes: Mapping[str, Any]

    @property
    def right(self) -> int | None:
        """The number of exactly right outputs; None if they are not compared."""
        return int(sum(self.per_example["exact"])) if "exact" in self.per_example else None

    def to_json(self) -> dict[str, Any]:
        """Return the metrics, their intervals and the notes as one JSON object."""
        metrics = {name: round(value, 4) for name, value in self.metrics.items()}
        interval = {n: [round(low, 4), round(high, 4)] for n, (low, high) in self.interval.items()}
        right = {} if self.right is None else {"right": self.right}
        return {"n": self.n, **right, **metrics, "interval": interval, **self.notes}


def score(
    references: Sequence[str],
    outputs: Sequence[str | None],
    *,
    train_outputs: Collection[str] | None = None,
    language: Language | None = None,
) -> Scores:
    """Compute all metrics of full outputs; a missing output is None and scores 0.

    `language` decides which outputs are exactly right; by default it is detected. With
    `train_outputs`, `exact_unseen` is the exact match on references not among them.
    """
    if len(references) != len(outputs):
        raise PairsError(
            f"{len(outputs)} outputs for {len(references)} references; they must match"
        )
    if not references:
        raise PairsError("nothing to score; give at least one reference")
    language = language or detect_language(references)
    pairs = list(zip(references, outputs, strict=True))
    per_example = {
        "bleu_yin": [bleu_yin(*pair) for pair in pairs],
        "bleu_paper": [bleu_paper(*pair) for pair in pairs],
        "exact": [float(is_exact(*pair, language)) for pair in pairs],
        "exact_paper": [float(is_exact_paper(*pair)) for pair in pairs],
    }
    if language == "python":
        per_example["parses"] = [float(parses(output)) for output in outputs]
    metrics, interval = _means(per_example)
    statistics = corpus_statistics(references, outputs)
    metrics["bleu_corpus"] = 100 * bleu_corpus(statistics)
    interval["bleu_corpus"] = bootstrap(statistics, _corpus_bleu)
    notes: dict[str, Any] = {"language": language, "signature": corpus_signature()}
    if train_outputs is not None:
        unseen = np.array([reference not in train_outputs for reference in references])
        notes |= {"n_unseen": int(unseen.sum()), "share_in_train": 100 * float(1 - unseen.mean())}
        if unseen.any():
            exact_unseen = np.array(per_example["exact"])[unseen].tolist()
            means, intervals = _means({"exact_unseen": exact_unseen})
            metrics, interval = metrics | means, interval | intervals
    return Scores(len(references), metrics, interval, per_example, notes)


def score_completions(functions: Sequence[Ranks]) -> Scores:
    """Compute the completion metrics, in ours and the paper's definition, from token ranks."""
    if not functions:
        raise PairsError("nothing to score; give the ranks of at least one function")
    per_example = completion_metrics(functions)
    metrics, interval = _means(per_example | completion_metrics_paper(functions), scale=1)
    return Scores(len(functions), metrics, interval, per_example, {})


def _means(
    per_example: Mapping[str, Sequence[float]], *, scale: float = 100
) -> tuple[dict[str, float], dict[str, Interval]]:
    metrics, interval = {}, {}
    for name, values in per_example.items():
        metrics[name] = scale * float(np.mean(values))
        low, high = mean_interval(values)
        interval[name] = (scale * low, scale * high)
    return metrics, interval


def _corpus_bleu(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.array([100 * bleu_corpus(row[None].astype(np.int64)) for row in sums])
