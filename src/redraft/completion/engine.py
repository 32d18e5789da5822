"""The completion engine: suggestions for a cursor in a buffer, each with its prototype.

Prototypes are retrieved and encoded once, when the cursor enters a function; later keystrokes only
decode new tokens. Knows no text editor and no protocol.
"""

from collections import OrderedDict
from dataclasses import replace

from redraft.completion.cursor_context import Context, find_context
from redraft.completion.logical_lines import closing
from redraft.editing.session import CompletionSession
from redraft.model import RetrieveAndEdit
from redraft.types import Completion, Input, Prototype

MAX_SUGGESTIONS = 5
"""Prototypes to retrieve if the editor makes one suggestion per prototype."""

MAX_SESSIONS = 16
"""Cached completion sessions, one per function."""

MAX_LINES = 4
"""Maximum lines of a suggestion that closes its brackets."""


class CompletionEngine:
    """A model with an LRU cache of completion sessions."""

    def __init__(self, model: RetrieveAndEdit) -> None:
        self.model = model
        self._sessions: OrderedDict[tuple[str, ...], CompletionSession] = OrderedDict()

    def complete(self, text: str, offset: int, k: int = 5) -> list[Completion]:
        """Return at most `k` distinct suggestions for the cursor at `offset`, best first.

        Their texts are indented for insertion at the cursor. There are none within a header or a
        docstring, since the model is trained on bodies only.
        """
        context = find_context(text, offset)
        if context.place != "body":
            return []
        session = self.session(self._input(context))
        missing = _missing_indentation(text[:offset], context.indentation)
        suggestions: dict[str, Completion] = {}
        for rank, completion in enumerate(session.complete(context.prefix, k)):
            added = completion.text
            if rank == 0:
                added = _close_brackets(session, context.prefix, added)
            added = added.rstrip("\n").replace("\n", f"\n{context.indentation}")
            if added.strip():
                suggestions.setdefault(added, replace(completion, text=missing + added))
        return list(suggestions.values())

    def session(self, x: Input) -> CompletionSession:
        """Return the cached completion session for an input, or start one."""
        key = tuple(x.values())
        if key not in self._sessions:
            self._sessions[key] = self.model.editor.start_session(x, self._prototypes(x))
        self._sessions.move_to_end(key)
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return self._sessions[key]

    def _prototypes(self, x: Input) -> list[Prototype]:
        """Retrieve the nearest functions, except the indexed copy of the one at the cursor."""
        count = self.model.editor.wants(MAX_SUGGESTIONS)
        prototypes = self.model.retriever.retrieve([x], count + 1)[0]
        if x.get("docstring"):  # without one, many functions have the same input
            prototypes = [prototype for prototype in prototypes if prototype.example.x != x]
        return prototypes[:count]

    def _input(self, context: Context) -> Input:
        """Return the context's input with the fields of the model's examples."""
        examples = self.model.retriever.examples
        fields = list(examples[0].x) if examples else list(context.x)
        return {name: context.x.get(name, "") for name in fields}


def _missing_indentation(before: str, indentation: str) -> str:
    """Return the indentation that is missing before a cursor left of the body."""
    line = before[before.rfind("\n") + 1 :]
    return indentation.removeprefix(line) if indentation.startswith(line) else ""


def _close_brackets(session: CompletionSession, prefix: str, text: str) -> str:
    """Extend `text` by further lines until its brackets are closed."""
    for _ in range(MAX_LINES - 1):
        if not (text.endswith("\n") and closing(prefix + text)):
            break
        text += "".join(completion.text for completion in session.complete(prefix + text, 1))
    return text
