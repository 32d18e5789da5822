"""Retrieval without learning: the words that two inputs share, weighed by cosine or by BM25."""

import logging
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from scipy import sparse

from redraft.artifact import Artifact
from redraft.data.example import Example, Input, input_text
from redraft.data.filed import FiledExamples, chunks, remove_with, removed_on_error, scratch
from redraft.data.tokenizer import JOIN, Tokenizer
from redraft.data.vocabulary import Vocabulary
from redraft.retrieval.examples import exchanged
from redraft.retrieval.neighbours import Neighbours, nearest
from redraft.retrieval.postings import Postings
from redraft.retrieval.postings_builder import PostingsBuilder
from redraft.retrieval.retriever import Retriever

if TYPE_CHECKING:
    from typing_extensions import Self

_BATCH = 64
_COMPARED = 10_000_000
"""Inputs compared at once, and distances: bounds their dense matrix."""


def words(x: Input) -> list[str]:
    """The input's tokens in lower case, without white space."""
    tokens = Tokenizer().tokenize(input_text(x))
    return [token.lower() for token in tokens if not token.isspace() and token != JOIN]


def shared_words(x: Input, other: Input) -> dict[str, list[str]]:
    """For each field the words that both inputs have, in the order of the first."""
    shared = {}
    for name, text in x.items():
        known = set(words({name: other.get(name, "")}))
        shared[name] = [word for word in dict.fromkeys(words({name: text})) if word in known]
    return shared


