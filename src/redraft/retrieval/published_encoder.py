"""Read a published sentence encoder: a sentence-transformers folder, or an ONNX file.

Of a folder, `config.json`, `tokenizer.json` and `model.safetensors` are read if the weights are
BERT's; otherwise the graph in `model.onnx` or `onnx/model.onnx`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from redraft.config.ranges import shown
from redraft.config.toml import build
from redraft.errors import ConfigError, MissingExtraError, ModelError
from redraft.models.bert import BertConfig, BertNetwork
from redraft.models.onnx_network import OnnxNetwork
from redraft.retrieval.sentence_encoder import (
    TOKENIZER,
    SentenceConfig,
    SentenceEncoder,
    SentenceNetwork,
    check_words,
    checked_bert,
    read_tokenizer,
)
from redraft.storage.checks import read_json, tensor_shapes

WEIGHTS, GRAPHS = "model.safetensors", ("model.onnx", "onnx/model.onnx")
_SIZES = {
    "words": "vocab_size",
    "positions": "max_position_embeddings",
    "segments": "type_vocab_size",
    "width": "hidden_size",
    "inner_width": "intermediate_size",
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "epsilon": "layer_norm_eps",
}


_POOLINGS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


def read_encoder(path: Path) -> SentenceEncoder:
    """Return the encoder at `path`: a folder, or an ONNX file; raise a ConfigError otherwise."""
    try:
        return _read(path)
    except (ModelError, OSError) as error:
        reason = str(error).replace("copy or fit the model again", "download the encoder again")
        raise ConfigError(f"--encoder: {reason}") from error


def _read(path: Path) -> SentenceEncoder:
    folder = path if path.is_dir() else path.parent
    if path.suffix == ".onnx" and not (folder / TOKENIZER).exists():
        folder = folder.parent  # sentence-transformers keeps graphs in a folder of their own
    if not path.exists() or not (folder / TOKENIZER).exists():
        raise ConfigError(
            f"--encoder {path}: has no {TOKENIZER}; name a folder that sentence-transformers "
            "wrote, or an ONNX file beside its tokenizer"
        )
    tokenizer = read_tokenizer(folder / TOKENIZER)
    network = _network(path, folder)
    longest = _object(folder / "sentence_bert_config.json").get("max_seq_length")
    config = SentenceConfig(_pooling(folder), longest if type(longest) is int else 256)
    if isinstance(network, BertNetwork):
        check_words(folder / TOKENIZER, tokenizer, network.config.words)
        longest = min(config.longest, network.config.positions)
        config = SentenceConfig(config.pooling, longest)
    return SentenceEncoder(tokenizer, network, config)


def _network(path: Path, folder: Path) -> SentenceNetwork:
    if not path.is_dir():
        return OnnxNetwork.read(path)
    settings = _object(folder / "config.json")
    kind = settings.get("model_type")
    if kind == "bert" and (folder / WEIGHTS).exists():
        return _bert(folder / WEIGHTS, settings)
    for name in GRAPHS:
        if (folder / name).exists():
            return OnnxNetwork.read(folder / name)
    raise ConfigError(
        f"--encoder {folder}: has no {GRAPHS[0]}, and no {WEIGHTS} of BERT (its model_type is "
        f"{shown(kind)}); export it to ONNX first"
    )


def _bert(path: Path, settings: Mapping[str, Any]) -> BertNetwork:
    """Return the network of published weights, which may have others beside those of BERT."""
    for name, expected in (("hidden_act", "gelu"), ("position_embedding_type", "absolute")):
        if settings.get(name, expected) != expected:
            raise ConfigError(
                f"--encoder {path}: {name} is not {expected}; export it to ONNX first"
            )
    sizes = {ours: settings[theirs] for ours, theirs in _SIZES.items() if theirs in settings}
    config = build(BertConfig, sizes, where=f"--encoder {path.parent}")
    try:
        from safetensors import safe_open
    except ModuleNotFoundError as error:
        raise MissingExtraError("safetensors", extra="encoders", purpose=str(path)) from error
    found, weights = tensor_shapes(path), {}
    prefix = "bert." if any(name.startswith("bert.") for name in found) else ""
    with safe_open(path, framework="np") as file:
        for name, shape in config.shapes().items():
            kind, actual = found.get(prefix + name, ("none", ()))
            if kind not in ("F32", "F16") or actual != shape:
                raise ConfigError(
                    f"--encoder {path}: {prefix + name} is not of shape {shape} as config.json "
                    "says, or not float32 or float16"
                )
            weights[name] = np.asarray(file.get_tensor(prefix + name), np.float32)
    return checked_bert(path, weights, config)


def _pooling(folder: Path) -> str:
    """Return how states are pooled: by the mean unless the folder says otherwise."""
    settings = _object(folder / "1_Pooling" / "config.json")
    modes = {name for name, value in settings.items() if name in _POOLINGS and value}
    named = settings.get("pooling_mode")  # since sentence-transformers 5
    pooling = named or "+".join(sorted(_POOLINGS[name] for name in modes)) or "mean"
    if pooling not in ("mean", "cls"):
        raise ConfigError(f"--encoder {folder}: its pooling is {shown(pooling)}, not mean or cls")
    return str(pooling)


def _object(path: Path) -> Mapping[str, Any]:
    """Return the JSON object in `path`, empty if there is no such file."""
    values = read_json(path) if path.exists() else {}
    return values if isinstance(values, dict) else {}
