"""Greetings, each of a name that no other has, and tiny models that learned to greet anyone."""

from functools import cache
from typing import Any

from redraft import Example, RetrieveAndEdit
from redraft.training.fit import FitOptions

NAMES = (
    *("Ada", "Boole7", "Curie", "Dirac", "EulerLeo", "Fermi", "Gauss", "Hopper_G", "Ito", "Jacobi"),
    *("Kepler", "Lovelace", "Maxwell", "Noether", "Ohm", "Planck", "Quine", "Raman", "Shannon"),
    *("Turing", "Ulam", "Volta", "Wiles", "Young", "Zeno", "Abel", "Bohr", "Cantor", "Dijkstra"),
    "Erdos",
)
SETTINGS: dict[str, Any] = {
    "retriever": {
        "network": {"word_width": 16, "width": 8, "embedding_dim": 16},
        "training": {"steps": 4},
    },
    "editor": {
        "network": {
            "word_width": 32,
            "width": 32,
            "decoder_layers": 1,
            "word_dropout": 0.0,
        },
        "prototypes": {"prototype_dropout": 0.0},
        "decoding": {"max_length": 20, "syntax": "any"},
        "training": {
            "steps": 150,
            "batch_size": 10,
            "learning_rate": 5e-3,
            "lr_decay": False,
            "ema_decay": 0.0,
        },
    },
}


def greeting(name: str) -> Example:
    """A pair such as "greet Ada" → print("hello Ada")."""
    return Example({"text": f"greet {name}"}, f'print("hello {name}")', {"initial": name[0]})


def settings(steps: int) -> dict[str, Any]:
    """The same for so many steps of the editor."""
    editor = SETTINGS["editor"]
    return {**SETTINGS, "editor": {**editor, "training": {**editor["training"], "steps": steps}}}


@cache
def greeter(count: int = 10, retriever: str = "task") -> RetrieveAndEdit:
    """A model of the first so many greetings; tests share it and must not change it."""
    examples = [greeting(name) for name in NAMES[:count]]
    options = FitOptions(SETTINGS)
    return RetrieveAndEdit.fit(examples, retriever=retriever, editor="neural", options=options)
