"""The prompt of a language model: instruction, examples with the nearest last, and the question.

Knows no retriever and no HTTP.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from redraft.errors import ConfigError, LmError
from redraft.types import Example, Input

TEMPLATE = "Write the output for the last input.\n\nInput: {x}\nOutput: {y}\n"
"""The last paragraph repeats for each example; what stands before it comes first, once."""

X, Y = "{x}", "{y}"

CHARACTERS_PER_TOKEN = 2.5
"""A low estimate, for code; tokenizers differ, and endpoints do not tell theirs."""

LONGEST_TEMPLATE = 20_000

Message = dict[str, str]


class PromptError(LmError):
    """An input does not fit into the context window."""


def estimated_tokens(text: str) -> int:
    """Return about how many tokens a language model sees in a text."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


@dataclass(frozen=True)
class Prompt:
    """A prompt as text and as the messages of a chat, with its stop sequences."""

    text: str
    messages: tuple[Message, ...]
    stop: tuple[str, ...]

    @property
    def tokens(self) -> int:
        """The estimated length."""
        return estimated_tokens(self.text)


@dataclass(frozen=True)
class PromptTemplate:
    """The parts of a template: the instruction, and an example before x, between, and after y."""

    instruction: str
    before: str
    between: str
    after: str

    @classmethod
    def parse(cls, text: str, *, source: str = "template") -> "PromptTemplate":
        """Split a template; errors begin with `source`."""
        if len(text) > LONGEST_TEMPLATE:
            raise ConfigError(f"{source}: longer than {LONGEST_TEMPLATE:,} characters")
        if text.count(X) != 1 or text.count(Y) != 1 or text.index(X) > text.index(Y):
            raise ConfigError(f"{source}: needs {X} once, and after it {Y} once")
        start = text.rfind("\n\n", 0, text.index(X))
        instruction, example = ("", text) if start < 0 else (text[: start + 2], text[start + 2 :])
        before, rest = example.split(X)
        between, after = rest.split(Y)
        if not between.strip() and "\n" not in between:
            raise ConfigError(f"{source}: needs a word, a mark or a line break between {X} and {Y}")
        return cls(instruction, before, between, after.rstrip("\n"))

    def prompt(
        self, x: Input, examples: Sequence[Example], *, tokens: int, multiline: bool
    ) -> Prompt:
        """Return the prompt for `x` with as many `examples` as fit into `tokens`, nearest last.

        `examples` come nearest first. `multiline` outputs end before the next example, others at
        the end of the line.
        """
        for count in range(len(examples), -1, -1):
            prompt = self._prompt(x, examples[:count][::-1], multiline=multiline)
            if prompt.tokens <= tokens:
                return prompt
        raise PromptError(
            f"an input of about {prompt.tokens:,} tokens does not fit into {tokens:,}; "
            "raise --lm-context if the language model has a larger context window"
        )

    def _prompt(self, x: Input, examples: Sequence[Example], *, multiline: bool) -> Prompt:
        shots = [(self._question(example.x), example.y) for example in examples]
        question = self._question(x)
        body = "".join(f"{asked} {y}{self.after}\n\n" for asked, y in shots)
        turns = [
            message
            for asked, y in shots
            for message in (
                {"role": "user", "content": asked},
                {"role": "assistant", "content": y},
            )
        ]
        system = [{"role": "system", "content": self.instruction.strip()}]
        messages = [
            *(system if self.instruction.strip() else []),
            *turns,
            {"role": "user", "content": question},
        ]
        stop = f"\n\n{self.before.strip()}" if multiline else "\n"
        return Prompt(f"{self.instruction}{body}{question}", tuple(messages), (stop,))

    def _question(self, x: Input) -> str:
        return f"{self.before}{fields_text(x)}{self.between}".rstrip(" ")


def fields_text(x: Input) -> str:
    """Return the text of an input; several fields have a line each that begins with their name."""
    if len(x) == 1:
        return next(iter(x.values()))
    return "\n".join(f"{name}: {text}" for name, text in x.items())
