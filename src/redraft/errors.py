"""The errors that a user can cause and fix. A message says what is wrong, where, and what to do."""

import unicodedata
from collections.abc import Iterable
from itertools import islice

LONGEST = 2_000
"""The maximum length of a message in characters."""

_HEAD = 1_200
_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories that move a cursor, reverse text, end a line or have no glyph."""


def printable(text: str) -> str:
    """Return `text` as one line of at most `LONGEST` characters that is safe to print.

    Messages may quote untrusted files. Control characters, line breaks, bidirectional marks and
    lone surrogates are escaped; the middle of a long text is cut out.
    """
    if len(text) > LONGEST:
        # cut before escaping, which is slow for a message of megabytes
        text = f"{text[:_HEAD]} … {text[3 + _HEAD - LONGEST :]}"
    if not text.isprintable():
        text = "".join(map(_escaped, text))
        if len(text) > LONGEST:
            text = f"{text[:_HEAD]} … {text[3 + _HEAD - LONGEST :]}"
    return text


def _escaped(character: str) -> str:
    if unicodedata.category(character) not in _UNPRINTABLE:
        return character
    return character.encode("unicode_escape").decode()


def listed(names: Iterable[object], *, most: int = 8) -> str:
    """Join the first `most` names with commas and append the number of the others."""
    names = iter(names)
    shown = [_shortened(str(name)) for name in islice(names, most)]
    others = sum(1 for _ in names)
    return ", ".join(shown) + (f", … and {others:,} more" if others else "")


def _shortened(name: str) -> str:
    return name if len(name) <= 80 else f"{name[:60]}…{name[-19:]}"


class RedraftError(Exception):
    """The base class of all errors that a user can fix; its text is one printable line."""

    def __str__(self) -> str:
        return printable(super().__str__())


class PairsError(RedraftError):
    """Input-output pairs cannot be read or used."""


class ModelError(RedraftError):
    """A model directory is missing, damaged, or was not written by redraft."""


class LockedError(ModelError):
    """Another process is writing to the model directory."""


class OutputError(RedraftError):
    """Results cannot be written to a folder."""


class StoreError(RedraftError):
    """The example store cannot be reached, or belongs to another model."""


class ConfigError(RedraftError):
    """A setting has an unknown name, or a value of the wrong type or out of range."""


class MissingExtraError(RedraftError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, *, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs {package}, which is not installed; "
            f"install it with: pip install 'redraft[{extra}]'"
        )


NEURAL_PACKAGES = ("torch", "faiss", "safetensors")
"""The packages of the extra `neural`, which many modules import."""


def missing_neural(error: BaseException, *, purpose: str) -> MissingExtraError | None:
    """Return the error for a failed import of a neural package; None for any other `error`."""
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    package = (name or "").partition(".")[0]
    if package not in NEURAL_PACKAGES:
        return None
    return MissingExtraError(package, extra="neural", purpose=purpose)


class NoAnswerError(RedraftError):
    """No example was retrieved for an input, or no output satisfied the syntax."""

    def __init__(
        self,
        message: str = "no example to answer from; widen the filter or add examples (or, if a "
        "syntax is required, no valid output was found: allow another)",
    ) -> None:
        super().__init__(message)


class TrainingInterrupted(RedraftError):  # noqa: N818 (not an error: nothing is lost)
    """Training was stopped by the user and can be resumed."""


class DistributedError(RedraftError):
    """Processes cannot train one network together."""


class LmError(RedraftError):
    """A language model did not answer."""


class LmTimeoutError(LmError):
    """A language model did not answer in time; the next question may be quicker."""


class BulkError(RedraftError):
    """A bulk job cannot run, or its cluster cannot be reached."""
