"""Presets: settings for few pairs, many pairs, pairs of several projects, and the paper.

Each lists only the differences from the defaults of the dataclasses, with reasons. A preset is a
function of the number of training examples, which returns the tables of a TOML file. `choose`
says which one `redraft fit` uses.
"""

import math
from collections.abc import Callable
from typing import Any

from redraft.config.ranges import shown
from redraft.errors import ConfigError

Tables = dict[str, dict[str, dict[str, Any]]]
"""Settings by part, table and name."""

SMALL = 5_000
"""Examples below which a data set is small."""

EPOCHS = 36
"""Epochs over a small data set; `few` trains LONGER times as long."""

LONGER = 4
FEW_EPOCHS = 3
"""Up to this many epochs a network does not overfit, and dropout would only slow learning."""

BATCH_SIZE = 16
MAX_OUTPUT_VOCAB = 10_000
"""Defaults of the editor's batch size and output vocabulary, on which the sizes below depend."""


def few(examples: int) -> Tables:
    """Below 5,000 pairs of one project: train long, and regularise against overfitting."""
    steps = LONGER * _steps(examples)
    return {
        "retriever": _small_retriever(),
        "editor": {
            "network": {
                "word_dropout": 0.15  # small datasets are memorised in any case; this hurts least
            },
            "encoding": _encoding(examples),
            "prototypes": {
                # half of the steps without a prototype: the editor also learns y
                "prototype_dropout": 0.5
            },
            "training": {
                **_schedule(steps),
                "ema_decay": 0.998,  # the mean of many steps' weights generalises better
            },
            "decoding": {
                "syntax": "auto"  # answers are short enough to be constrained to a syntax
            },
        },
    }


def many(examples: int) -> Tables:
    """5,000 pairs of one project and more: a fixed number of steps."""
    steps = 6_000
    return {
        "retriever": _large_retriever(),
        "editor": {
            "network": _dropout(steps, examples),
            "encoding": _encoding(examples),
            "training": _schedule(steps),
        },
    }


def projects(examples: int) -> Tables:
    """Pairs of several projects, by the key `package` of their meta: an n-gram cache.

    The editor is trained to be used in a project that it has not seen.
    """
    is_small = examples < SMALL
    steps = _steps(examples) if is_small else 6_000
    return {
        "retriever": _small_retriever() if is_small else _large_retriever(),
        "editor": {
            "network": _dropout(steps, examples),
            "encoding": _encoding(examples),
            "prototypes": {
                # at 0.2 the next token of dev was among the first ten 0.2 points less often in a
                # project and 1.1 across packages, and training took 1.3 times as long
                "prototype_dropout": 0.5
            },
            "training": _schedule(steps),
            "decoding": {
                "ngram_cache_neighbours": 100,
                # cached words repeat themselves: a larger exponent makes answers too long
                "length_penalty": 0.4,
            },
        },
    }


def paper(examples: int) -> Tables:  # noqa: ARG001
    """The sizes and the schedule of the paper's code on Hearthstone, whatever the data."""
    return {
        "retriever": {
            "network": {"concentration": 500.0, "bag_of_words": False},
            "encoding": {"min_count": 3, "pieces": 0},
        },
        "editor": {
            "network": {
                "architecture": "lstm",
                "copying": "positional",
                "word_width": 300,
                "width": 256,
                "decoder_layers": 4,
                "dropout": 0.0,
            },
            "encoding": {"reads_prototype_input": True},
            "augmentation": {"shared_words": False},  # ours, not the paper's
            "decoding": {"max_length": 150, "length_penalty": 0.0},
            "training": {"steps": 3_000},
        },
    }


PRESETS: dict[str, Callable[[int], Tables]] = {
    "few": few,
    "many": many,
    "projects": projects,
    "paper": paper,
}
TYPICAL = {"few": 1_000, "many": 20_000, "projects": 20_000, "paper": 533}
"""Training examples that a preset is shown for if there are no pairs to count."""


def choose(examples: int, *, projects: int = 1) -> str:
    """Return the name of the preset for this many training examples of this many projects."""
    if projects > 1:
        return "projects"
    return "few" if examples < SMALL else "many"


def preset(name: str, examples: int) -> Tables:
    """Return the settings of a preset for this many training examples."""
    if name not in PRESETS:
        raise ConfigError(f"no preset is called {shown(name)}; choose one of: {', '.join(PRESETS)}")
    return PRESETS[name](examples)


def _small_retriever() -> dict[str, dict[str, Any]]:
    """Return settings for a wide embedding that starts as a bag of words.

    On 533 Hearthstone cards LSTMs and subwords lowered the BLEU of retrieved outputs by 1 to 2,
    and raised it in no run (experiments/retrieval).
    """
    return {
        "network": {
            "word_width": 512,
            "width": 128,
            "embedding_dim": 512,
            "encoder_layers": 0,
            "decoder_layers": 1,
            "word_dropout": 0.2,
        },
        "encoding": {"pieces": 0},
        "training": {"steps": 400, "learning_rate": 3e-4},
    }


def _large_retriever() -> dict[str, dict[str, Any]]:
    """Return settings for an LSTM beside the bag of words, and unknown words read as subwords."""
    return {
        "network": {
            "word_width": 256,
            "width": 128,
            "embedding_dim": 512,
            "encoder_layers": 1,
            "decoder_layers": 2,
            "dropout": 0.1,
            "word_dropout": 0.2,
        },
        "training": {"steps": 400, "batch_size": 32, "learning_rate": 5e-4},
    }


def _steps(examples: int) -> int:
    """Return the steps of a number of epochs over a small data set, within bounds."""
    return min(max(EPOCHS * math.ceil(examples / BATCH_SIZE), 300), 1_200)


def _schedule(steps: int) -> dict[str, Any]:
    """Return a schedule with warm-up and decay."""
    return {"steps": steps, "learning_rate": 2e-3, "lr_decay": True}


def _encoding(examples: int) -> dict[str, Any]:
    """Return an output vocabulary without rare words, which are copied instead.

    Scoring rare words takes as long as everything else, and they are hardly learned.
    """
    return {"max_output_vocab": min(max(examples // 4, 2_000), MAX_OUTPUT_VOCAB)}


def _dropout(steps: int, examples: int) -> dict[str, Any]:
    """Return no dropout if the examples are seen only a few times."""
    return {} if steps * BATCH_SIZE / examples > FEW_EPOCHS else {"dropout": 0.0}
