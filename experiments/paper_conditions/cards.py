"""Hearthstone with the paper's LSTMs, which copy from the prototype alone or from the input too."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict

from experiments.lib.bench import Bench, Settings
from experiments.lib.results import Measured
from experiments.lib.settings import merged
from redraft.training.editor_config import preset_config

SETTING = "hearthstone"
METRICS = {"bleu_yin": "BLEU yin", "bleu_paper": "BLEU paper", "exact": "exact %"}

PAPER = "copying from the prototype"
COPYING: Mapping[str, str] = {PAPER: "prototype", "copying from the input too": "positional"}
"""The sources of copied tokens, with the setting: Seq2Seq has no prototype, so under the paper's
condition it cannot copy."""

SYSTEMS = {"retrieve+edit": "task", "seq2seq": "none"}
"""The systems, and the retriever of each."""


def card_rows(condition: str, *, steps: int) -> Callable[[Bench], Iterator[Measured]]:
    """Return the measure of both systems under a condition, trained for `steps`."""

    def rows(bench: Bench) -> Iterator[Measured]:
        for system, retriever in SYSTEMS.items():
            settings = card_settings(COPYING[condition], steps=steps)
            yield bench.edited(system, condition, retriever, settings)[0]

    return rows


def card_settings(copying: str, *, steps: int) -> Settings:
    """Return the settings of the paper's editor with another copying and other steps.

    Scores are normalised by length: a name that cannot be copied is improbable, and without it the
    most probable output ends before the name.
    """
    changed = {
        "network": {"copying": copying},
        "training": {"steps": steps},
        "decoding": {"length_penalty": 1.0},
    }
    return merged(asdict(preset_config("paper", 0)), changed)
