"""A pre-trained sentence encoder beside BM25: first prototypes, and the answers by default."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.lib.results import Row
from experiments.public_pairs.sets import PairSet
from experiments.retrieval import edits
from experiments.retrieval.edits import BM25, Scores, compared_rows, measure, retrieved
from redraft.editing.substitution import SubstitutionEditor
from redraft.editing.value_table import ValueTable
from redraft.metrics.exact_match import is_same_output
from redraft.model import RetrieveAndEdit
from redraft.retrieval.base import Retriever
from redraft.retrieval.fused import EncoderRetriever
from redraft.retrieval.published_encoder import read_encoder
from redraft.training.fit import FitOptions
from redraft.training.fit_choosing import fit_choosing

VARIANT = "encoder"
ANSWERED = "answered"
METRICS = {**edits.METRICS, ANSWERED: "default editor, right %"}


def encoder_rows(sets: Sequence[PairSet], encoder: Path) -> Iterator[Row]:
    """Yield BM25, the encoder and both fused on every set, smallest first, and the means."""
    read = read_encoder(encoder)

    def score(pairs: PairSet) -> Iterator[tuple[str, Scores]]:
        fused = EncoderRetriever.build(pairs.train, read)
        editor = SubstitutionEditor(ValueTable.learn(pairs.train))
        retrievers: dict[str, Retriever] = {
            BM25: fused.bm25,
            "encoder alone": fused.vectors,
            "encoder": fused,
        }
        for name, retriever in retrievers.items():
            own = dict(measure(retrieved(pairs, retriever), pairs, editor))
            if retriever is not fused.vectors:
                own[ANSWERED] = _answered(pairs, retriever)
            yield name, own

    smallest_first = sorted(sets, key=lambda pairs: len(pairs.train))
    yield from compared_rows(smallest_first, score, variant=VARIANT)


def _answered(pairs: PairSet, retriever: Retriever) -> list[float]:
    """Return 100 for each question that the untrained default editor answers right, else 0."""
    model = RetrieveAndEdit(retriever, fit_choosing(pairs.train, retriever, FitOptions()))
    answers = model.predict([example.x for example in pairs.asked])
    return [
        100.0 * bool(candidates and is_same_output(candidates[0].output, example.y))
        for example, candidates in zip(pairs.asked, answers, strict=True)
    ]
