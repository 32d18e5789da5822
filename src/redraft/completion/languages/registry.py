"""The languages by the ending of a file and by the name that editors use."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from redraft.completion.languages.base import Language
from redraft.completion.languages.go import GO
from redraft.completion.languages.java import JAVA
from redraft.completion.languages.javascript import JAVASCRIPT
from redraft.completion.languages.python.language import PYTHON
from redraft.completion.languages.typescript import TYPESCRIPT, TYPESCRIPT_REACT

LANGUAGES: tuple[Language, ...] = (PYTHON, TYPESCRIPT, TYPESCRIPT_REACT, JAVASCRIPT, JAVA, GO)
"""All languages; a new one is one more entry."""

_BY_NAME = {language.name: language for language in LANGUAGES}
_BY_NAME["javascriptreact"] = JAVASCRIPT  # its grammar has JSX
_BY_SUFFIX = {suffix: language for language in LANGUAGES for suffix in language.suffixes}


def suffixes() -> tuple[str, ...]:
    """Return the endings of all files that functions are mined from."""
    return tuple(_BY_SUFFIX)


def language_of(file: str | None) -> Language:
    """Return the language of a file by the ending of its name; Python if it is another."""
    return _BY_SUFFIX.get(PurePath(file or "").suffix.lower(), PYTHON)


def names() -> tuple[str, ...]:
    """Return the names of all languages, as editors know them."""
    return tuple(_BY_NAME)


def language_named(name: str) -> Language:
    """Return the language with a name; Python if there is none."""
    return _BY_NAME.get(name, PYTHON)


def is_known(name: str, file: str) -> bool:
    """Return True if the name of a language or the ending of a file is one of ours."""
    is_python = name.startswith(PYTHON.name) or file.endswith(".pyi")
    return is_python or name in _BY_NAME or PurePath(file).suffix.lower() in _BY_SUFFIX


def language_of_family(family: str) -> Language:
    """Return the first language of a family; Python if there is none."""
    return next((language for language in LANGUAGES if language.family == family), PYTHON)


def family_of(meta: Mapping[str, Any]) -> str:
    """Return the family of an example's language, given its meta data."""
    return str(meta.get("language", PYTHON.family))


def meta_of(family: str) -> str | None:
    """Return the value of `language` in the meta data of a family; Python's have none."""
    return None if family == PYTHON.family else family
