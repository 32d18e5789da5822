"""Few-shot selection for LangChain: an example selector for its prompt templates."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from redraft.errors import MissingExtraError, PairsError
from redraft.lm.selection import FewShotSelector, Method, count_tokens
from redraft.types import Example

try:
    from langchain_core.example_selectors import BaseExampleSelector
except ImportError as error:
    raise MissingExtraError(
        "langchain-core", extra="langchain", purpose="redraft.integrations.langchain"
    ) from error


class RedraftExampleSelector(BaseExampleSelector):  # type: ignore[misc]  # Any to mypy
    """Selects the examples of a `FewShotPromptTemplate`, nearest last.

    `examples` are dictionaries as LangChain has them; `input_keys` are those of the input, all but
    `output_key` by default. The other arguments are those of `redraft.FewShotSelector`.
    """

    def __init__(
        self,
        examples: Sequence[Mapping[str, str]],
        *,
        output_key: str = "output",
        input_keys: Sequence[str] | None = None,
        k: int = 5,
        method: Method = "cover",
        max_tokens: int | None = None,
        count: Callable[[str], int] = count_tokens,
    ) -> None:
        self._examples = [dict(example) for example in examples]
        self._output_key, self._input_keys, self.k = output_key, input_keys, k
        self._settings: dict[str, Any] = {
            "method": method,
            "max_tokens": max_tokens,
            "count": count,
        }
        self._selector = self._build()

    def add_example(self, example: dict[str, str]) -> None:
        """Add an example to those that are selected from."""
        self._pair(example)  # a wrong one is an error here
        self._examples.append(dict(example))
        self._selector = self._build()

    def select_examples(self, input_variables: dict[str, str]) -> list[dict[str, str]]:
        """Return at most `k` examples for an input, nearest last."""
        keys = self._keys(self._examples[0])
        missing = [key for key in keys if key not in input_variables]
        if missing:
            raise PairsError(f"the input lacks {missing[0]!r}; it needs {', '.join(keys)}")
        x = {key: str(input_variables[key]) for key in keys}
        chosen = self._selector.select(x, self.k)
        return [self._examples[int(example.meta["row"])] for example in chosen]

    async def aselect_examples(self, input_variables: dict[str, str]) -> list[dict[str, str]]:
        """Return what `select_examples` does, which takes milliseconds."""
        return self.select_examples(input_variables)

    def _build(self) -> FewShotSelector:
        pairs = [self._pair(example, row) for row, example in enumerate(self._examples)]
        return FewShotSelector(pairs, **self._settings)

    def _pair(self, example: Mapping[str, str], row: int = 0) -> Example:
        keys = [*self._keys(example), self._output_key]
        missing = [key for key in keys if key not in example]
        if missing:
            raise PairsError(
                f"example {row + 1} lacks the key {missing[0]!r}; "
                "name the keys with input_keys and output_key"
            )
        x = {key: str(example[key]) for key in keys[:-1]}
        return Example(x, str(example[self._output_key]), {"row": row})

    def _keys(self, example: Mapping[str, str]) -> Sequence[str]:
        return self._input_keys or [key for key in example if key != self._output_key]
