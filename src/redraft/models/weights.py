"""Load network weights from a file whose shapes are checked before anything is allocated."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch
from safetensors.torch import load_file
from torch import nn

from redraft.storage.checks import damaged, tensor_shapes

Network = TypeVar("Network", bound=nn.Module)

LARGEST_WEIGHT = 1e4
"""Larger weights are rejected: no training produces them, and products could overflow."""


def load_weights(build: Callable[[], Network], path: Path) -> Network:
    """Build a network with `build`, load its weights from `path` and return it in eval mode.

    `build` runs on the meta device first, where tensors have a shape but no memory. The caller must
    have bounded the number of layers, as modules are created even on the meta device.
    """
    shapes = tensor_shapes(path)
    with torch.device("meta"):
        expected = build().state_dict()
    if shapes.keys() != expected.keys():
        raise damaged(path, "it holds the weights of another network than the settings describe")
    for name, tensor in expected.items():
        if shapes[name] != ("F32", tuple(tensor.shape)):
            axes = ", ".join(map(str, tensor.shape))
            raise damaged(path, f"{name} must be float32 of shape ({axes})")
    weights = load_file(path)
    for name, tensor in weights.items():
        # False for NaN as well
        if not bool((tensor.abs() <= LARGEST_WEIGHT).all()):
            raise damaged(path, f"{name} has a weight that is not finite, or above 10,000")
    network = build()
    network.load_state_dict(weights)
    return network.eval()
