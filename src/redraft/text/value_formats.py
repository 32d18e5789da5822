"""Forms of one value: case, plural, identifiers joined from words, numbers and dates.

`forms` finds in an input what an output derives from it, such as `AcolyteOfPain` from "acolyte of
pain" or `'2024-07-03'` from "3 July 2024"; `rewrite` writes another value in the same form.
"""

import re
from calendar import month_abbr, month_name
from collections.abc import Callable, Iterator
from datetime import date, datetime

from redraft.text.spans import Span, WordSpans, is_word
from redraft.text.tokenizer import split_identifier

MAX_JOINED = 6
"""The number of words that an identifier may be joined from."""

_NUMBER_WORDS = """zero one two three four five six seven eight nine ten eleven twelve thirteen
fourteen fifteen sixteen seventeen eighteen nineteen twenty"""
_NUMBERS = {word: str(number) for number, word in enumerate(_NUMBER_WORDS.split())}
_MONTHS = frozenset(map(str.lower, (*month_name[1:], *month_abbr[1:])))
_DATE_FORMATS = (
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%Y%m%d",
    "%d.%m.%Y",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%d %B %Y",
    "%d %b %Y",
    "%B %d %Y",
    "%b %d %Y",
)
_THOUSANDS = re.compile(r"\d{1,3}(,\d{3})+(\.\d+)?")


def singular(word: str) -> str:
    """Return the singular of a lower-case English noun; other words are returned unchanged."""
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    if word.endswith(("ches", "shes", "xes", "sses", "zes")):
        return word[:-2]
    return word[:-1]


def plural(word: str) -> str:
    """Return the plural of a lower-case English noun."""
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(("s", "x", "ch", "sh", "z")) else f"{word}s"


def canonical(text: str) -> str | None:
    """Return a number without thousands separators, or a date as 2024-07-03; None for others."""
    if parsed := _parse_date(text):
        return parsed[0].isoformat()
    if _THOUSANDS.fullmatch(text):
        return text.replace(",", "")
    return _NUMBERS.get(text.casefold())


def forms(words: WordSpans) -> dict[str, Span]:
    """Return spans of `words` by the other forms in which an output may write them."""
    spans: dict[str, Span] = {}
    for i, word in enumerate(words.folded):
        if not is_word(word):
            continue
        span = (i, i + 1)
        for form in (singular(word), plural(word), canonical(word)):
            if form is not None and form != word:
                spans.setdefault(form, span)
        joined = word
        for end in range(i + 1, min(i + MAX_JOINED, len(words))):
            if not is_word(words.folded[end]):
                break
            joined += words.folded[end]
            spans.setdefault(joined, (i, end + 1))
    spans.update({parsed.isoformat(): span for span, parsed in _dates(words)})
    return spans


def form_of(word: str) -> str:
    """Return the form under which `forms` lists a word of an output."""
    if word[0].isdigit():
        return canonical(word) or word
    return word.casefold().replace("_", "")


def rewrite(old: str, source: str, new: str) -> str:
    """Write the value `new` in the form in which `old` writes `source`."""
    if old == source:
        return new
    was, now = _parse_date(old), _parse_date(new)
    if was and now:
        return now[0].strftime(was[1])
    if canonical(source) == old:
        return canonical(new) or new
    if is_word(old) and (style := _joined_style(old, source)):
        return style(new.split())
    for case in (str.upper, str.lower, str.title, str.capitalize):
        if old == case(source):
            return case(new)
    for inflect in (singular, plural):
        if old.casefold() == inflect(source.casefold()):
            return _like(old, inflect(new.casefold()))
    return new


def in_code(old: str, text: str) -> str:
    """Return a value as it can stand outside of quotes in the place of `old`.

    Words are joined to one identifier in the style of `old`, and numbers lose their separators.
    """
    if _THOUSANDS.fullmatch(text):
        return text.replace(",", "")
    if " " not in text or " " in old:
        return text
    if old.isupper():
        return _constant(text.split())
    return _pascal(text.split()) if old[:1].isupper() else _snake(text.split())


def _like(old: str, new: str) -> str:
    """Return `new` in upper case or with a capital if `old` is."""
    if old.isupper():
        return new.upper()
    return new.capitalize() if old[:1].isupper() else new


def _joined_style(old: str, source: str) -> Callable[[list[str]], str] | None:
    """Return the function that joins words as `old` joins those of `source`, or None."""
    parts = source.split()
    if len(parts) < 2 and split_identifier(old) == [old]:
        return None
    for style in _STYLES:
        if style(parts) == old:
            return style
    return None


def _pascal(parts: list[str]) -> str:
    return "".join(part[:1].upper() + part[1:] for part in _alphanumeric(parts))


def _camel(parts: list[str]) -> str:
    joined = _pascal(parts)
    return joined[:1].lower() + joined[1:]


def _snake(parts: list[str]) -> str:
    return "_".join(_alphanumeric(parts)).lower()


def _constant(parts: list[str]) -> str:
    return _snake(parts).upper()


def _kebab(parts: list[str]) -> str:
    return "-".join(_alphanumeric(parts)).lower()


def _concatenated(parts: list[str]) -> str:
    return "".join(_alphanumeric(parts)).lower()


_STYLES = (_pascal, _camel, _snake, _constant, _kebab, _concatenated)


def _alphanumeric(parts: list[str]) -> list[str]:
    return ["".join(filter(str.isalnum, part)) for part in parts]


def _parse_date(text: str) -> tuple[date, str] | None:
    """Return the date that a text is, and its format."""
    if not 8 <= len(text) <= 20 or not any(character.isdigit() for character in text):
        return None
    plain = text.replace(",", " ").replace("  ", " ").strip()
    for form in _DATE_FORMATS:
        try:
            return datetime.strptime(plain, form).date(), form
        except ValueError:
            continue
    return None


def _dates(words: WordSpans) -> Iterator[tuple[Span, date]]:
    """Yield the spans of words that are dates, such as 3 July 2024."""
    for i, word in enumerate(words.folded):
        if word[0].isdigit() and len(word) >= 8 and (parsed := _parse_date(word)):
            yield (i, i + 1), parsed[0]
        if word in _MONTHS:
            for span in ((i - 1, i + 2), (i, i + 3), (i, i + 4)):
                inside = span[0] >= 0 and span[1] <= len(words)
                if inside and (parsed := _parse_date(words.slice(span))):
                    yield span, parsed[0]
                    break
