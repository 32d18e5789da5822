"""Suggestions as items of an editor's list: what is shown, what is inserted, what it is from."""

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from lsprotocol import types

from redraft.data.python_functions import FIELDS, as_source
from redraft.serving.lsp.positions import Cursor
from redraft.serving.schema import ShownCompletion, ShownPrototype

MOST_LINES = 40
"""Of a source function that are shown."""

_BACKTICKS = re.compile(r"`{3,}")


@dataclass(frozen=True)
class ItemStyle:
    """What an editor understands of items."""

    resolves: bool = False
    markup: types.MarkupKind | None = None
    keeps_indentation: bool = False

    @classmethod
    def of(cls, capabilities: types.ClientCapabilities) -> "ItemStyle":
        """The style for an editor by what it says of itself."""
        text_document = capabilities.text_document
        completion = text_document.completion if text_document else None
        item = completion.completion_item if completion else None
        if item is None:
            return cls()
        resolved = item.resolve_support.properties if item.resolve_support else ()
        formats = item.documentation_format or ()
        modes = item.insert_text_mode_support
        return cls(
            resolves="documentation" in resolved,
            markup=next(iter(formats), None),
            keeps_indentation=bool(modes and types.InsertTextMode.AsIs in modes.value_set),
        )


def completion_list(
    found: Sequence[ShownCompletion], cursor: Cursor, style: ItemStyle
) -> types.CompletionList:
    """The items in their order; every further key may change them."""
    items = [_item(each, cursor, rank, style) for rank, each in enumerate(found)]
    return types.CompletionList(is_incomplete=bool(items), items=items)


def inline_list(found: Sequence[ShownCompletion], cursor: Cursor) -> types.InlineCompletionList:
    """The same as texts behind the cursor."""
    here = types.Range(cursor.position, cursor.position)
    items = [types.InlineCompletionItem(insert_text=each.text, range=here) for each in found]
    return types.InlineCompletionList(items)


def documentation(prototype: ShownPrototype, style: ItemStyle) -> str | types.MarkupContent:
    """The function that a suggestion borrows from."""
    lines = _source(prototype).split("\n")
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], "…"]
    source, title = "\n".join(lines), _origin(prototype)
    if style.markup is not types.MarkupKind.Markdown:
        plain = f"{title}\n\n{source}"
        return types.MarkupContent(style.markup, plain) if style.markup else plain
    fence = "`" * (1 + max((len(run) for run in _BACKTICKS.findall(source)), default=2))
    return types.MarkupContent(style.markup, f"{title}\n\n{fence}python\n{source}\n{fence}")


def _item(
    found: ShownCompletion, cursor: Cursor, rank: int, style: ItemStyle
) -> types.CompletionItem:
    # the word before the cursor is part of the item: editors drop what does not begin with it
    text = cursor.word + found.text
    label = text.strip().partition("\n")[0]
    prototype = found.prototype
    return types.CompletionItem(
        label=label,
        kind=types.CompletionItemKind.Snippet,
        detail=_detail(found),
        documentation=documentation(prototype, style) if prototype and not style.resolves else None,
        sort_text=f"{rank:03}",
        filter_text=label,
        insert_text_format=types.InsertTextFormat.PlainText,
        insert_text_mode=types.InsertTextMode.AsIs if style.keeps_indentation else None,
        text_edit=types.TextEdit(cursor.word_range, text),
        data={"prototype": prototype.id} if prototype and style.resolves else None,
    )


def _detail(found: ShownCompletion) -> str | None:
    """How likely, and from where; what goes on word for word has no probability."""
    parts = [] if found.probability is None else [f"{found.probability:.0%}"]
    if found.prototype:
        parts.append(_origin(found.prototype))
    return ", ".join(parts) or None


def _origin(prototype: ShownPrototype) -> str:
    name = prototype.x.get("name", "") if isinstance(prototype.x, dict) else ""
    file, line = prototype.meta.get("file"), prototype.meta.get("line")
    place = f"{file}:{line}" if file and line else str(file or "")
    return "from " + ", ".join(part for part in (name, place) if part)


def _source(prototype: ShownPrototype) -> str:
    x = prototype.x
    if not isinstance(x, dict) or set(x) != set(FIELDS):
        return prototype.y
    if x["docstring"]:
        return as_source(x, prototype.y)
    return f"def {x['name']}({x['arguments']}):\n" + textwrap.indent(prototype.y, " " * 4)
