"""Boosted trees, evaluated all at once, against a walk from the root of each."""

import math
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from redraft.completion.gradient_boosting import BoostedTrees


def random_trees(seed: int, *, trees: int = 5, features: int = 4) -> BoostedTrees:
    """Complete trees of depth 2: nodes 0 to 2 are inner nodes, 3 to 6 leaves."""
    rng = np.random.default_rng(seed)
    inner = np.arange(7) < 3
    children = np.arange(7)
    return BoostedTrees(
        rng.integers(features, size=(trees, 7)).astype(np.int16),
        rng.normal(size=(trees, 7)).astype(np.float32),
        np.tile(np.where(inner, 2 * children + 1, children), (trees, 1)).astype(np.int16),
        np.tile(np.where(inner, 2 * children + 2, children), (trees, 1)).astype(np.int16),
        np.where(inner, 0, rng.normal(size=(trees, 7))).astype(np.float32),
        depth=2,
    )


def walked(trees: BoostedTrees, row: np.ndarray) -> float:
    total = 0.0
    for tree in range(len(trees.feature)):
        node = 0
        while trees.left[tree, node] != node:
            is_left = row[trees.feature[tree, node]] <= trees.threshold[tree, node]
            node = (trees.left if is_left else trees.right)[tree, node]
        total += float(trees.value[tree, node])
    return 1 / (1 + math.exp(-total))


@given(st.integers(0, 1000), st.integers(0, 20))
def test_probabilities_are_those_of_a_walk(seed: int, rows: int) -> None:
    trees = random_trees(seed)
    features = np.random.default_rng(seed + 1).normal(size=(rows, 4)).astype(np.float32)
    expected = [walked(trees, row) for row in features]
    np.testing.assert_allclose(trees.probabilities(features), expected, rtol=1e-5)


def test_saved_trees_are_loaded_as_they_were(tmp_path: Path) -> None:
    trees = random_trees(0)
    trees.save(tmp_path / "trees.npz")
    loaded = BoostedTrees.load(tmp_path / "trees.npz")
    features = np.random.default_rng(0).normal(size=(9, 4)).astype(np.float32)
    assert loaded.probabilities(features).tolist() == trees.probabilities(features).tolist()
