"""Retrieval quality: BLEU and edit distance between retrieved and true outputs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from redraft.metrics.bleu import bleu_paper, bleu_yin, yin_tokens
from redraft.retrieval.base import Retriever
from redraft.retrieval.bow import BowRetriever
from redraft.storage.disk import spool_examples
from redraft.storage.examples import is_on_disk
from redraft.types import Example, Prototype

ORACLE_POOL = 50
"""Candidates of the oracle: the outputs that share the most words with the truth."""

_BATCH = 64


@dataclass(frozen=True)
class RetrievalQuality:
    """Similarity of the retrieved output to the true one, for each example."""

    bleu_yin: Sequence[float]
    bleu_paper: Sequence[float]
    edit_distance: Sequence[float]

    @classmethod
    def of(
        cls, examples: Sequence[Example], prototypes: Sequence[Prototype | None]
    ) -> "RetrievalQuality":
        """Compare the outputs of the first prototypes; None counts as an empty output."""
        outputs = [prototype.example.y if prototype else None for prototype in prototypes]
        pairs = [(example.y, output) for example, output in zip(examples, outputs, strict=True)]
        return cls(
            [bleu_yin(*pair) for pair in pairs],
            [bleu_paper(*pair) for pair in pairs],
            [token_edit_distance(reference, output or "") for reference, output in pairs],
        )

    def means(self) -> dict[str, float]:
        """Return the means: BLEU in per cent, the edit distance in tokens."""
        return {
            "bleu_yin": 100 * float(np.mean(self.bleu_yin)),
            "bleu_paper": 100 * float(np.mean(self.bleu_paper)),
            "edit_distance": float(np.mean(self.edit_distance)),
        }


def token_edit_distance(reference: str, output: str) -> float:
    """Return the Levenshtein distance in tokens."""
    from rapidfuzz.distance import Levenshtein

    return float(Levenshtein.distance(yin_tokens(reference), yin_tokens(output)))


def first_prototypes(
    retriever: Retriever, examples: Sequence[Example], *, leave_out: bool = False
) -> list[Prototype | None]:
    """Return the nearest prototype of each example; with `leave_out`, none with its output."""
    nearest: list[Prototype | None] = []
    for start in range(0, len(examples), _BATCH):
        batch = examples[start : start + _BATCH]
        ranked = retriever.retrieve(
            [example.x for example in batch], exclude=batch if leave_out else None
        )
        nearest += [prototypes[0] if prototypes else None for prototypes in ranked]
    return nearest


def oracle_prototypes(
    candidates: Sequence[Example], examples: Sequence[Example], *, leave_out: bool = False
) -> list[Prototype | None]:
    """Return the best prototype of each example, chosen by its true output: an upper bound."""
    outputs = (Example({"y": candidate.y}, candidate.y) for candidate in candidates)
    on_disk = is_on_disk(candidates)
    indexed = spool_examples([outputs], Path(mkdtemp())) if on_disk else list(outputs)
    by_output = BowRetriever.build(indexed)
    best: list[Prototype | None] = []
    for example in examples:
        similar = by_output.retrieve(
            [{"y": example.y}], ORACLE_POOL, exclude=[example] if leave_out else None
        )[0]
        scored = [
            (bleu_yin(example.y, prototype.example.y), -i, prototype)
            for i, prototype in enumerate(similar)
        ]
        best.append(max(scored)[2] if scored else None)
    return best


def mean_bleu(retriever: Retriever, examples: Sequence[Example]) -> float:
    """Return the mean sentence BLEU of the nearest outputs in per cent, to select retrievers."""
    prototypes = first_prototypes(retriever, examples)
    scores = [
        bleu_yin(example.y, prototype.example.y if prototype else None)
        for example, prototype in zip(examples, prototypes, strict=True)
    ]
    return 100 * float(np.mean(scores))
