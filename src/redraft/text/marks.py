"""Find values in an output, to mark them where its tokens are shown."""

import re
from collections.abc import Iterator, Sequence

from redraft.types import TracedToken


def value_spans(text: str, values: Sequence[str]) -> list[tuple[int, int]]:
    """Return the start and end of every occurrence of `values` in `text` as whole words."""
    if not values:
        return []
    longest_first = sorted(values, key=len, reverse=True)
    pattern = rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)"
    return [match.span() for match in re.finditer(pattern, text)]


def split_at_values(
    tokens: Sequence[TracedToken], values: Sequence[str]
) -> Iterator[tuple[TracedToken, bool]]:
    """Yield the tokens, split where one of `values` begins or ends, and whether it is one.

    A value may be a part of a token or span several.
    """
    spans = value_spans("".join(token.text for token in tokens), values)
    done = 0
    for token in tokens:
        end = done + len(token.text)
        cuts = {done, end} | {cut for span in spans for cut in span if done < cut < end}
        for start, stop in zip(sorted(cuts), sorted(cuts)[1:], strict=False):
            piece = token.text[start - done : stop - done]
            is_value = any(first <= start and stop <= last for first, last in spans)
            yield TracedToken(piece, token.origin), is_value
        done = end