class WordRetriever(Retriever):
    """A retriever that compares bags of words; a subclass says how."""

    @classmethod
    @abstractmethod
    def build(cls, examples: Sequence[Example]) -> "Self":
        """The retriever over these examples."""

    def add(self, examples: Sequence[Example]) -> "Self":
        """The retriever over these examples too; counting words again takes no time."""
        return self.replace([], examples)

    def remove(self, rows: Sequence[int]) -> "Self":
        """The retriever without these examples."""
        return self.replace(rows, [])

    def replace(self, rows: Sequence[int], examples: Sequence[Example]) -> "Self":
        """The retriever over other examples, all of it built at once."""
        return self.build(exchanged(self.examples, rows, examples))

    def over(self, examples: Sequence[Example]) -> "Self":
        """The retriever over other examples, built anew."""
        return self.build(examples)

    @abstractmethod
    def distances(self, bags: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        """How far each bag is from each example: (B, N)."""

    def search(
        self, inputs: Sequence[Input], k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Neighbours:
        """The k nearest rows for each input."""
        parts = []
        batch = max(1, min(_BATCH, _COMPARED // max(1, len(self.examples))))
        for start in range(0, len(inputs), batch):
            bags = [words(x) for x in inputs[start : start + batch]]
            parts.append(nearest(self.distances(bags), k, allowed=allowed))
        return Neighbours.join(parts)


class LexicalRetriever(WordRetriever):
    """The paper's: cosine of word counts; the distance is one minus it."""

    name = "lexical"

    def __init__(
        self, examples: Sequence[Example], vocabulary: Vocabulary, vectors: sparse.csr_array
    ) -> None:
        self.examples = examples
        self.vocabulary = vocabulary
        self.vectors = vectors  # (N, V), rows of unit length

    @classmethod
    def build(cls, examples: Sequence[Example]) -> "Self":
        """The retriever over these examples."""
        vocabulary = Vocabulary.build(words(example.x) for example in examples)
        parts = [
            unit_vectors([words(example.x) for example in part], vocabulary)
            for part in chunks(examples)
        ]
        vectors = sparse.vstack([unit_vectors([], vocabulary), *parts], "csr")
        return cls(examples, vocabulary, vectors)

    def distances(self, bags: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        """One minus the cosine."""
        cosines = (unit_vectors(bags, self.vocabulary) @ self.vectors.T).toarray()
        return np.asarray(1 - cosines, np.float32).clip(min=0)

    def save(self, folder: Path) -> None:
        """Write the vocabulary and the sparse matrix."""
        self.vocabulary.save(folder / "vocabulary.txt")
        names = ("data", "indices", "indptr")
        save_file({n: getattr(self.vectors, n) for n in names}, folder / "vectors.safetensors")

    @classmethod
    def load(cls, artifact: Artifact, examples: Sequence[Example]) -> "Self":
        """The retriever that was saved."""
        vocabulary = Vocabulary.load(artifact.path("vocabulary.txt"))
        arrays = load_file(artifact.path("vectors.safetensors"))
        parts = (arrays["data"], arrays["indices"], arrays["indptr"])
        vectors = sparse.csr_array(parts, shape=(len(examples), len(vocabulary)))
        return cls(examples, vocabulary, vectors)


def unit_vectors(bags: Sequence[Sequence[str]], vocabulary: Vocabulary) -> sparse.csr_array:
    """Counts of known words (B, V), each row divided by the length of its whole bag."""
    values: list[float] = []
    columns: list[int] = []
    starts = [0]
    for bag in bags:
        counts = Counter(bag)
        length = sum(count * count for count in counts.values()) ** 0.5
        known = [(word, count) for word, count in counts.items() if word in vocabulary]
        columns += vocabulary.encode(word for word, _ in known)
        values += [count / length for _, count in known]
        starts.append(len(columns))
    parts = (np.array(values, np.float32), np.array(columns, np.int32), np.array(starts, np.int32))
    return sparse.csr_array(parts, shape=(len(bags), len(vocabulary)))


def _bm25s() -> Any:
    """The library, told not to tell of every index it builds."""
    import bm25s

    logging.getLogger("bm25s").setLevel(logging.WARNING)
    return bm25s


class Bm25Retriever(WordRetriever):
    """The peer to beat: BM25 (Lucene's), its score s as the distance 1 / (1 + s).

    Few examples are scored in memory, all at once; those in a file by postings beside it.
    """

    name = "bm25"

    def __init__(self, examples: Sequence[Example], scorer: Any) -> None:
        self.examples = examples
        self.scorer = scorer

    @classmethod
    def build(cls, examples: Sequence[Example]) -> "Self":
        """The retriever over these examples."""
        if isinstance(examples, FiledExamples):
            return cls(examples, _postings(examples.folder, examples))
        scorer = _bm25s().BM25()
        # the library counts no words of no examples: one without words stands in
        bags = [words(example.x) for example in examples] or [[""]]
        scorer.index(bags, show_progress=False)
        return cls(examples, scorer)

    def replace(self, rows: Sequence[int], examples: Sequence[Example]) -> "Self":
        """The retriever over other examples; the words of those in a file are not counted again."""
        known = exchanged(self.examples, rows, examples)
        if not (isinstance(self.scorer, Postings) and isinstance(known, FiledExamples)):
            return self.build(known)
        removed = np.asarray(rows, np.int64)
        before = self.scorer, removed
        return type(self)(known, _postings(known.folder, examples, before=before))

    def search(
        self, inputs: Sequence[Input], k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Neighbours:
        """The k nearest rows for each input."""
        if not isinstance(self.scorer, Postings):
            return super().search(inputs, k, allowed=allowed)
        found = [self.scorer.search(words(x), k, allowed=allowed) for x in inputs]
        return Neighbours.join(found)

    def scores(self, bags: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        """BM25 of each bag with each example: (B, N)."""
        if isinstance(self.scorer, Postings):
            return np.stack([self.scorer.score_all(bag) for bag in bags])
        known = [self.scorer.get_tokens_ids(list(bag)) for bag in bags]
        scores = np.stack([self.scorer.get_scores_from_ids(bag) for bag in known])
        return scores[:, : len(self.examples)]

    def distances(self, bags: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        """One over one plus the score: 1 for nothing in common."""
        return np.asarray(1 / (1 + self.scores(bags)), np.float32)

    def save(self, folder: Path) -> None:
        """Write the scorer's own files: arrays without pickle, and JSON."""
        if isinstance(self.scorer, Postings):
            self.scorer.save(folder)
        else:
            self.scorer.save(folder, show_progress=False)

    @classmethod
    def load(cls, artifact: Artifact, examples: Sequence[Example]) -> "Self":
        """The retriever that was saved."""
        if isinstance(examples, FiledExamples):
            return cls(examples, Postings.load(artifact, len(examples)))
        names: Mapping[str, str] = {
            "data_name": "data.csc.index.npy",
            "indices_name": "indices.csc.index.npy",
            "indptr_name": "indptr.csc.index.npy",
            "vocab_name": "vocab.index.json",
            "params_name": "params.index.json",
        }
        stored = {argument: artifact.path(name).resolve() for argument, name in names.items()}
        scorer = _bm25s().BM25.load(artifact.folder, show_progress=False, **stored)
        return cls(examples, scorer)


def _postings(
    folder: Path,
    examples: Sequence[Example],
    *,
    before: tuple[Postings, NDArray[np.int64]] | None = None,
) -> Postings:
    """The postings of examples, after others without some rows if there are any before."""
    made = scratch(folder)
    with removed_on_error(made):
        builder = PostingsBuilder(made)
        if before is not None:
            builder.take(*before)
        for part in chunks(examples):
            builder.add(words(example.x) for example in part)
        postings = builder.finish()
    remove_with(postings, made)
    return postings
