"""The completion engine: suggestions for a cursor in a buffer, each with its source.

Similar functions are retrieved once, when the cursor enters a function. An editor with a network of
its own decodes from them; otherwise suggestions are copied from the code of the project. Knows no
text editor and no protocol.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import PurePath

from redraft.completion.languages.base import Context, Language
from redraft.completion.languages.python.language import PYTHON
from redraft.completion.languages.registry import (
    family_of,
    language_named,
    language_of,
    language_of_family,
    meta_of,
)
from redraft.completion.ngram_index import NgramIndex
from redraft.completion.project_session import ProjectSession, starter_weights
from redraft.completion.similar_functions import Place, similar_functions
from redraft.completion.surroundings import Surroundings, code_after
from redraft.editing.session import CompletionSession
from redraft.mining.python_functions import FIELDS
from redraft.model import RetrieveAndEdit
from redraft.types import Completion, Example, Input, Prototype

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

Mix = Callable[[Sequence[Completion]], Sequence[Completion]]
"""Returns suggestions with those of another system among them, best first."""


class CompletionEngine:
    """A model with an n-gram index per family of languages and a cache of completion sessions.

    `previous` is an engine whose tokenized functions are reused.
    """

    def __init__(self, model: RetrieveAndEdit, previous: "CompletionEngine | None" = None) -> None:
        self.model = model
        self._indexes: dict[str, NgramIndex] = {}
        self._known = dict(previous._indexes) if previous else {}
        self._sessions: OrderedDict[tuple[str | None, ...], CompletionSession] = OrderedDict()

    @cached_property
    def _functions(self) -> dict[str, list[Example]]:
        """The functions of each family of languages."""
        examples = self.model.retriever.examples
        functions: dict[str, list[Example]] = {}
        for example in examples[max(0, len(examples) - MAX_INDEXED) :]:
            functions.setdefault(family_of(example.meta), []).append(example)
        return functions

    def index_of(self, family: str) -> NgramIndex:
        """Return the n-gram index of a family of languages, built when it is first needed."""
        if family not in self._indexes:
            known = self._known.pop(family, None)
            self._indexes[family] = NgramIndex.build(
                self._functions.get(family, []), known, language=language_of_family(family)
            )
        return self._indexes[family]

    def copies(self, family: str) -> bool:
        """Return True if suggestions are copied from functions.

        Otherwise the editor has a network of its own; it completes Python only.
        """
        examples = self.model.retriever.examples
        are_functions = not examples or list(examples[0].x) == list(FIELDS)
        has_network = self.model.editor.completes and family == PYTHON.family
        return are_functions and not has_network

    def prepare(self) -> None:
        """Build what the first suggestion would build otherwise, if it will be needed."""
        for family, functions in {PYTHON.family: [], **self._functions}.items():
            if self.copies(family):
                self.index_of(family).prepare()
                for example in functions[:1]:
                    self._similar(example.x, language_of_family(family))

    def complete(
        self,
        text: str,
        offset: int,
        k: int = 5,
        *,
        file: str | None = None,
        language: str | None = None,
        mix: Mix = list,
    ) -> list[Completion]:
        """Return at most `k` distinct suggestions for the cursor at `offset`, best first.

        Their texts are indented for insertion at the cursor. There are none within a docstring, and
        none within a header if a network completes. `file` is the path of the buffer: functions of
        the same file count more. `language` is the name of its language, as editors know it;
        without it the ending of the file tells. `mix` may add suggestions and rank them all.
        """
        spoken = language_named(language) if language else language_of(file)
        context = spoken.find_context(text, offset)
        if context.block and self.copies(spoken.family):
            context = context.block
        if context.place != "body":
            return []
        session = self.session(self._input(context), file, spoken, text=text, offset=offset)
        session.read_after(code_after(text, offset, context.indentation))
        missing = _missing_indentation(text[:offset], context.indentation)
        begins_statement = _begins_statement(context.prefix, spoken)
        suggestions: dict[str, Completion] = {}
        for rank, completion in enumerate(mix(session.complete(context.prefix, k))[:k]):
            added = completion.text
            if rank == 0:
                added = _close_brackets(session, context.prefix, added, spoken)
            added = added.rstrip("\n").replace("\n", f"\n{context.indentation}")
            added = _before(added, text[offset:])
            if not added.strip() or (begins_statement and added.lstrip()[0] in spoken.no_statement):
                continue
            suggestions.setdefault(added, replace(completion, text=missing + added))
        return list(suggestions.values())

    def session(
        self,
        x: Input,
        file: str | None = None,
        language: Language = PYTHON,
        *,
        text: str = "",
        offset: int = 0,
    ) -> CompletionSession:
        """Return the cached completion session for an input, or start one from its buffer."""
        key = (file, language.family, *x.values())
        if key not in self._sessions:
            around = Surroundings.of(text, offset)
            self._sessions[key] = self._new_session(x, file, language, around)
        self._sessions.move_to_end(key)
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return self._sessions[key]

    def name_of(self, file: str | None) -> str | None:
        """Return the name of a file in the project; its last part if it is not indexed."""
        family = language_of(file).family
        known = self.index_of(family).file_named(file) if file and self.copies(family) else None
        return known or (PurePath(file).name if file else None)

    def similar(
        self, x: Input, file: str | None, language: Language, *, text: str = "", offset: int = 0
    ) -> list[Prototype]:
        """Return the functions that an input is completed from, the most similar first."""
        session = self.session(x, file, language, text=text, offset=offset)
        if isinstance(session, ProjectSession):
            return [one.prototype for one in session.similar]
        return self._prototypes(x)

    def _new_session(
        self, x: Input, file: str | None, language: Language, around: Surroundings
    ) -> CompletionSession:
        if not self.copies(language.family):
            return self.model.editor.start_session(x, self._prototypes(x))
        index = self.index_of(language.family)
        name = index.file_named(file) if file else None
        retrieved = self._similar(x, language) if index.examples else []
        place = Place(name, around.line)
        similar = similar_functions(x, retrieved, index, starter_weights(), place=place)
        return ProjectSession(x, similar, index, name, around)

    def _similar(self, x: Input, language: Language) -> list[Prototype]:
        """Retrieve candidates for similar functions, of the same family of languages."""
        is_mixed = len(self._functions) > 1
        where = {"language": meta_of(language.family)} if is_mixed else None
        return self.model.retriever.retrieve([x], RETRIEVED, where=where)[0]

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


def _begins_statement(prefix: str, language: Language) -> bool:
    """Return True if the cursor is where a statement begins."""
    line = prefix[prefix.rfind("\n") + 1 :]
    return not line.strip() and not language.is_in_brackets(prefix)


def _before(added: str, after: str) -> str:
    """Return a suggestion without what the text after the cursor has already.

    Within a line only its first line is left, up to what follows the cursor. At the end of a line a
    suggestion that begins with the next line is dropped.
    """
    rest, _, below = after.partition("\n")
    rest = rest.strip()
    if rest:
        line = added.split("\n")[0]
        longest = min(len(rest), len(line))
        shared = next((n for n in range(longest, 0, -1) if line.endswith(rest[:n])), 0)
        return line[: len(line) - shared]
    following = below.lstrip("\n").split("\n")[0].strip()
    return "" if following and added.strip().split("\n")[0].strip() == following else added


def _close_brackets(session: CompletionSession, prefix: str, text: str, language: Language) -> str:
    """Extend `text` by further lines until its brackets are closed."""
    for _ in range(MAX_LINES - 1):
        if not (text.endswith("\n") and language.is_in_brackets(prefix + text)):
            break
        text += "".join(completion.text for completion in session.complete(prefix + text, 1))
    return text
