"""What an editor can set, and what of its `initializationOptions` is not understood."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, ValidationError

from redraft.serving.schema import MOST_CANDIDATES
from redraft.serving.watch import DEBOUNCE_MS

_LONGEST_DEBOUNCE_MS = 60_000


class Settings(BaseModel):
    """How the language server works for one editor."""

    model_config = ConfigDict(frozen=True)

    model: Path | None = Field(None, description="A model in place of the command's.")
    index: StrictBool = Field(True, description="Borrow from the functions of the workspace.")
    without: tuple[str, ...] = Field((), description="Folders of these names are not read.")
    k: StrictInt = Field(5, ge=1, le=MOST_CANDIDATES, description="How many suggestions.")
    debounce_ms: StrictInt = Field(
        DEBOUNCE_MS,
        alias="debounceMs",
        ge=0,
        le=_LONGEST_DEBOUNCE_MS,
        description="So long files rest.",
    )


def read_settings(options: object) -> tuple[Settings, list[str]]:
    """The settings, and a line for each name and value that was passed over."""
    if options is None:
        return Settings(), []
    if not isinstance(options, Mapping):
        return Settings(), ["initializationOptions must be an object; the defaults are used"]
    known = [field.alias or name for name, field in Settings.model_fields.items()]
    lines = [
        f"unknown setting {name!r} is ignored; known are: {', '.join(known)}"
        for name in options
        if name not in known
    ]
    values = {name: options[name] for name in known if options.get(name) is not None}
    try:
        return Settings.model_validate(values), lines
    except ValidationError as error:
        for problem in error.errors():
            name = str(problem["loc"][0])
            if values.pop(name, None) is not None:  # once, whatever else is wrong with it
                lines.append(f"setting {name!r} is ignored: {problem['msg'].lower()}")
    return Settings.model_validate(values), lines
