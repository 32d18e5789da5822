"""Validation of a saved editor: its settings must match its weights.

A downloaded settings file must not make prediction exhaust memory or run forever.
"""

from pathlib import Path

from redraft.config.ranges import MAX_OUTPUT
from redraft.editing.decoding import DecodingConfig
from redraft.models.config import EditNetworkConfig
from redraft.models.edit_network import EditNetwork, EditSizes
from redraft.models.ngram_cache import NgramCache
from redraft.models.weights import load_weights
from redraft.storage.checks import damaged, tensor_shapes, whole

_LARGEST_EXPONENT = 35.0
"""The limit of both weights of a cached position: exp of their sum must not overflow."""


def check_decoding(path: Path, decoding: DecodingConfig) -> None:
    """Raise ModelError unless `max_length` is set; the ranges of settings bound the others."""
    whole(path, "max_length", decoding.max_length, least=1, most=MAX_OUTPUT)


def check_network(path: Path, config: EditNetworkConfig, *, source_ids: int, weights: Path) -> None:
    """Raise ModelError if `config` describes more layers than the weights have tensors.

    `source_ids` is the number of sources. Tensor shapes are checked when the weights are loaded.
    """
    tensors = len(tensor_shapes(weights))
    whole(path, "decoder_layers", config.decoder_layers, least=0, most=tensors)
    if config.architecture == "lstm" and source_ids > tensors:
        raise damaged(weights, f"it holds another network than {path.name} describes")


def load_network(sizes: EditSizes, config: EditNetworkConfig, *, path: Path) -> EditNetwork:
    """Build the network and load its weights from `path`."""
    return load_weights(lambda: EditNetwork(sizes, config), path)


def load_cache(path: Path) -> NgramCache:
    """Load the n-gram cache from `path`."""
    cache = load_weights(NgramCache, path)
    for name in ("lengths", "ranks"):
        if float(getattr(cache, name).detach().max()) > _LARGEST_EXPONENT:
            raise damaged(path, f"a weight of {name} is above {_LARGEST_EXPONENT:g}")
    return cache
