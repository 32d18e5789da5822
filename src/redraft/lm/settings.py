"""Settings of a language model that are saved with a model; the address is never saved."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from redraft.config.ranges import Range, check_ranges
from redraft.config.toml import override
from redraft.errors import ConfigError
from redraft.lm.prompt import TEMPLATE, PromptTemplate, estimated_tokens
from redraft.storage.checks import damaged, read_json
from redraft.types import Example

SHOTS = Range(0, 100)
CONTEXT = Range(64, 1_000_000)
MAX_TOKENS = Range(1, 100_000)

MEASURED = 1000
"""Outputs whose lengths are measured."""


@dataclass(frozen=True)
class LmSettings:
    """How a language model is asked.

    `model` is its name at the endpoint; `shots` the number of examples in a prompt; `context` the
    tokens of prompt and output. Outputs are `multiline`, or end with the line.
    """

    model: str = ""
    is_chat: bool = False
    shots: Annotated[int, SHOTS] = 5
    context: Annotated[int, CONTEXT] = 2048
    max_tokens: Annotated[int, MAX_TOKENS] = 256
    multiline: bool = False
    template: str = TEMPLATE

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.max_tokens >= self.context:
            raise ConfigError(
                f"--lm-context {self.context}: leaves no room for outputs of about "
                f"{self.max_tokens:,} tokens; raise it"
            )

    @classmethod
    def of(cls, examples: Sequence[Example], **values: Any) -> "LmSettings":
        """Return settings for outputs as long as those of `examples`, with other `values`."""
        step = max(1, len(examples) // MEASURED)
        outputs = [examples[row].y for row in range(0, len(examples), step)]
        multiline = any("\n" in y.strip() for y in outputs)
        return cls(**{"max_tokens": _limit(outputs), "multiline": multiline, **values})

    def limit(self, shown: Sequence[Example]) -> int:
        """Return the most tokens to generate; fewer if all outputs that are `shown` are short."""
        if not shown:
            return self.max_tokens
        return min(self.max_tokens, _limit([example.y for example in shown]))

    @cached_property
    def prompt_template(self) -> PromptTemplate:
        """The parts of the template."""
        return PromptTemplate.parse(self.template)

    def save(self, path: Path) -> None:
        """Write the settings as JSON."""
        text = json.dumps(asdict(self), ensure_ascii=False, indent=2) + "\n"
        path.write_text(text, encoding="utf-8", errors="backslashreplace")

    @classmethod
    def load(cls, path: Path) -> "LmSettings":
        """Read and check the settings that `save` wrote."""
        saved = read_json(path)
        if not isinstance(saved, dict):
            raise damaged(path, "not the settings of a language model")
        settings = override(cls(), saved, where=str(path))
        PromptTemplate.parse(settings.template, source=str(path))
        return settings


def _limit(outputs: Sequence[str]) -> int:
    """Return the most tokens of an output like these, which may be half as long again."""
    longest = max(map(estimated_tokens, outputs), default=0)
    return min(16 + longest * 3 // 2, int(MAX_TOKENS.high))
