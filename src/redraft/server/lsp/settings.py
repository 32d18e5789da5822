"""The settings that an editor sends as `initializationOptions`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, ValidationError

from redraft.completion.watcher import DEBOUNCE_MS
from redraft.server.schema import MAX_CANDIDATES

LM_WAIT_MS = 3_000

_MAX_DEBOUNCE_MS = 60_000
_MAX_WAIT_MS = 60_000


class LspSettings(BaseModel):
    """Settings of the language server."""

    model_config = ConfigDict(frozen=True)

    model: Path | None = Field(
        None, description="Another model than the command line's, in a trusted folder."
    )
    index: StrictBool = Field(True, description="Index the functions of the workspace.")
    without: tuple[str, ...] = Field((), description="Names of folders to skip.")
    k: StrictInt = Field(5, ge=1, le=MAX_CANDIDATES, description="Maximum number of suggestions.")
    accept: Literal["all", "line", "word"] = Field(
        "all", description="Part of a suggestion that is offered at once."
    )
    least_probability: float = Field(
        0.0,
        alias="leastProbability",
        ge=0,
        le=1,
        description="Probability below which a suggestion is not shown.",
    )
    least_keystrokes: float = Field(
        0.0,
        alias="leastKeystrokes",
        ge=0,
        le=1000,
        description="Expected saving in characters below which a suggestion is not shown: its "
        "length times its probability.",
    )
    off: tuple[str, ...] = Field(
        (), max_length=1000, description="Languages and files without suggestions."
    )
    debounce_ms: StrictInt = Field(
        DEBOUNCE_MS,
        alias="debounceMs",
        ge=0,
        le=_MAX_DEBOUNCE_MS,
        description="Milliseconds without changes before a file is re-indexed.",
    )
    accept_command: str | None = Field(
        None,
        alias="acceptCommand",
        max_length=200,
        description="Command of the editor to run with an accepted suggestion's source id.",
    )
    lm_wait_ms: StrictInt = Field(
        LM_WAIT_MS,
        alias="lmWaitMs",
        ge=0,
        le=_MAX_WAIT_MS,
        description="Milliseconds to wait for a language model if nothing else is suggested.",
    )


def read_settings(
    options: object, *, trusted: Sequence[Path] = ()
) -> tuple[LspSettings, list[str]]:
    """Return the settings, and a warning for each setting that is ignored.

    A model is ignored unless it is in one of the `trusted` folders: the files of a project can
    change what an editor sends, and loading a model assumes that it is not malicious.
    """
    if options is None:
        return LspSettings(), []
    if not isinstance(options, Mapping):
        return LspSettings(), ["initializationOptions must be an object; the defaults are used"]
    names = [field.alias or name for name, field in LspSettings.model_fields.items()]
    warnings = [
        f"unknown setting {name!r} is ignored; the settings are: {', '.join(names)}"
        for name in options
        if name not in names
    ]
    values = {name: options[name] for name in names if options.get(name) is not None}
    try:
        settings = LspSettings.model_validate(values)
    except ValidationError as error:
        for detail in error.errors():
            name = str(detail["loc"][0])
            if values.pop(name, None) is not None:  # one warning per setting
                warnings.append(f"setting {name!r} is ignored: {detail['msg'].lower()}")
        settings = LspSettings.model_validate(values)
    if settings.model is None:
        return settings, warnings
    folder = _resolved(settings.model)
    if folder is None or not any(folder.is_relative_to(parent.resolve()) for parent in trusted):
        warnings.append(
            f"setting 'model' is ignored, since {str(settings.model)!r} is not in a trusted "
            "folder; to load it, start the server with `--trust FOLDER`"
        )
        folder = None
    return settings.model_copy(update={"model": folder}), warnings


def _resolved(path: Path) -> Path | None:
    """Return the path with `~` and links resolved, or None if it is invalid."""
    try:
        return path.expanduser().resolve()
    except (OSError, RuntimeError, ValueError):  # an unknown user or a NUL byte
        return None
