"""Conversion of completions to LSP completion items."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lsprotocol import types
from pygls.capabilities import get_capability

from redraft.completion.languages.base import Language
from redraft.completion.languages.registry import family_of, language_of_family
from redraft.mining.python_functions import FIELDS
from redraft.server.lsp.positions import Cursor
from redraft.server.responses import CompletionSchema, PrototypeSchema

MAX_LINES = 40
"""Lines of a prototype's source to show."""

_BACKTICKS = re.compile(r"`{3,}")


@dataclass(frozen=True)
class ItemStyle:
    """The completion features that an editor supports."""

    resolves: bool = False
    markup: types.MarkupKind | None = None
    keeps_indentation: bool = False

    @classmethod
    def of(cls, capabilities: types.ClientCapabilities) -> "ItemStyle":
        """Return the style for an editor with these capabilities."""
        item = get_capability(capabilities, "text_document.completion.completion_item")
        resolved: Any = get_capability(item, "resolve_support.properties", ())
        formats: Any = get_capability(item, "documentation_format", ())
        modes: Any = get_capability(item, "insert_text_mode_support.value_set", ())
        return cls(
            resolves="documentation" in resolved,
            markup=next(iter(formats), None),
            keeps_indentation=types.InsertTextMode.AsIs in modes,
        )


def completion_list(
    completions: Sequence[CompletionSchema], cursor: Cursor, style: ItemStyle
) -> types.CompletionList:
    """Return the completions as a list that the editor requests again after each keystroke."""
    items = [_item(completion, cursor, rank, style) for rank, completion in enumerate(completions)]
    return types.CompletionList(is_incomplete=bool(items), items=items)


def inline_list(
    completions: Sequence[CompletionSchema], cursor: Cursor, accept_command: str | None = None
) -> types.InlineCompletionList:
    """Return the completions as inline completions.

    The editor runs `accept_command` with the id of the prototype and the text once it inserted one.
    """
    here = types.Range(cursor.position, cursor.position)
    return types.InlineCompletionList(
        [
            types.InlineCompletionItem(
                insert_text=completion.text,
                range=here,
                command=_accepted(completion, accept_command) if accept_command else None,
            )
            for completion in completions
        ]
    )


def _accepted(completion: CompletionSchema, command: str) -> types.Command | None:
    prototype = completion.prototype
    if prototype is None:
        return None
    title = _detail(completion) or ""
    return types.Command(title, command, arguments=[prototype.id, completion.text])


def source(prototype: PrototypeSchema) -> dict[str, Any]:
    """Return a prototype for an editor that shows it: a title, its source and its place."""
    return {
        "title": _origin(prototype),
        "source": _source(prototype),
        "language": _language(prototype).name,
        "file": prototype.meta.get("file"),
        "line": prototype.meta.get("line"),
    }


def documentation(prototype: PrototypeSchema, style: ItemStyle) -> str | types.MarkupContent:
    """Return the origin and the source of a prototype, as Markdown if the editor supports it."""
    lines = _source(prototype).split("\n")
    if len(lines) > MAX_LINES:
        lines = [*lines[:MAX_LINES], "…"]
    source, title = "\n".join(lines), _origin(prototype)
    if style.markup is not types.MarkupKind.Markdown:
        plain = f"{title}\n\n{source}"
        return types.MarkupContent(style.markup, plain) if style.markup else plain
    fence = "`" * (1 + max((len(run) for run in _BACKTICKS.findall(source)), default=2))
    return types.MarkupContent(
        style.markup, f"{title}\n\n{fence}{_language(prototype).name}\n{source}\n{fence}"
    )


def _item(
    completion: CompletionSchema, cursor: Cursor, rank: int, style: ItemStyle
) -> types.CompletionItem:
    # includes the word before the cursor: editors hide items that do not start with it
    text = cursor.word + completion.text
    label = text.strip().partition("\n")[0]
    prototype = completion.prototype
    return types.CompletionItem(
        label=label,
        kind=types.CompletionItemKind.Snippet,
        detail=_detail(completion),
        documentation=documentation(prototype, style) if prototype and not style.resolves else None,
        sort_text=f"{rank:03}",
        filter_text=label,
        insert_text_format=types.InsertTextFormat.PlainText,
        insert_text_mode=types.InsertTextMode.AsIs if style.keeps_indentation else None,
        text_edit=types.TextEdit(cursor.word_range, text),
        data={"prototype": prototype.id} if prototype and style.resolves else None,
    )


def _detail(completion: CompletionSchema) -> str | None:
    """Return the probability, if there is one, and the origin of a completion."""
    parts = [] if completion.probability is None else [f"{completion.probability:.0%}"]
    if completion.generated:
        parts.append("language model")
    if completion.prototype:
        parts.append(_origin(completion.prototype))
    return ", ".join(parts) or None


def _origin(prototype: PrototypeSchema) -> str:
    name = prototype.x.get("name", "") if isinstance(prototype.x, dict) else ""
    file, line = prototype.meta.get("file"), prototype.meta.get("line")
    location = f"{file}:{line}" if file and line else str(file or "")
    return "from " + ", ".join(part for part in (name, location) if part)


def _source(prototype: PrototypeSchema) -> str:
    x = prototype.x
    if not isinstance(x, dict) or set(x) != set(FIELDS):
        return prototype.y
    return _language(prototype).as_source(x, prototype.y)


def _language(prototype: PrototypeSchema) -> Language:
    return language_of_family(family_of(prototype.meta))
