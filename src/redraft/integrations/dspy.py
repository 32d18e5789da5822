"""Few-shot selection for DSPy: a module and an optimizer that pick demonstrations per input."""

from collections.abc import Callable, Sequence
from typing import Any

from redraft.errors import MissingExtraError, PairsError
from redraft.lm.selection import FewShotSelector, Method, count_tokens
from redraft.types import Example

try:
    import dspy
    from dspy.teleprompt import Teleprompter
except ImportError as error:
    raise MissingExtraError("dspy", extra="dspy", purpose="redraft.integrations.dspy") from error


class RedraftDemos(dspy.Module):  # type: ignore[misc]  # Any to mypy
    """Calls a module with the demonstrations that suit each input, nearest last.

    `module` is a `dspy.Predict`, a `dspy.ChainOfThought` or another that hands `demos` on;
    `trainset` are examples with inputs and outputs. The other arguments are those of
    `redraft.FewShotSelector`. Needs no embeddings.
    """

    def __init__(
        self,
        module: Any,
        trainset: Sequence[Any],
        *,
        k: int = 5,
        method: Method = "cover",
        max_tokens: int | None = None,
        count: Callable[[str], int] = count_tokens,
    ) -> None:
        super().__init__()
        self.module, self.k = module, k
        self._trainset = list(trainset)
        pairs = [_pair(example, row) for row, example in enumerate(self._trainset)]
        self._keys = list(pairs[0].x) if pairs else []
        self._selector = FewShotSelector(pairs, method=method, max_tokens=max_tokens, count=count)

    def select(self, **inputs: Any) -> list[Any]:
        """Return at most `k` examples of the trainset for an input, nearest last."""
        missing = [key for key in self._keys if key not in inputs]
        if missing:
            raise PairsError(f"the input lacks {missing[0]!r}; it needs {', '.join(self._keys)}")
        chosen = self._selector.select({key: str(inputs[key]) for key in self._keys}, self.k)
        return [self._trainset[int(example.meta["row"])] for example in chosen]

    def forward(self, **inputs: Any) -> Any:
        """Return the prediction of the module with the selected demonstrations."""
        return self.module(demos=self.select(**inputs), **inputs)

    async def aforward(self, **inputs: Any) -> Any:
        """Return the prediction of the module, asynchronously."""
        return await self.module.acall(demos=self.select(**inputs), **inputs)


class RedraftFewShot(Teleprompter):  # type: ignore[misc]  # Any to mypy
    """An optimizer that gives a module `RedraftDemos`; `settings` are those of `RedraftDemos`."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self._settings = settings

    def compile(self, student: Any, *, trainset: Sequence[Any], **_: Any) -> RedraftDemos:
        """Return a copy of `student` that sees suitable examples of `trainset`."""
        return RedraftDemos(student.reset_copy(), trainset, **self._settings)


def _pair(example: Any, row: int) -> Example:
    try:
        inputs, labels = example.inputs().toDict(), example.labels().toDict()
    except ValueError as error:
        raise PairsError(
            f"example {row + 1} does not name its inputs; call with_inputs(…)"
        ) from error
    if not inputs or not labels:
        raise PairsError(f"example {row + 1} needs inputs and outputs; name inputs by with_inputs")
    x = {key: str(value) for key, value in inputs.items()}
    return Example(x, "\n".join(map(str, labels.values())), {"row": row})
