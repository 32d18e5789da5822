"""The completion engine: suggestions for a cursor in a buffer, each with its source.

Similar functions are retrieved once, when the cursor enters a function. An editor with a network of
its own decodes from them; otherwise suggestions are copied from the code of the project. Knows no
text editor and no protocol.
"""

from collections import OrderedDict
from dataclasses import replace
from functools import cached_property

from redraft.completion.cursor_context import Context, find_context
from redraft.completion.logical_lines import closing
from redraft.completion.ngram_index import NgramIndex
from redraft.completion.project_session import ProjectSession, starter_weights
from redraft.completion.similar_functions import similar_functions
from redraft.editing.session import CompletionSession
from redraft.mining.python_functions import FIELDS
from redraft.model import RetrieveAndEdit
from redraft.types import Completion, Input, Prototype

MAX_SUGGESTIONS = 5
"""Prototypes to retrieve if the editor makes one suggestion per prototype."""

MAX_SESSIONS = 16
"""Cached completion sessions, one per function."""

MAX_LINES = 4
"""Maximum lines of a suggestion that closes its brackets."""

MAX_INDEXED = 100_000
"""Functions in the n-gram index: of more, those that were added last."""

RETRIEVED = 40
"""Functions to retrieve as candidates for similar ones."""

_NO_STATEMENT = tuple("=)]},.:;+%/<>|&^!")
"""Characters that no statement begins with."""


class CompletionEngine:
    """A model with an n-gram index of its functions and an LRU cache of completion sessions.

    `previous` is an engine whose tokenized functions are reused.
    """

    def __init__(self, model: RetrieveAndEdit, previous: "CompletionEngine | None" = None) -> None:
        self.model = model
        self._previous = previous
        self._sessions: OrderedDict[tuple[str | None, ...], CompletionSession] = OrderedDict()

    @cached_property
    def index(self) -> NgramIndex:
        """Return the n-gram index, built when it is first needed."""
        known = self._previous.index if self._previous and self._previous.is_indexed else None
        self._previous = None
        examples = self.model.retriever.examples
        return NgramIndex.build(list(examples[max(0, len(examples) - MAX_INDEXED) :]), known)

    @property
    def is_indexed(self) -> bool:
        """True if the n-gram index has been built."""
        return "index" in self.__dict__

    @cached_property
    def copies_from_project(self) -> bool:
        """True if suggestions are copied from functions, since the editor has no network."""
        examples = self.model.retriever.examples
        are_functions = not examples or list(examples[0].x) == list(FIELDS)
        return are_functions and not self.model.editor.completes

    def prepare(self) -> None:
        """Build the n-gram index now, if it will be needed."""
        if self.copies_from_project:
            _ = self.index

    def complete(
        self, text: str, offset: int, k: int = 5, *, file: str | None = None
    ) -> list[Completion]:
        """Return at most `k` distinct suggestions for the cursor at `offset`, best first.

        Their texts are indented for insertion at the cursor. There are none within a header or a
        docstring, since bodies are completed only. `file` is the path of the buffer: functions of
        the same file count more.
        """
        context = find_context(text, offset)
        if context.place != "body":
            return []
        session = self.session(self._input(context), file)
        missing = _missing_indentation(text[:offset], context.indentation)
        begins_statement = _begins_statement(context.prefix)
        suggestions: dict[str, Completion] = {}
        for rank, completion in enumerate(session.complete(context.prefix, k)):
            added = completion.text
            if rank == 0:
                added = _close_brackets(session, context.prefix, added)
            added = added.rstrip("\n").replace("\n", f"\n{context.indentation}")
            added = _before(added, text[offset:])
            if not added.strip() or (begins_statement and added.lstrip()[0] in _NO_STATEMENT):
                continue
            suggestions.setdefault(added, replace(completion, text=missing + added))
        return list(suggestions.values())

    def session(self, x: Input, file: str | None = None) -> CompletionSession:
        """Return the cached completion session for an input, or start one."""
        key = (file, *x.values())
        if key not in self._sessions:
            self._sessions[key] = self._new_session(x, file)
        self._sessions.move_to_end(key)
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return self._sessions[key]

    def _new_session(self, x: Input, file: str | None) -> CompletionSession:
        if not self.copies_from_project:
            return self.model.editor.start_session(x, self._prototypes(x))
        index = self.index
        name = index.file_named(file) if file else None
        retrieved = self.model.retriever.retrieve([x], RETRIEVED)[0] if index.examples else []
        similar = similar_functions(x, retrieved, index, starter_weights(), file=name)
        return ProjectSession(x, similar, index, name)

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


def _begins_statement(prefix: str) -> bool:
    """Return True if the cursor is where a statement begins."""
    line = prefix[prefix.rfind("\n") + 1 :]
    return not line.strip() and not closing(prefix)


def _before(added: str, after: str) -> str:
    """Return a suggestion without what the text after the cursor has already.

    Within a line only its first line is left, up to what follows the cursor. At the end of a line a
    suggestion that begins with the next line is dropped.
    """
    rest, _, below = after.partition("\n")
    rest = rest.strip()
    if rest:
        line = added.split("\n")[0]
        shared = next((n for n in range(len(rest), 0, -1) if line.endswith(rest[:n])), 0)
        return line[: len(line) - shared]
    following = below.lstrip("\n").split("\n")[0].strip()
    return "" if following and added.strip().split("\n")[0].strip() == following else added


def _close_brackets(session: CompletionSession, prefix: str, text: str) -> str:
    """Extend `text` by further lines until its brackets are closed."""
    for _ in range(MAX_LINES - 1):
        if not (text.endswith("\n") and closing(prefix + text)):
            break
        text += "".join(completion.text for completion in session.complete(prefix + text, 1))
    return text
