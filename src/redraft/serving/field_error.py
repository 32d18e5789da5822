"""The error of a value in a request. Imports no model, so that a server can name it at once."""

from redraft.errors import PairsError


class FieldError(PairsError):
    """A value of a request that its schema allows and its model does not."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.field = field
