"""Ask a question again with other values: the same substitution in x and y.

A value is a text that stands in both: a quoted string, a number or a file name of the output, or a
word that the input quotes. Replacements are values of the same column (SQL) or option (shell) in
other examples. Knows x, y and nothing of retrieval or editing.
"""

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from redraft.types import Example, input_text

__all__ = ["revalue"]

_VALUE = re.compile(
    r"""'(?P<single>(?:[^']|'')*)' | "(?P<double>[^"]*)"
    | (?<![\w.])(?<!\w-)(?P<number>\d+(?:\.\d+)?)(?![\w./])
    | (?<!\S)(?P<path>(?=\S*[./*])(?!-)[\w./*~+-]+)(?!\S)
    | (?<![\w.-])(?P<word>[A-Za-z]\w*(?:-\w+)*)(?![\w.(])""",
    re.VERBOSE,
)
_NAME = re.compile(r"--?[A-Za-z][\w-]*|[A-Za-z_]\w*(?:\.\w+)?")
_TABLE = re.compile(r"(?i)\b(?:FROM|JOIN|UPDATE|INTO)\s+(\w+)(?:\s+(?:AS\s+)?(\w+))?")
_QUOTED = re.compile(r"""(?<!\w)(["'])([^"'\s]+)\1(?!\w)""")
_NO_COLUMN = re.compile(
    r"(?i)and|or|not|in|like|between|is|distinct|where|on|date|lower|upper|escape|any|all"
)


@dataclass(frozen=True)
class _Literal:
    """A value in an output: `text` without quotes and wildcards, at `start` to `end`."""

    text: str
    start: int
    end: int
    context: tuple[str, ...]
    """The column or option, and the shape of the text."""
    quote: str

    def accepts(self, text: str) -> bool:
        """Tell whether `text` can stand here without other quotes."""
        return '"' not in text if self.quote else bool(re.fullmatch(r"[\w./*~+-]+", text))

    def write(self, text: str) -> str:
        """Return `text` as the output spells it: single quotes in single quotes are doubled."""
        return text.replace("'", "''") if self.quote == "'" else text


def revalue(example: Example, others: Sequence[Example], seed: int) -> Example | None:
    """Return the example with other values in x and y, or None if x and y share no value.

    New values come from the same columns of `others`; none of them stands in the original. A value
    without a candidate stays, and None is returned if all of them stay. Meta has the substitution,
    old values in lower case.
    """
    chance = random.Random(f"revalue {seed} {example.identity}")
    x, literals = input_text(example.x), _shared(input_text(example.x), example.y)
    found: dict[str, list[_Literal]] = defaultdict(list)
    for literal in literals:
        found[literal.text.casefold()].append(literal)
    pool = _pool(others)
    chosen: dict[str, str] = {}
    for text, places in found.items():
        taken = {value.casefold() for value in chosen.values()} | set(found)
        values = sorted(set.intersection(*(pool[place.context] for place in places)))
        chance.shuffle(values)
        for value in values:
            if value.casefold() not in taken and _fits(value, places, x, found):
                chosen[text] = value
                break
    if not chosen:
        return None
    chosen = _keep_order(chosen, {text: places[0].context for text, places in found.items()})
    fields = {name: _replace_in_input(text, chosen) for name, text in example.x.items()}
    y = _replace_in_output(example.y, literals, chosen)
    return Example(fields, y, {**example.meta, "revalued": chosen})


def _fits(value: str, places: Sequence[_Literal], x: str, olds: Iterable[str]) -> bool:
    """Tell whether `value` can stand in all places, is not in `x` and contains no old value."""
    return (
        all(place.accepts(value) for place in places)
        and not _whole(value).search(x)
        and not any(_whole(old).search(value) for old in olds)
    )


def _shared(x: str, y: str) -> list[_Literal]:
    """Return the literals of `y` whose text stands in `x`, without those inside a longer one."""
    literals = _literals(y, frozenset(match[2] for match in _QUOTED.finditer(x)))
    free, shared = x, set()
    for text in sorted({literal.text for literal in literals}, key=len, reverse=True):
        pattern = _whole(text)
        if pattern.search(free):
            shared.add(text.casefold())
            free = pattern.sub("\0", free)
    return [literal for literal in literals if literal.text.casefold() in shared]


