"""Trains what ranks suggestions: the weights of similar functions and the boosted trees."""

import random
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from experiments.completion.projects import Asked, CutProject, buffer_of, cursors
from redraft.completion.continuations import MIN_WIDTH
from redraft.completion.cursor_evidence import SessionWords
from redraft.completion.evidence import Continuations
from redraft.completion.gradient_boosting import BoostedTrees
from redraft.completion.languages.python.language import PYTHON
from redraft.completion.ngram_index import NgramIndex
from redraft.completion.project_session import ProjectSession
from redraft.completion.renaming import Renaming
from redraft.completion.similar_functions import (
    Place,
    is_same_function,
    near_functions,
    similar_functions,
    similarities,
)
from redraft.completion.surroundings import Surroundings
from redraft.completion.word_classes import NEWLINE, SPACE
from redraft.editing.session import readable_prefix
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.text.tokenizer import Tokenizer
from redraft.types import Example, Prototype

RETRIEVED = 40
ROUNDS = 160
DEPTH = 6
PENALTY = 1e-3
MAX_WRONG = 200
"""Wrong continuations of a cursor that are trained on."""


@dataclass(frozen=True)
class IndexedProject:
    """A cut project with its index and its retriever."""

    project: CutProject
    index: NgramIndex
    retriever: Bm25Retriever

    @classmethod
    def of(cls, project: CutProject) -> "IndexedProject":
        """Mine and index what is left of the project."""
        examples: list[Example] = []
        for file, text in project.files.items():
            package = file.split("/")[0]
            mined = PYTHON.mine(text, name=file, package=package)
            examples += mined if isinstance(mined, list) else []
        return cls(project, NgramIndex.build(examples), Bm25Retriever.build(examples))

    def retrieved(self, example: Example) -> list[Prototype]:
        """Return the nearest functions."""
        return self.retriever.retrieve([example.x], RETRIEVED)[0]

    def session(self, asked: Asked, weights: NDArray[np.float64]) -> ProjectSession:
        """Return the session of an asked function, as the engine starts it."""
        x = asked.example.x
        around = Surroundings.of(*buffer_of(self.project.files[asked.file], asked, ""))
        place = Place(asked.file, around.line)
        retrieved = self.retrieved(asked.example)
        similar = similar_functions(x, retrieved, self.index, weights, place=place)
        return ProjectSession(x, similar, self.index, asked.file, around)


def fit_similarity(projects: Iterable[IndexedProject]) -> NDArray[np.float64]:
    """Return the weights under which the softmax prefers functions that begin alike."""
    groups: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
    for indexed in projects:
        for asked in indexed.project.asked:
            features, begins = _candidates(indexed, asked)
            if any(begins):
                target = np.asarray(begins, float)
                groups.append((np.asarray(features), target / target.sum()))
    width = groups[0][0].shape[1]

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        value, gradient = PENALTY * weights @ weights, 2 * PENALTY * weights
        for features, target in groups:
            scores = features @ weights
            scores -= scores.max()
            logs = scores - np.log(np.exp(scores).sum())
            value -= target @ logs / len(groups)
            gradient += features.T @ (np.exp(logs) - target) / len(groups)
        return float(value), gradient

    return np.asarray(minimize(loss, np.zeros(width), jac=True, method="L-BFGS-B").x)


def _candidates(indexed: IndexedProject, asked: Asked) -> tuple[list[list[float]], list[bool]]:
    """Return the features of candidate functions, and whether their bodies begin alike."""
    x, body = asked.example.x, asked.example.y
    place = Place(asked.file, asked.body_line)
    retrieved = indexed.retrieved(asked.example)
    ranks = {id(prototype.example): rank for rank, prototype in enumerate(retrieved)}
    near = near_functions(indexed.index, place)
    pool = {id(one): one for one in [*(p.example for p in retrieved), *near]}
    features: list[list[float]] = []
    begins: list[bool] = []
    for key, other in pool.items():
        if not is_same_function(other, x, asked.file):
            features.append(similarities(x, other, rank=ranks.get(key), place=place))
            renamed = Renaming.between(other.x, x).apply(other.y)
            begins.append(renamed.strip()[:MIN_WIDTH] == body.strip()[:MIN_WIDTH])
    return features, begins


