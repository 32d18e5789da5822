"""The retriever that did best on held-out training pairs, with the table it was chosen by."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from redraft.index.neighbours import Neighbours
from redraft.retrieval.base import Retriever
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.retrieval.bow import BowRetriever
from redraft.retrieval.fused import EncoderRetriever
from redraft.retrieval.reranked import RerankedRetriever
from redraft.storage.artifact import Artifact
from redraft.storage.checks import damaged, entry, read_json, real, whole
from redraft.types import Example, Input

CANDIDATES: dict[str, type[Retriever]] = {
    kind.name: kind for kind in (Bm25Retriever, BowRetriever, EncoderRetriever, RerankedRetriever)
}
"""Retrievers to choose from: the encoder only if one is named. The others train a network, and BM25
is the one to beat."""

SELECTION, CHOSEN = "selection.json", "chosen"


@dataclass(frozen=True)
class MeasuredRetriever:
    """The edits of a retriever's first prototypes on held-out pairs, in per cent.

    `similarity` is the mean BLEU of the edited outputs, `exact` the share that is right, `gain` the
    difference in similarity to BM25 with its 95 % interval.
    """

    name: str
    similarity: float
    exact: float
    gain: float
    low: float
    high: float


@dataclass(frozen=True)
class Selection:
    """The retriever that was chosen, and the scores of all on `pairs` held-out pairs."""

    chosen: str
    pairs: int
    measured: tuple[MeasuredRetriever, ...]

    @property
    def reason(self) -> str:
        """The rule that decided, in a sentence."""
        if not self.measured:
            return f"{self.chosen}: too few pairs to hold any out"
        if self.chosen != Bm25Retriever.name:
            return f"{self.chosen}: its edits are the most similar, surely more than BM25's"
        return f"{self.chosen}: no other retriever's edits are surely more similar"

    @property
    def text(self) -> str:
        """The reason and the table, as lines for a terminal."""
        lines = [self.reason]
        if self.measured:
            lines.append(
                f"  edits of {self.pairs} first prototypes, gains over BM25 with interval:"
            )
        for row in self.measured:
            line = f"  {row.name:<9} {row.similarity:5.1f} BLEU {row.exact:5.1f} % right"
            if row.name != Bm25Retriever.name:
                line += f" {row.gain:+6.1f} ({row.low:+.1f} to {row.high:+.1f})"
            lines.append(line)
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return the selection as a JSON object."""
        measured = [asdict(row) for row in self.measured]
        return {"chosen": self.chosen, "pairs": self.pairs, "measured": measured}

    @classmethod
    def from_json(cls, saved: Any, path: Path) -> "Selection":
        """Return the selection that `to_json` made `saved` of; errors name the `path`."""
        chosen = entry(path, saved, "chosen", str)
        if chosen not in CANDIDATES:
            raise damaged(path, "the chosen retriever is unknown")
        pairs = whole(path, "pairs", entry(path, saved, "pairs", int), least=0, most=2**53)
        rows = []
        for row in entry(path, saved, "measured", list):
            numbers = {
                name: real(path, name, entry(path, row, name, float), least=-100, most=100)
                for name in ("similarity", "exact", "gain", "low", "high")
            }
            rows.append(MeasuredRetriever(entry(path, row, "name", str), **numbers))
        return cls(chosen, pairs, tuple(rows))


class AutoRetriever(Retriever):
    """A retriever that was chosen by its edits; everything is passed on to it."""

    name = "auto"

    def __init__(self, chosen: Retriever, selection: Selection) -> None:
        self.examples = chosen.examples
        self.chosen = chosen
        self.selection = selection

    @property
    def inverse_temperature(self) -> float:
        """The factor of the distance of the chosen retriever."""
        return self.chosen.inverse_temperature

    def search(
        self, inputs: Sequence[Input], k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Neighbours:
        """Return the k nearest rows for each input."""
        return self.chosen.search(inputs, k, allowed=allowed)

    def add(self, examples: Sequence[Example]) -> Self:
        """Return a retriever with `examples` appended; nothing is chosen anew."""
        return self._over(self.chosen.add(examples))

    def remove(self, rows: Sequence[int]) -> Self:
        """Return a retriever without the examples in `rows`."""
        return self._over(self.chosen.remove(rows))

    def replace(self, rows: Sequence[int], examples: Sequence[Example]) -> Self:
        """Remove the examples in `rows` and append `examples`."""
        return self._over(self.chosen.replace(rows, examples))

    def with_examples(self, examples: Sequence[Example]) -> Self:
        """Return the chosen retriever over other examples."""
        return self._over(self.chosen.with_examples(examples))

    def _over(self, chosen: Retriever) -> Self:
        return type(self)(chosen, self.selection)

    def save(self, folder: Path) -> None:
        """Write the selection and the chosen retriever."""
        text = json.dumps(self.selection.to_json(), indent=2) + "\n"
        (folder / SELECTION).write_text(text, encoding="utf-8")
        (folder / CHOSEN).mkdir()
        self.chosen.save(folder / CHOSEN)

    @classmethod
    def load(cls, artifact: Artifact, examples: Sequence[Example]) -> Self:
        """Return a saved retriever over its examples."""
        path = artifact.path(SELECTION)
        selection = Selection.from_json(read_json(path), path)
        chosen = CANDIDATES[selection.chosen].load(artifact.part(CHOSEN), examples)
        return cls(chosen, selection)
