"""Train the systems of the completion experiment, and measure them in its settings."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from experiments.autocomplete.completions import measure_editor
from experiments.autocomplete.settings import (
    IN_PROJECT,
    STRICT,
    Build,
    Found,
    Functions,
    Setting,
    settings,
)
from experiments.lib.costs import COSTS, training_costs, training_seconds
from experiments.lib.results import Measured
from experiments.lib.settings import merged
from redraft.config.presets import FEW_EPOCHS
from redraft.editing.neural import NeuralEditor
from redraft.models.ngram_cache import NgramCache
from redraft.retrieval.base import Retriever
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.retrieval.encoder import DenseEncoder
from redraft.training.cache_gate import fit_cache
from redraft.training.editor_config import count_projects
from redraft.training.fit import FitOptions, Split, editor_config, retriever_config
from redraft.training.fit_neural import fit_editor, fit_encoder
from redraft.training.retriever_task import Target

Settings = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Size:
    """How much is trained and measured."""

    steps: int  # of an editor
    batch: int  # examples of a step
    retriever_steps: int
    asked: int  # functions of each held-out package
    fitted: int  # the same on dev, to fit caches
    decoded: int  # functions of all, whose bodies are written whole


SIZES = {
    "small": Size(steps=800, batch=8, retriever_steps=150, asked=12, fitted=16, decoded=60),
    "full": Size(steps=12_000, batch=16, retriever_steps=4_000, asked=20, fitted=16, decoded=200),
}
"""Few functions teach more in many small steps; the full size has the steps of the paper's code."""


class CompletionBench:
    """Trains systems once per seed, retrieves prototypes once per setting, and measures."""

    def __init__(
        self, strict: Functions, paper: Functions, size: Size, options: FitOptions, folder: Path
    ) -> None:
        self.strict = strict
        self.size = size
        self.options = options
        self.folder = folder / f"seed-{options.seed}"
        self.asked = settings(strict, paper, split="test", each=size.asked)
        self.dev = settings(strict, paper, split="dev", each=size.fitted)
        self._found: dict[tuple[str, str, str], Found] = {}

    def found(self, setting: Setting, name: str = "bm25", build: Build | None = None) -> Found:
        """Return the prototypes of a setting, retrieved once."""
        key = (name, setting.name, setting.split)
        if key not in self._found:
            self._found[key] = setting.retrieve(build or Bm25Retriever.build)
        return self._found[key]

    def editor(
        self, name: str, retriever: Retriever, changed: Settings | None = None
    ) -> tuple[NeuralEditor, dict[str, Any]]:
        """Return an editor trained with the prototypes of `retriever`, and its fields of a row."""
        steps = {
            "steps": self.size.steps,
            "batch_size": self.size.batch,
        }
        common = self.options.settings.get("editor", {})
        seen = self.size.steps * self.size.batch / len(self.strict.train)
        network = {"dropout": 0.0} if seen <= FEW_EPOCHS else {}
        tables = merged({"training": steps, "network": network}, common, changed or {})
        folder = self.folder / "".join(each if each.isalnum() else "-" for each in name)
        options = replace(self.options, folder=folder, settings={"editor": tables})
        editor = fit_editor(Split(self.strict.train, []), retriever, options)
        about = {
            **_costs(folder / "editor", editor.network),
            "config": {
                **asdict(
                    editor_config(
                        len(self.strict.train), options, projects=count_projects(self.strict.train)
                    )
                ),
                "encoding": asdict(editor.encoding.config),
            },
        }
        return editor, about

    def encoder(self, name: str, target: Target) -> tuple[DenseEncoder, dict[str, Any]]:
        """Return the encoder of a learned retriever, and its fields of a row."""
        steps = {"steps": self.size.retriever_steps}
        tables = merged({"training": steps}, self.options.settings.get("retriever", {}))
        options = replace(self.options, folder=self.folder / name, settings={"retriever": tables})
        encoder = fit_encoder(Split(self.strict.train, []), options, target=target)
        return encoder, {
            **_costs(self.folder / name / "retriever", encoder.network),
            "config": asdict(retriever_config(len(self.strict.train), options)),
        }

    def fit_cache(self, editor: NeuralEditor) -> NgramCache:
        """Return the cache of an editor, fitted on dev: in projects, and some across packages."""
        own, others = self.dev[IN_PROJECT], self.dev[STRICT]
        some = slice(None, None, 3)
        examples = [*own.asked, *others.asked[some]]
        return fit_cache(editor, examples, [*self.found(own), *self.found(others)[some]])

    def measure(
        self,
        system: str,
        setting: Setting,
        editor: NeuralEditor,
        about: Mapping[str, Any],
        *,
        found: Found | None = None,
        is_decoded: bool = True,
    ) -> Measured:
        """Measure an editor in a setting, with the prototypes of BM25 unless `found` has others."""
        decoded = self.size.decoded if is_decoded else 0
        found = self.found(setting) if found is None else found
        measured = measure_editor(system, setting, found, editor, decoded=decoded)
        return self.about(measured, about)

    def about(self, measured: Measured, about: Mapping[str, Any]) -> Measured:
        """Return what was measured with its seed, settings and costs."""
        costs = {name: about.get("costs", {}).get(name, 0.0) for name in COSTS}
        fields = {name: value for name, value in about.items() if name != "costs"}
        metrics = {**measured.row.metrics, **costs}
        row = replace(measured.row, seed=self.options.seed, metrics=metrics, **fields)
        return replace(measured, row=row)


def _costs(folder: Path, network: nn.Module) -> dict[str, Any]:
    """Return seconds, parameters and costs of the network that was trained in `folder`."""
    return {
        "train_seconds": training_seconds(folder),
        "parameters": sum(each.numel() for each in network.parameters()),
        "costs": training_costs(network, folder),
    }