@dataclass(frozen=True)
class Ranking:
    """The continuations at one cursor: features, whether each is right, and its weight."""

    cursor: str
    features: NDArray[np.float32]
    is_right: NDArray[np.bool_]
    weight: NDArray[np.float64]

    @classmethod
    def sample(
        cls,
        cursor: str,
        features: NDArray[np.float32],
        is_right: NDArray[np.bool_],
        rng: random.Random,
    ) -> "Ranking":
        """Keep the right continuations and a sample of the wrong ones, which stands for all.

        A cursor weighs the root of the number of its continuations.
        """
        right, wrong = np.flatnonzero(is_right), np.flatnonzero(~is_right).tolist()
        kept = np.asarray(rng.sample(wrong, min(len(wrong), MAX_WRONG)), np.int64)
        chosen = np.concatenate([right, kept])
        share = 1 / np.sqrt(len(is_right))
        weight = np.full(len(chosen), share)
        weight[len(right) :] *= len(wrong) / max(1, len(kept))
        return cls(cursor, features[chosen], is_right[chosen], weight)


def rankings(
    indexed: IndexedProject, weights: NDArray[np.float64], rng: random.Random
) -> Iterator[Ranking]:
    """Yield the continuations at the cursors of all asked functions."""
    for asked in indexed.project.asked:
        session = indexed.session(asked, weights)
        tokens = Tokenizer().tokenize(asked.example.y)
        for cursor in cursors(asked.example.y, rng):
            typed = readable_prefix(Tokenizer().tokenize(cursor.prefix))
            session.read_after(cursor.following)
            found = session.continuations(typed)
            if found is not None and len(found.first):
                rest = (
                    Tokenizer().tokenize(cursor.rest) if cursor.following else tokens[len(typed) :]
                )
                truth = session.words.encode(rest)
                is_right = _are_right(found, truth, session.words)
                yield Ranking.sample(cursor.name, found.features, is_right, rng)


def _are_right(
    found: Continuations, truth: Sequence[int], words: SessionWords
) -> NDArray[np.bool_]:
    """Return which continuations the true tokens begin with, white space before both aside."""
    is_space = np.isin(words.tables().classes, (NEWLINE, SPACE))
    end = found.occurrences.tokens
    wanted = np.full((len(end), end.shape[1]), -1)
    skipped = next((i for i, token in enumerate(truth) if not is_space[token]), len(truth))
    leading = np.argmin(is_space[end], 1)  # white space before the text of each occurrence
    for start in set(leading.tolist()):
        text = np.asarray(truth[skipped : skipped + end.shape[1] - start])
        wanted[leading == start, start : start + len(text)] = text
    is_leading = np.arange(end.shape[1]) < leading[:, None]
    right = np.cumprod((end == wanted) | is_leading, 1).astype(np.bool_)
    return np.asarray(right[found.first, found.length - 1])


def fit_trees(rows: Sequence[Ranking], seed: int) -> BoostedTrees:
    """Train boosted trees on the continuations of many cursors."""
    import lightgbm

    features = np.concatenate([row.features for row in rows])
    labels = np.concatenate([row.is_right for row in rows])
    weights = np.concatenate([row.weight for row in rows])
    settings = {
        "objective": "binary",
        "learning_rate": 0.08,
        "num_leaves": 31,
        "max_depth": DEPTH,
        "min_data_in_leaf": 100,
        "feature_fraction": 0.7,
        "bagging_fraction": 0.7,
        "bagging_freq": 1,
        "lambda_l2": 5.0,
        "seed": seed,
        "deterministic": True,
        "verbose": -1,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = lightgbm.Dataset(features, labels, weight=weights)
        booster = lightgbm.train(settings, data, num_boost_round=ROUNDS)
    return exported(booster.dump_model()["tree_info"], DEPTH)


def exported(trees: Sequence[dict[str, Any]], depth: int) -> BoostedTrees:
    """Return trees of at most `depth` splits, as the trainer writes them, as arrays."""
    tables = [_nodes(tree["tree_structure"]) for tree in trees]
    size = max(len(table) for table in tables)
    padded = [table + [(0, 0.0, 0, 0, 0.0)] * (size - len(table)) for table in tables]
    feature, threshold, left, right, value = (
        np.asarray([[node[column] for node in table] for table in padded]) for column in range(5)
    )
    return BoostedTrees(
        feature.astype(np.int16),
        threshold.astype(np.float32),
        left.astype(np.int16),
        right.astype(np.int16),
        value.astype(np.float32),
        depth=depth,
    )


def _nodes(root: dict[str, Any]) -> list[tuple[int, float, int, int, float]]:
    """Return the nodes of a tree: feature, threshold, children and value; a leaf is its child."""
    nodes: list[tuple[int, float, int, int, float]] = []

    def add(node: dict[str, Any]) -> int:
        place = len(nodes)
        nodes.append((0, 0.0, place, place, float(node.get("leaf_value", 0.0))))
        if "split_feature" in node:
            children = add(node["left_child"]), add(node["right_child"])
            nodes[place] = (int(node["split_feature"]), float(node["threshold"]), *children, 0.0)
        return place

    add(root)
    return nodes
