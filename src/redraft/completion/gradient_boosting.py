"""Gradient-boosted decision trees: a probability for each row of features.

Trained elsewhere and saved as plain arrays; only evaluated here.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class BoostedTrees:
    """Binary trees of equal depth limit, one row per tree.

    An inner node goes left if its feature is at most the threshold. A leaf is its own child.
    """

    feature: NDArray[np.int16]  # (T, N)
    threshold: Floats  # (T, N)
    left: NDArray[np.int16]  # (T, N)
    right: NDArray[np.int16]  # (T, N)
    value: Floats  # (T, N), 0 for inner nodes
    depth: int

    @classmethod
    def load(cls, path: Path) -> "BoostedTrees":
        """Load the trees that `save` wrote."""
        with np.load(path, allow_pickle=False) as arrays:
            return cls(
                arrays["feature"],
                arrays["threshold"],
                arrays["left"],
                arrays["right"],
                arrays["value"],
                depth=int(arrays["depth"]),
            )

    def save(self, path: Path) -> None:
        """Write the trees as compressed arrays."""
        np.savez_compressed(
            path,
            feature=self.feature,
            threshold=self.threshold,
            left=self.left,
            right=self.right,
            value=self.value,
            depth=np.asarray(self.depth),
        )

    def probabilities(self, features: Floats) -> Floats:
        """Return the logistic function of the sum of all trees for each row (R, F): (R,)."""
        count, size = self.feature.shape
        roots = np.arange(count, dtype=np.int32) * size
        rows = np.arange(len(features), dtype=np.int32)[:, None] * features.shape[1]
        nodes = np.broadcast_to(roots, (len(features), count))
        for _ in range(self.depth):
            values = features.take(rows + self.feature.take(nodes))
            is_left = values <= self.threshold.take(nodes)
            nodes = roots + np.where(is_left, self.left.take(nodes), self.right.take(nodes))
        scores = self.value.take(nodes).sum(1)
        return np.asarray(1 / (1 + np.exp(-scores)), np.float32)
