"""The completion engine: a buffer and a cursor to suggestions, each with the code it borrows from.

Prototypes are retrieved and encoded when the cursor enters a function; from then on a keystroke
costs what is new. Knows no text editor and no protocol.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from redraft.autocomplete.context import Context, find_context
from redraft.autocomplete.logical_lines import closing
from redraft.data.example import Input
from redraft.editing.draft import Draft
from redraft.retrieval.prototype import Prototype
from redraft.retrieve_and_edit import RetrieveAndEdit

MOST_SUGGESTIONS = 5
"""As many prototypes are retrieved for an editor that makes a suggestion of each."""

DRAFTS = 16
"""Functions whose drafts are kept."""

MOST_LINES = 4
"""Lines that a suggestion may take to close its brackets."""


@dataclass(frozen=True)
class Suggestion:
    """What can be inserted at the cursor, how likely its first token is, and where it is from.

    What goes on as its prototype does has no probability.
    """

    text: str
    token: str
    probability: float | None
    prototype: Prototype | None

    def to_json(self) -> dict[str, Any]:
        """The suggestion as a JSON object."""
        return {
            "text": self.text,
            "token": self.token,
            "probability": None if self.probability is None else round(self.probability, 6),
            "prototype": self.prototype.to_json() if self.prototype else None,
        }


class CompletionEngine:
    """A model and the drafts of the functions that were completed last."""

    def __init__(self, model: RetrieveAndEdit) -> None:
        self.model = model
        self._drafts: OrderedDict[tuple[str, ...], Draft] = OrderedDict()

    def complete(self, text: str, offset: int, k: int = 5) -> list[Suggestion]:
        """At most k suggestions for the cursor at the offset, best first, no two alike.

        Within a header or a docstring there are none: bodies are all that was learned.
        """
        context = find_context(text, offset)
        if context.place != "body":
            return []
        draft = self.draft(self._input(context))
        missing = _missing_indentation(text[:offset], context.indentation)
        found: dict[str, Suggestion] = {}
        for rank, completion in enumerate(draft.complete(context.prefix, k)):
            added = completion.text
            if rank == 0:
                added = _close_brackets(draft, context.prefix, added)
            added = added.rstrip("\n").replace("\n", f"\n{context.indentation}")
            if added.strip():
                suggestion = Suggestion(
                    missing + added, completion.token, completion.probability, completion.prototype
                )
                found.setdefault(added, suggestion)
        return list(found.values())

    def draft(self, x: Input) -> Draft:
        """The draft of the output for an input, such as a function's, begun if it is new."""
        key = tuple(x.values())
        if key not in self._drafts:
            self._drafts[key] = self.model.editor.begin(x, self._prototypes(x))
        self._drafts.move_to_end(key)
        while len(self._drafts) > DRAFTS:
            self._drafts.popitem(last=False)
        return self._drafts[key]

    def _prototypes(self, x: Input) -> list[Prototype]:
        """The nearest functions, but not the one at the cursor as it was when it was indexed."""
        wanted = self.model.editor.wants(MOST_SUGGESTIONS)
        found = self.model.retriever.retrieve([x], wanted + 1)[0]
        if x.get("docstring"):  # without one, many functions look the same from outside
            found = [each for each in found if each.example.x != x]
        return found[:wanted]

    def _input(self, context: Context) -> Input:
        """The input as the model's examples have it."""
        examples = self.model.retriever.examples
        fields = list(examples[0].x) if examples else list(context.x)
        return {name: context.x.get(name, "") for name in fields}


def _missing_indentation(before: str, indentation: str) -> str:
    """What a cursor lacks that stands left of where the body's lines begin."""
    own = before[before.rfind("\n") + 1 :]
    return indentation.removeprefix(own) if indentation.startswith(own) else ""


def _close_brackets(draft: Draft, prefix: str, text: str) -> str:
    """The text with the lines that its statement goes on for."""
    for _ in range(MOST_LINES - 1):
        if not (text.endswith("\n") and closing(prefix + text)):
            break
        text += "".join(each.text for each in draft.complete(prefix + text, 1))
    return text
