"""The error for an invalid value in a request. Imports no model, so it loads quickly."""

from redraft.errors import PairsError


class FieldError(PairsError):
    """A value that the schema allows and the model does not; `field` is its path."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.field = field
