"""Token-level diff of two texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal

from redraft.text.tokenizer import Tokenizer, spell

_MIN_RATIO = 1 / 3
"""Below this similarity ratio, common tokens are coincidence: show one removal and one addition."""

_MAX_CELLS = 4_000_000
"""Above this product of token counts, compare lines: matching takes at least quadratic time."""

Change = Literal["kept", "removed", "added"]


@dataclass(frozen=True)
class Span:
    """A piece of text that was kept, removed or added."""

    change: Change
    text: str


@dataclass(frozen=True)
class Diff:
    """The spans that turn one text into another, in order."""

    spans: tuple[Span, ...]

    @classmethod
    def between(cls, before: str, after: str) -> "Diff":
        """Compare two texts token by token, or line by line if they are long."""
        old, new = (spell(Tokenizer().tokenize(text)) for text in (before, after))
        if len(old) * len(new) > _MAX_CELLS:
            old, new = (text.splitlines(keepends=True) for text in (before, after))
        spans: list[Span] = []
        matcher = SequenceMatcher(None, old, new, autojunk=False)
        if matcher.ratio() < _MIN_RATIO:
            return cls((*_span("removed", old), *_span("added", new)))
        for _, old_start, old_end, new_start, new_end in matcher.get_opcodes():
            if old[old_start:old_end] == new[new_start:new_end]:
                spans.append(Span("kept", "".join(old[old_start:old_end])))
                continue
            spans += _span("removed", old[old_start:old_end])
            spans += _span("added", new[new_start:new_end])
        return cls(tuple(spans))

    def __str__(self) -> str:
        marks = {"kept": "{}", "removed": "[-{}-]", "added": "{{+{}+}}"}
        return "".join(marks[span.change].format(span.text) for span in self.spans)

    def _repr_html_(self) -> str:
        """Return the diff for a notebook."""
        from redraft.text.html import diff_html

        return diff_html(self)

    def to_json(self) -> list[dict[str, Any]]:
        """Return the spans as JSON objects."""
        return [{"change": span.change, "text": span.text} for span in self.spans]


def _span(change: Change, tokens: Sequence[str]) -> list[Span]:
    return [Span(change, "".join(tokens))] if tokens else []
