"""How many keys a user saves who types a function and accepts every line that is suggested right.

All that is needed of a function is the text of its tokens and, of each position, whether the
system's first choice given the true prefix was right, and how likely it was. Knows no network.

The user looks at one suggestion, the first, and only between tokens. Left out are: suggestions
within a word, whose beginning would have told more; the second choices; and the lines that the
engine adds to close a bracket. In these the figures are a lower bound. In one thing they are not:
a word that was typed counts as whole, though a system may still expect a longer one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from redraft.editing.neural_session import LEAST_LIKELY, LONGEST_LINE


@dataclass(frozen=True)
class FirstChoices:
    """What a system put first at each token of a function and, last, at its end: (T + 1,) each.

    Tokens that no suggestion can hold, as the unknown one, are no choice. Where a wrong choice
    was to end the line or the function, the suggestion stops there and is right as far as it
    goes; without `ends`, which may then be left out, it counts as wrong.
    """

    hits: NDArray[np.bool_]
    log_probs: NDArray[np.float64] | NDArray[np.float32]  # of the choice, right or wrong
    ends: NDArray[np.bool_] | None = None  # whether the choice was a newline or the end


@dataclass(frozen=True)
class Typing:
    """What it took to type a function; indentation and what has no text count for nothing."""

    characters: int
    keys: int
    tokens: int
    accepted: int  # tokens that came with a suggestion

    @property
    def keys_saved(self) -> float:
        """Per cent of the characters that took no key."""
        return 100 * (1 - self.keys / self.characters) if self.characters else 0.0

    @property
    def tokens_saved(self) -> float:
        """Per cent of the tokens that were not typed."""
        return 100 * self.accepted / self.tokens if self.tokens else 0.0


def keys_saved_metrics(functions: Sequence[Typing]) -> dict[str, list[float]]:
    """Of each function the share of keys and of tokens that were saved, in per cent."""
    return {
        "keys_saved": [each.keys_saved for each in functions],
        "tokens_saved": [each.tokens_saved for each in functions],
    }


def replay(texts: Sequence[str], choices: FirstChoices) -> Typing:
    """Type a function, given the spelled texts of its tokens, and accept what helps.

    A right suggestion is accepted by one key if it saves any; a newline is one key, too.
    """
    if not len(texts) + 1 == len(choices.hits) == len(choices.log_probs):
        raise ValueError(
            f"{len(texts)} tokens need {len(texts) + 1} choices, one for the end; "
            f"got {len(choices.hits)} hits and {len(choices.log_probs)} log-probabilities"
        )
    is_indentation = _indentation(texts)
    lengths = [0 if free else len(text) for text, free in zip(texts, is_indentation, strict=True)]
    at = keys = accepted = 0
    while at < len(texts):
        if is_indentation[at]:
            at += 1
            continue
        end = _suggestion_end(texts, choices, _last_read(texts, at))
        if sum(lengths[at:end]) > 1 and "".join(texts[at:end]).strip():
            keys += 1
            accepted += sum(length > 0 for length in lengths[at:end])
            at = end
        else:
            keys += lengths[at]
            at += 1
    tokens = sum(length > 0 for length in lengths)
    return Typing(sum(lengths), keys, tokens, accepted)


def _indentation(texts: Sequence[str]) -> list[bool]:
    """Of each token whether it is white space that begins a line."""
    found: list[bool] = []
    for at, text in enumerate(texts):
        begins_line = at == 0 or texts[at - 1] == "\n" or found[-1]
        found.append(begins_line and text != "\n" and text.isspace())
    return found


def _last_read(texts: Sequence[str], at: int) -> int:
    """The position from which a draft goes on when the cursor is at another.

    A text does not show that two tokens are joined, and a draft takes a single space at the end
    of its prefix as one that the next token brings along: both are read only with what follows.
    """
    while at and texts[at - 1] in ("", " "):
        at -= 1
    return at


def _suggestion_end(texts: Sequence[str], choices: FirstChoices, start: int) -> int:
    """Where the suggestion ends that is made at a position, itself if it is wrong or empty."""
    total = 0.0
    for at in range(start, start + LONGEST_LINE):
        if at > start:  # the first choice is shown however unlikely
            total += float(choices.log_probs[at])
            if total < LEAST_LIKELY:
                return at
        if not choices.hits[at]:
            return at if choices.ends is not None and choices.ends[at] else start
        if at == len(texts) or texts[at] == "\n":
            return at
    # the search has the last token end the line: as many tokens are shown as it may add
    return start + LONGEST_LINE
