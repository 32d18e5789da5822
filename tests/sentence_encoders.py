"""Sentence encoders of a few kilobytes, in the files that sentence-transformers writes."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save_model
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from redraft.models.bert import BertConfig

WORDS = "how many people live work in rome oslo greet meet noether euler curie".split()  # noqa: SIM905
VOCABULARY = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])}
CONFIG = BertConfig(
    words=len(VOCABULARY), positions=16, width=8, inner_width=12, layers=2, heads=2, epsilon=1e-6
)


def write_tokenizer(folder: Path) -> None:
    """Write a tokenizer of words, with a token at each end."""
    tokenizer = Tokenizer(models.WordLevel(VOCABULARY, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", None, [("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))


def write_bert(
    folder: Path, *, pooling: str = "mean", changed: Mapping[str, object] | None = None
) -> Path:
    """Write an encoder with random weights of BERT; `changed` are other entries of config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    write_tokenizer(folder)
    generator = np.random.default_rng(0)
    weights = {
        f"bert.{name}": generator.normal("LayerNorm.weight" in name, 0.5, shape).astype(np.float32)
        for name, shape in CONFIG.shapes().items()
    }
    save_file(weights, folder / "model.safetensors")
    settings = {
        "model_type": "bert",
        "vocab_size": CONFIG.words,
        "max_position_embeddings": CONFIG.positions,
        "type_vocab_size": CONFIG.segments,
        "hidden_size": CONFIG.width,
        "intermediate_size": CONFIG.inner_width,
        "num_hidden_layers": CONFIG.layers,
        "num_attention_heads": CONFIG.heads,
        "layer_norm_eps": CONFIG.epsilon,
        **(changed or {}),
    }
    (folder / "config.json").write_text(json.dumps(settings))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    mode = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token"}[pooling]
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({mode: True}))
    return folder


def write_onnx(
    folder: Path, *, inputs: tuple[str, ...] = ("input_ids",), words: int = len(VOCABULARY)
) -> Path:
    """Write an ONNX graph that looks up the vectors of the first `words` words."""
    folder.mkdir(parents=True, exist_ok=True)
    write_tokenizer(folder)
    table = np.random.default_rng(1).normal(0, 1, (words, 8)).astype(np.float32)
    axes = ["rows", "tokens"]
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])],
        "encoder",
        [helper.make_tensor_value_info(name, TensorProto.INT64, axes) for name in inputs],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*axes, 8])],
        [numpy_helper.from_array(table, "table")],
    )
    opset = [helper.make_opsetid("", 17)]
    save_model(helper.make_model(graph, opset_imports=opset, ir_version=9), folder / "model.onnx")
    return folder
