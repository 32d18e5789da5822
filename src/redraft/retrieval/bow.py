"""Bag-of-words retrieval: cosine similarity of word counts, the paper's lexical baseline."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from redraft.retrieval.words import WordRetriever
from redraft.storage.artifact import Artifact
from redraft.storage.checks import check_starts, check_values, damaged, read_array
from redraft.storage.disk import chunks
from redraft.text.vocabulary import Vocabulary
from redraft.text.words import words
from redraft.types import Example

_ARRAYS = {"data": np.float32, "indices": np.int32, "indptr": np.int32}


class BowRetriever(WordRetriever):
    """The paper's lexical baseline: the distance is 1 − cosine of the word counts."""

    name = "bow"

    def __init__(
        self, examples: Sequence[Example], vocabulary: Vocabulary, vectors: sparse.csr_array
    ) -> None:
        self.examples = examples
        self.vocabulary = vocabulary
        self.vectors = vectors  # (N, V), rows of unit length

    @classmethod
    def build(cls, examples: Sequence[Example]) -> Self:
        """Return a retriever over `examples`."""
        vocabulary = Vocabulary.build(words(example.x) for example in examples)
        parts = [
            unit_vectors([words(example.x) for example in chunk], vocabulary)
            for chunk in chunks(examples)
        ]
        vectors = sparse.vstack([unit_vectors([], vocabulary), *parts], "csr")
        return cls(examples, vocabulary, vectors)

    def distances(self, bags: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        """Return 1 − cosine of each bag with each example: (B, N)."""
        cosines = (unit_vectors(bags, self.vocabulary) @ self.vectors.T).toarray()
        return np.asarray(1 - cosines, np.float32).clip(min=0)

    def save(self, folder: Path) -> None:
        """Write the vocabulary and the sparse matrix."""
        self.vocabulary.save(folder / "vocabulary.txt")
        for name, dtype in _ARRAYS.items():
            array = np.asarray(getattr(self.vectors, name), dtype)
            np.save(folder / f"{name}.csr.npy", array, allow_pickle=False)

    @classmethod
    def load(cls, artifact: Artifact, examples: Sequence[Example]) -> Self:
        """Return a saved retriever; its matrix is checked, since SciPy does not check indices."""
        vocabulary = Vocabulary.load(artifact.path("vocabulary.txt"))
        rows, columns = len(examples), len(vocabulary)
        paths = {name: artifact.path(f"{name}.csr.npy") for name in _ARRAYS}
        data, indices, starts = (
            np.array(read_array(paths[name], dtype, (None,))) for name, dtype in _ARRAYS.items()
        )
        if len(indices) != len(data):
            raise damaged(paths["indices"], f"{len(data):,} values have {len(indices):,} columns")
        check_starts(paths["indptr"], starts, count=rows, size=len(data))
        check_values(paths["indices"], "the columns", indices, least=0, most=columns - 1)
        check_values(paths["data"], "the cosines", data, least=0, most=1.01)
        vectors = sparse.csr_array((data, indices, starts), shape=(rows, columns))
        return cls(examples, vocabulary, vectors)


def unit_vectors(bags: Sequence[Sequence[str]], vocabulary: Vocabulary) -> sparse.csr_array:
    """Return word counts (B, V), each row divided by the Euclidean norm of its bag.

    The norm includes words outside of the vocabulary, so rows with OOV words are shorter than 1.
    """
    values: list[float] = []
    columns: list[int] = []
    starts = [0]
    for bag in bags:
        counts = Counter(bag)
        norm = sum(count * count for count in counts.values()) ** 0.5
        in_vocabulary = [(word, count) for word, count in counts.items() if word in vocabulary]
        columns += vocabulary.encode(word for word, _ in in_vocabulary)
        values += [count / norm for _, count in in_vocabulary]
        starts.append(len(columns))
    arrays = (np.array(values, np.float32), np.array(columns, np.int32), np.array(starts, np.int32))
    return sparse.csr_array(arrays, shape=(len(bags), len(vocabulary)))
