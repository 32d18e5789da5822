"""The range of a numeric setting, declared next to its default.

`steps: Annotated[int, Range(1, 100)] = 10` is a setting from 1 to 100; `check_ranges` raises a
ConfigError for a dataclass with a number outside of its range. The command line takes the limits
of its options from here too, so that no limit is written twice.
"""

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from redraft.errors import ConfigError


@dataclasses.dataclass(frozen=True)
class Range:
    """The numbers from `low` to `high`, with both ends unless `above` or `below` excludes one."""

    low: int | float
    high: int | float
    above: bool = False
    below: bool = False

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, int | float):
            return False
        # each comparison is false for nan, and exact for an int of any size
        is_above = value > self.low if self.above else value >= self.low
        return is_above and (value < self.high if self.below else value <= self.high)

    def describe(self, kind: type) -> str:
        """Return the range in words, such as "a whole number from 1 to 64"."""
        noun = "a whole number" if kind is int else "a number"
        low = f"{'above' if self.above else 'from'} {_plain(self.low)}"
        high = f"{'below' if self.below else 'to'} {_plain(self.high)}"
        return f"{noun} {low} {'and ' if self.above or self.below else ''}{high}"


def _plain(value: int | float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


SHARE = Range(0.0, 1.0)
DROPOUT = Range(0.0, 1.0, below=True)
"""Not 1: dropout scales the remaining values by 1 / (1 − p)."""

WIDTH = Range(1, 8_192)
LAYERS = Range(1, 64)
WORDS = Range(1, 10_000_000)
STEPS = Range(1, 100_000_000)
SECONDS = Range(0.0, 1e9)
SEED = Range(0, 2**32 - 1)
"""Seeds that NumPy, Python and PyTorch accept."""

BEAM = Range(1, 256)
CANDIDATES = Range(1, 256)
"""Up to the largest beam: the search needs a hypothesis per candidate."""

RETRIEVED = Range(1, 10_000)
MIXED = Range(1, 64)
NEAREST = Range(0, 1_000)
TTT_STEPS = Range(0, 200)
MAX_OUTPUT = 2_000
"""Maximum number of tokens of an output."""


@cache
def types_of(config_type: type) -> Mapping[str, tuple[type, Range | None]]:
    """Return the type of each field of a dataclass, and its range if one is declared."""
    types: dict[str, tuple[type, Range | None]] = {}
    for name, hint in get_type_hints(config_type, include_extras=True).items():
        if get_origin(hint) is Annotated:
            kind, *notes = get_args(hint)
            types[name] = kind, next((note for note in notes if isinstance(note, Range)), None)
        else:
            types[name] = hint, None
    return types


def check_ranges(config: Any) -> None:
    """Raise a ConfigError that names the first number of `config` outside of its range."""
    types = types_of(type(config))  # type: ignore[arg-type]  # mypy: "type" has no __hash__
    for name, (kind, allowed) in types.items():
        value = getattr(config, name)
        if allowed is not None and value not in allowed:
            raise ConfigError(f"{name} is {shown(value)}; expected {allowed.describe(kind)}")


def shown(value: object, most: int = 40) -> str:
    """Return `value` as it is shown in a message: in one line of at most `most` characters."""
    try:
        text = f"{value:g}" if isinstance(value, float) else repr(value)
    except ValueError:  # an int of more digits than Python converts
        return "a number of thousands of digits"
    except RecursionError:
        return "a deeply nested value"
    return shorten(text, most)


def shorten(text: str, most: int = 200) -> str:
    """Return `text`, cut off after `most` characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
