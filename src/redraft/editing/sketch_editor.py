"""A network over sketches: proposes outputs for an input, and tells how likely any output is.

Reads no prototype: on three question sets a network that does learns more slowly within the same
minutes (see experiments/public_pairs/log.md). The prototypes take part through the other proposals,
and as the sources that generated tokens are aligned with.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from redraft.editing.alignment import aligned
from redraft.editing.neural import NeuralEditor
from redraft.editing.session import CompletionSession, VerbatimSession
from redraft.editing.sketch import Masked, SketchModel, fill, mask_input, mask_output
from redraft.editing.value_table import MAX_OUTPUT, ValueTable
from redraft.storage.artifact import Artifact
from redraft.storage.checks import damaged, read_json
from redraft.text.phrases import Phrases, Unit
from redraft.types import Candidate, Input, Prototype

SKETCH = "sketch.json"


@dataclass(frozen=True, eq=False)
class SketchEditor:
    """A network trained on sketches, the model that writes them, and the table of values."""

    network: NeuralEditor
    model: SketchModel
    table: ValueTable

    completes: ClassVar[bool] = False  # a sketch has no values

    def wants(self, k: int) -> int:  # noqa: ARG002
        """Return 0: the network reads no prototype."""
        return 0

    def edit(
        self,
        inputs: Sequence[Input],
        prototypes: Sequence[Sequence[Prototype]],
        k: int = 1,
        *,
        generator: np.random.Generator | None = None,
    ) -> list[list[Candidate]]:
        """Return at most `k` candidates per input, best first."""
        masked = [mask_input(x, self.table) for x in inputs]
        sketches = [x.sketch for x in masked]
        generated = self.network.edit(sketches, [[] for _ in inputs], k, generator=generator)
        return [
            self._filled(x, candidates, retrieved)
            for x, candidates, retrieved in zip(masked, generated, prototypes, strict=True)
        ]

    def _filled(
        self, masked: Masked, sketches: Sequence[Candidate], prototypes: Sequence[Prototype]
    ) -> list[Candidate]:
        candidates: dict[str, Candidate] = {}
        for sketch in sketches:
            output = fill(masked, self.model.decode(sketch.output), self.table)
            if output is not None and output not in candidates:
                candidates[output] = replace(
                    aligned(masked.words.folded, output, prototypes),
                    score=sketch.score,
                    log_prob=sketch.log_prob,
                )
        return list(candidates.values())

    def log_probs(
        self,
        x: Input,
        prototypes: Sequence[Prototype],  # noqa: ARG002
        outputs: Sequence[str],
    ) -> list[tuple[float, int]]:
        """Return the log-probability of each output's sketch, and the number of its units."""
        masked = mask_input(x, self.table)
        sketches = [self.model.encode(mask_output(masked, y, self.table)) for y in outputs]
        return self.network.log_probs(masked.sketch, [], sketches)

    def start_session(self, x: Input, prototypes: Sequence[Prototype]) -> CompletionSession:  # noqa: ARG002
        """Return a session that completes from the prototypes: sketches have no prefixes."""
        return VerbatimSession(prototypes)

    def save(self, folder: Path) -> None:
        """Write the network and the phrases; the table is saved by the editor that has it."""
        self.network.save(folder)
        values = {"merges": self.model.phrases.merges, "units": list(self.model.names)}
        text = json.dumps(values, ensure_ascii=False)
        (folder / SKETCH).write_text(text, encoding="utf-8", errors="backslashreplace")

    @classmethod
    def load(cls, artifact: Artifact, table: ValueTable) -> "SketchEditor":
        """Load the editor that `save` wrote."""
        path = artifact.path(SKETCH)
        saved = read_json(path)
        try:
            merges = tuple((_unit(left), _unit(right)) for left, right in saved["merges"])
            units = [_unit(unit) for unit in saved["units"]]
        except (LookupError, TypeError, ValueError) as error:
            raise damaged(path, "not the phrases of sketches") from error
        model = SketchModel.of(Phrases(merges), units)
        return cls(NeuralEditor.load(artifact), model, table)


def _unit(tokens: Any) -> Unit:
    if not isinstance(tokens, list) or not all(type(token) is str and token for token in tokens):
        raise TypeError("a phrase is a list of tokens")
    if not 0 < sum(map(len, tokens)) <= MAX_OUTPUT:  # one unit of a sketch may be a whole output
        raise ValueError("a phrase is too long")
    return tuple(tokens)
