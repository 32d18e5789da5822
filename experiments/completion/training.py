"""Trains what ranks suggestions: the weights of similar functions and the boosted trees."""

import random
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from experiments.completion.projects import CutProject, is_right, prefixes
from redraft.completion.continuations import MIN_WIDTH
from redraft.completion.gradient_boosting import BoostedTrees
from redraft.completion.ngram_index import NgramIndex
from redraft.completion.project_session import ProjectSession
from redraft.completion.renaming import Renaming
from redraft.completion.similar_functions import (
    is_same_function,
    similar_functions,
    similarities,
)
from redraft.mining.python_functions import mine_content
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.text.tokenizer import Tokenizer
from redraft.types import Example, Prototype

RETRIEVED = 40
ROUNDS = 160
DEPTH = 6
PENALTY = 1e-3


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
            mined = mine_content(text, name=file, package=package, documented_only=False)
            examples += mined if isinstance(mined, list) else []
        return cls(project, NgramIndex.build(examples), Bm25Retriever.build(examples))

    def retrieved(self, example: Example) -> list[Prototype]:
        """Return the nearest functions."""
        return self.retriever.retrieve([example.x], RETRIEVED)[0]

    def session(self, example: Example, weights: NDArray[np.float64]) -> ProjectSession:
        """Return the session of an asked function."""
        file = str(example.meta["file"])
        retrieved = self.retrieved(example)
        similar = similar_functions(example.x, retrieved, self.index, weights, file=file)
        return ProjectSession(example.x, similar, self.index, file)


def fit_similarity(projects: Iterable[IndexedProject]) -> NDArray[np.float64]:
    """Return the weights under which the softmax prefers functions that begin alike."""
    groups: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
    for indexed in projects:
        for asked in indexed.project.asked:
            features, begins = _candidates(indexed, asked.example)
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


def _candidates(indexed: IndexedProject, example: Example) -> tuple[list[list[float]], list[bool]]:
    """Return the features of candidate functions, and whether their bodies begin alike."""
    file = str(example.meta["file"])
    retrieved = indexed.retrieved(example)
    ranks = {id(prototype.example): rank for rank, prototype in enumerate(retrieved)}
    in_file = (indexed.index.examples[row] for row in indexed.index.rows_of_file.get(file, []))
    pool = {id(one): one for one in [*(p.example for p in retrieved), *in_file]}
    features: list[list[float]] = []
    begins: list[bool] = []
    for key, other in pool.items():
        if not is_same_function(other, example.x, file):
            features.append(similarities(example.x, other, rank=ranks.get(key), file=file))
            renamed = Renaming.between(other.x, example.x).apply(other.y)
            begins.append(renamed.strip()[:MIN_WIDTH] == example.y.strip()[:MIN_WIDTH])
    return features, begins


@dataclass(frozen=True)
class Ranking:
    """The continuations at one cursor: features and whether each is right."""

    cursor: str
    features: NDArray[np.float32]
    is_right: NDArray[np.bool_]


def rankings(
    indexed: IndexedProject, weights: NDArray[np.float64], rng: random.Random
) -> Iterator[Ranking]:
    """Yield the continuations at the cursors of all asked functions."""
    for asked in indexed.project.asked:
        session = indexed.session(asked.example, weights)
        body = asked.example.y
        for cursor, prefix in prefixes(body, rng):
            typed = Tokenizer().tokenize(prefix)
            if typed and typed[-1] == " ":
                typed.pop()
            found = session.continuations(typed)
            if found is None:
                continue
            rest = body[len(prefix.rstrip(" ")) :]
            texts = (session.text(typed, found, i) for i in range(len(found.first)))
            right = np.asarray([is_right(text, rest) for text in texts])
            if len(right):
                yield Ranking(cursor, found.features, right)


def fit_trees(rows: Sequence[Ranking], seed: int) -> BoostedTrees:
    """Train boosted trees on the continuations; a cursor weighs the root of their number."""
    import lightgbm

    features = np.concatenate([row.features for row in rows])
    labels = np.concatenate([row.is_right for row in rows])
    weights = np.concatenate(
        [np.full(len(row.is_right), 1 / np.sqrt(len(row.is_right))) for row in rows]
    )
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
