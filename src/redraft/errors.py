"""The errors a user can cause. Each message says what is wrong, where, and what to do."""


class RedraftError(Exception):
    """The root of every error that a user can mend; the command line prints it as one line."""


class PairsError(RedraftError):
    """Pairs that cannot be read or used."""


class ModelError(RedraftError):
    """A model directory that is missing, damaged, or not one of ours."""


class StoreError(RedraftError):
    """A store of examples that cannot be reached, or that is not the one of this model."""


class ConfigError(RedraftError):
    """A setting with an unknown name or a value of the wrong type."""


class MissingExtraError(RedraftError):
    """An optional package that is not installed."""

    def __init__(self, package: str, *, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs {package}, which is not installed; "
            f"install it with: pip install 'redraft[{extra}]'"
        )


class NoAnswerError(RedraftError):
    """An input for which no example could be retrieved, or no valid output found."""

    def __init__(
        self,
        message: str = "no example to answer from; widen the filter or add examples (or, if "
        "outputs must be of a syntax, none was found that is: try another)",
    ) -> None:
        super().__init__(message)


class TrainingInterrupted(RedraftError):  # noqa: N818 (not a mistake: nothing is lost)
    """A training that was stopped by its user, and can go on."""


class WorkersError(RedraftError):
    """Processes that cannot train one network together."""


class BulkError(RedraftError):
    """A bulk job that cannot be done, or whose cluster cannot be reached."""
