"""One-line descriptions of all settings, and the TOML file of `redraft config` with them."""

from collections.abc import Iterator, Mapping
from typing import Any

from redraft.config.toml import setting_names, toml_value

Parts = Mapping[str, Any]
"""The settings of each part, dataclasses by the names "retriever" and "editor"."""

TABLES = {
    "retriever.network": "The encoder of the retrievers task and input; others need no settings.",
    "retriever.encoding": "Vocabulary of the retriever.",
    "retriever.training": "Training of the retriever.",
    "editor.network": "The network of the neural editor.",
    "editor.encoding": "Vocabulary and sources of the editor.",
    "editor.prototypes": "Prototypes that the editor is trained on.",
    "editor.augmentation": "Changes to the training examples of the editor.",
    "editor.decoding": "Search for the best output; does not change the weights.",
    "editor.training": "Training of the editor.",
}

_ADAM = {
    "steps": "optimiser steps at most",
    "batch_size": "examples per step",
    "learning_rate": "peak learning rate of Adam",
}

SETTINGS = {
    "retriever.network.word_width": "size of word embeddings",
    "retriever.network.width": "size of LSTM states",
    "retriever.network.embedding_dim": "size of the vectors that are searched",
    "retriever.network.encoder_layers": "LSTM layers per input field; 0: a bag of words alone",
    "retriever.network.decoder_layers": "LSTM layers of the decoder, used only in training",
    "retriever.network.concentration": "kappa of the von Mises-Fisher noise; higher: less noise",
    "retriever.network.bag_of_words": "add a bag of words to the encoder",
    "retriever.network.dropout": "dropout rate between layers",
    "retriever.network.word_dropout": "share of input words dropped in training",
    "retriever.encoding.min_count": "occurrences below which a word is out of vocabulary",
    "retriever.encoding.pieces": "subwords that out-of-vocabulary words are split into; 0: none",
    **{f"retriever.training.{name}": text for name, text in _ADAM.items()},
    "editor.network.architecture": "transformer or lstm",
    "editor.network.copying": "pointer; positional, as in the paper; prototype, of y' alone; none",
    "editor.network.word_width": "size of word embeddings",
    "editor.network.width": "size of hidden states; a multiple of 8",
    "editor.network.decoder_layers": "layers of the decoder",
    "editor.network.dropout": "dropout rate between layers",
    "editor.network.word_dropout": "share of source words dropped in training",
    "editor.encoding.max_output_vocab": "words that can be generated; rarer ones can be copied",
    "editor.encoding.prototypes": "prototypes the encoder reads at once; 0: plain seq2seq",
    "editor.encoding.reads_prototype_input": "read the prototype's input beside its output",
    "editor.prototypes.cross_project": "share of examples with prototypes of other projects",
    "editor.prototypes.prototype_dropout": "share of examples without a prototype",
    "editor.augmentation.shared_words": "swap numbers and mask rare words that x and y share",
    "editor.decoding.beam_size": "hypotheses of the beam search",
    "editor.decoding.length_penalty": "exponent of the length that scores are divided by; 0: none",
    "editor.decoding.max_length": "tokens of an output at most; 0: a little above the longest",
    "editor.decoding.prototypes": "prototypes whose output distributions are mixed (equation 1)",
    "editor.decoding.ttt_steps": "steps of test-time training on the nearest examples; 0: none",
    "editor.decoding.ngram_cache_neighbours": "nearest outputs in the n-gram cache; 0: no cache",
    "editor.decoding.syntax": "syntax of every output: any, python, json, or auto to detect it",
    **{f"editor.training.{name}": text for name, text in _ADAM.items()},
    "editor.training.lr_decay": "warm the learning rate up, then lower it to 0 by the last step",
    "editor.training.ema_decay": "decay of the moving average of the weights; 0: no average",
}

_COLUMN = 36


def commented_toml(parts: Parts, *, title: str) -> str:
    """Return the settings as a TOML file with a comment on every table and setting."""
    lines = [f"# {title}"]
    for table, name, value in settings_of(parts):
        heading = f"[{table}]"
        if heading not in lines:
            lines += ["", f"# {TABLES[table]}", heading]
        assignment = f"{name} = {toml_value(value)}"
        lines.append(f"{assignment:<{_COLUMN}}  # {SETTINGS[f'{table}.{name}']}")
    return "\n".join(lines) + "\n"


def settings_of(parts: Parts) -> Iterator[tuple[str, str, Any]]:
    """Yield the table, name and value of every setting."""
    for part, config in parts.items():
        for full in setting_names(type(config)):
            table, _, name = full.partition(".")
            yield f"{part}.{table}", name, getattr(getattr(config, table), name)