def _literals(y: str, words: frozenset[str]) -> list[_Literal]:
    """Return the values of `y` in their order; `words` are values wherever they stand."""
    masked = re.sub(r"'(?:[^']|'')*'|\"[^\"]*\"", lambda quoted: " " * len(quoted[0]), y)
    tables = {alias.lower(): table.lower() for table, alias in _TABLE.findall(masked) if alias}
    literals = []
    for match in _VALUE.finditer(y):
        kind = match.lastgroup or ""
        core = match[kind].strip("%")
        is_bare = kind == "word"
        if not any(character.isalnum() for character in core) or (is_bare and core not in words):
            continue
        start = match.start(kind) + match[kind].find(core)
        text = core.replace("''", "'") if kind == "single" else core
        context = (_context(masked[: match.start()], tables), _shape(text))
        quote = {"single": "'", "double": '"'}.get(kind, "")
        literals.append(_Literal(text, start, start + len(core), context, quote))
    return literals


def _context(before: str, tables: Mapping[str, str]) -> str:
    """Return the column (`table.column`), option or word that a literal belongs to."""
    names = [name for name in _NAME.finditer(before) if not _NO_COLUMN.fullmatch(name[0])]
    if not names:
        return ""
    name = re.sub(r"alias\d+", "", names[-1][0].lower())
    table, dot, column = name.rpartition(".")
    if dot:
        return f"{tables.get(table, table)}.{column}"
    if name == "values":  # of an INSERT: columns are known by their position
        return f"{_last_table(before)}.values.{before[names[-1].end() :].count(',')}"
    return f"{_last_table(before)}.{name}"


def _last_table(before: str) -> str:
    tables = _TABLE.findall(before)
    return tables[-1][0].lower() if tables else ""


def _shape(text: str) -> str:
    """Return the kind of text; dates have the pattern of their digits."""
    if "@" in text:
        return "email"
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return "number"
    if not any(character.isalpha() for character in text):
        return re.sub(r"\d", "0", text)
    if re.search(r"[\\$^=|<>{}\[\]]", text):
        return "pattern"
    return "file" if re.search(r"[/*~]|\.\w{1,4}$", text) else "text"


def _pool(others: Iterable[Example]) -> dict[tuple[str, ...], set[str]]:
    pool: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for other in others:
        for context, text in _shared_values(input_text(other.x), other.y):
            pool[context].add(text)
    return pool


@lru_cache(maxsize=1 << 16)
def _shared_values(x: str, y: str) -> tuple[tuple[tuple[str, ...], str], ...]:
    return tuple((literal.context, literal.text) for literal in _shared(x, y))


def _keep_order(chosen: dict[str, str], contexts: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Sort new numbers and dates of one column like the old ones: "between 5 and 9" stays so."""
    ordered = dict(chosen)
    for context in {contexts[text] for text in chosen}:
        texts = [text for text in chosen if contexts[text] == context and text[0].isdigit()]
        news = sorted((chosen[text] for text in texts), key=_magnitude)
        ordered |= zip(sorted(texts, key=_magnitude), news, strict=True)
    return ordered


def _magnitude(text: str) -> tuple[float, str]:
    number = re.fullmatch(r"\d+(\.\d+)?", text)
    return (float(text) if number else 0.0, text)


def _whole(text: str) -> re.Pattern[str]:
    """Return a pattern of `text` as whole words, in any case; numbers not as parts of others."""
    if text[0].isdigit():
        return re.compile(rf"(?<![\w.,-]){re.escape(text)}(?!\w|[.,-]\d)")
    return re.compile(rf"(?<![\w@]){re.escape(text)}(?!\w|@|\.\w)", re.IGNORECASE)


def _replace_in_input(x: str, chosen: Mapping[str, str]) -> str:
    longest_first = sorted(chosen, key=len, reverse=True)
    pattern = "|".join(f"(?:{_whole(text).pattern})" for text in longest_first)
    return re.sub(
        pattern, lambda match: _cased(match[0], chosen[match[0].casefold()]), x, flags=re.IGNORECASE
    )


def _cased(old: str, new: str) -> str:
    """Return the new value in the case of the old one, where that is all lower or all upper."""
    if old.islower():
        return new.lower()
    return new.upper() if old.isupper() and len(old) > 3 else new


def _replace_in_output(y: str, literals: Sequence[_Literal], chosen: Mapping[str, str]) -> str:
    for literal in sorted(literals, key=lambda literal: literal.start, reverse=True):
        if new := chosen.get(literal.text.casefold()):
            y = y[: literal.start] + literal.write(_cased(literal.text, new)) + y[literal.end :]
    return y
