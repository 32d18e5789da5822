"""How well a retriever serves an editor: how little of what it finds would have to change."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from redraft.data.example import Example
from redraft.data.filed import FiledExamples, file_examples
from redraft.evaluation.bleu import bleu_paper, bleu_yin, yin_tokens
from redraft.retrieval.lexical import LexicalRetriever
from redraft.retrieval.prototype import Prototype
from redraft.retrieval.retriever import Retriever

ORACLE_POOL = 50
"""The oracle's choice is the best of this many outputs that share most words with the truth."""

_BATCH = 64


@dataclass(frozen=True)
class Editability:
    """For each example, how near the retrieved output is to the true one."""

    bleu_yin: Sequence[float]
    bleu_paper: Sequence[float]
    edit_distance: Sequence[float]

    @classmethod
    def of(cls, examples: Sequence[Example], found: Sequence[Prototype | None]) -> "Editability":
        """The editability of the first prototypes; none counts as an empty output."""
        outputs = [prototype.example.y if prototype else None for prototype in found]
        both = [(example.y, output) for example, output in zip(examples, outputs, strict=True)]
        return cls(
            [bleu_yin(*pair) for pair in both],
            [bleu_paper(*pair) for pair in both],
            [token_edit_distance(reference, output or "") for reference, output in both],
        )

    def means(self) -> dict[str, float]:
        """BLEU in per cent, and the distance in tokens."""
        return {
            "bleu_yin": 100 * float(np.mean(self.bleu_yin)),
            "bleu_paper": 100 * float(np.mean(self.bleu_paper)),
            "edit_distance": float(np.mean(self.edit_distance)),
        }


def token_edit_distance(reference: str, output: str) -> float:
    """How many tokens to insert, delete or replace."""
    from rapidfuzz.distance import Levenshtein

    return float(Levenshtein.distance(yin_tokens(reference), yin_tokens(output)))


def first_prototypes(
    retriever: Retriever, examples: Sequence[Example], *, leave_out: bool = False
) -> list[Prototype | None]:
    """The nearest prototype of each example; with `leave_out`, none that has its output."""
    found: list[Prototype | None] = []
    for start in range(0, len(examples), _BATCH):
        batch = examples[start : start + _BATCH]
        ranked = retriever.retrieve(
            [example.x for example in batch], exclude=batch if leave_out else None
        )
        found += [prototypes[0] if prototypes else None for prototypes in ranked]
    return found


def oracle_prototypes(
    candidates: Sequence[Example], examples: Sequence[Example], *, leave_out: bool = False
) -> list[Prototype | None]:
    """The best prototype of each example, found with its true output: the ceiling of retrieval."""
    outputs = (Example({"y": each.y}, each.y) for each in candidates)
    is_many = isinstance(candidates, FiledExamples)
    known = file_examples([outputs], Path(mkdtemp())) if is_many else list(outputs)
    by_output = LexicalRetriever.build(known)
    found: list[Prototype | None] = []
    for example in examples:
        similar = by_output.retrieve(
            [{"y": example.y}], ORACLE_POOL, exclude=[example] if leave_out else None
        )[0]
        scored = [
            (bleu_yin(example.y, each.example.y), -at, each) for at, each in enumerate(similar)
        ]
        found.append(max(scored)[2] if scored else None)
    return found


def mean_bleu(retriever: Retriever, examples: Sequence[Example]) -> float:
    """The mean sentence BLEU of the nearest outputs, in per cent: what retrievers are chosen by."""
    found = first_prototypes(retriever, examples)
    outputs = [prototype.example.y if prototype else None for prototype in found]
    scores = [bleu_yin(each.y, output) for each, output in zip(examples, outputs, strict=True)]
    return 100 * float(np.mean(scores))
