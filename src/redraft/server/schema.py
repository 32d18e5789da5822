"""Schemas of the requests, with their limits. Imports no model and no server."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    StringConstraints,
    model_validator,
)

from redraft.errors import PairsError

MAX_INPUTS = 64
MAX_FIELDS = 64
MAX_CANDIDATES = 20
MAX_EXAMPLES = 1_000
MAX_TEXT_LENGTH = 20_000
MAX_WORK = 2_000_000
"""Limit for the characters of all inputs of a prediction times `k`."""

MAX_BUFFER_LENGTH = 1_000_000
MAX_CONTEXT_FILES = 256
MAX_NAME_LENGTH = 200
MAX_PATH_LENGTH = 4_096

Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME_LENGTH)]
Text = Annotated[str, StringConstraints(max_length=MAX_TEXT_LENGTH)]
Buffer = Annotated[str, StringConstraints(max_length=MAX_BUFFER_LENGTH)]
Path = Annotated[str, StringConstraints(max_length=MAX_PATH_LENGTH)]


def _limit_keys(value: object) -> object:
    """Return `value`; raise if it is an object with too many keys, each a possible error."""
    if isinstance(value, Mapping) and len(value) > MAX_FIELDS:
        raise ValueError(f"should have at most {MAX_FIELDS} keys")
    return value


FewKeys = BeforeValidator(_limit_keys)
InputValue = Text | Annotated[dict[Name, Text], FewKeys, Field(min_length=1, max_length=MAX_FIELDS)]
Inputs = Annotated[list[InputValue], FailFast(), Field(min_length=1, max_length=MAX_INPUTS)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
MetaValue = Text | int | Finite | bool | None
KeyValue = Annotated[
    str, StringConstraints(pattern=r"^[^=]+=", max_length=MAX_NAME_LENGTH + MAX_TEXT_LENGTH)
]
Count = Annotated[int, Field(ge=1, le=MAX_CANDIDATES)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Where = Annotated[dict[Name, MetaValue], FewKeys, Field(max_length=MAX_FIELDS)]


class FieldError(PairsError):
    """A value that the schema allows and the model does not; `field` is its path."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.field = field


class Message(BaseModel):
    """Base class of all requests and responses: unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class BaseRequest(Message):
    """Base class of requests: too many keys are refused before any key is validated."""

    @model_validator(mode="before")
    @classmethod
    def _has_few_keys(cls, value: object) -> object:
        return _limit_keys(value)


class StrictRequest(BaseRequest):
    """A request in JSON, without type coercion: `"5"` is not a number."""

    model_config = ConfigDict(strict=True)


class ModelRequest(StrictRequest):
    """A request to a model."""

    model: Name | None = Field(None, description="Name of a model. Default: the first model.")


class PredictRequest(ModelRequest):
    """Inputs to predict outputs for."""

    inputs: Inputs = Field(description="Texts, or objects with the fields of the model's input.")
    k: Count = Field(1, description="Maximum number of candidates per input.")
    where: Where | None = Field(None, description="Retrieve only examples with these meta values.")
    prototype: Name | None = Field(None, description="Id of the example to edit.")
    min_confidence: Share | None = Field(None, description="Abstain below this confidence.")
    precision: Share | None = Field(
        None,
        description="Abstain below the confidence that reached this precision on held-out pairs.",
    )

    @model_validator(mode="after")
    def _is_consistent_and_bounded(self) -> "PredictRequest":
        if self.min_confidence is not None and self.precision is not None:
            raise ValueError("min_confidence and precision exclude each other; give one of them")
        texts = (text for x in self.inputs for text in ([x] if isinstance(x, str) else x.values()))
        work = self.k * sum(map(len, texts))
        if work > MAX_WORK:
            raise ValueError(
                f"the characters of the inputs times k are {work:,}, the limit is {MAX_WORK:,}; "
                "send fewer or shorter inputs, or a smaller k"
            )
        return self


class RetrieveRequest(ModelRequest):
    """Inputs to retrieve examples for."""

    inputs: Inputs = Field(description="Texts, or objects with the fields of the model's input.")
    k: Count = Field(5, description="Maximum number of examples per input.")
    where: Where | None = Field(None, description="Retrieve only examples with these meta values.")


class ContextFile(StrictRequest):
    """Another file, or a part of one, whose functions count as context."""

    text: Buffer
    filename: Path | None = None


ContextFiles = Annotated[list[ContextFile], FailFast(), Field(max_length=MAX_CONTEXT_FILES)]


class CompleteRequest(ModelRequest):
    """An output to complete: either for an input, or at the cursor of a buffer of code."""

    x: InputValue | None = Field(None, description="The input, if no buffer is given.")
    prefix: Text = Field("", description="The output so far.")
    text: Buffer | None = Field(None, description="The text of a file.")
    offset: int | None = Field(None, ge=0, description="The cursor in `text`, in characters.")
    file: Path | None = Field(None, description="The path of the buffer: its functions count more.")
    extra: ContextFiles = Field([], description="Other files whose functions count as context.")
    k: Count = Field(5, description="Maximum number of completions.")
    wait: Annotated[float, Field(ge=0, le=30, allow_inf_nan=False)] = Field(
        0.0, description="Seconds to wait for the language model; 0 for what is ready."
    )

    @model_validator(mode="after")
    def _has_one_target(self) -> "CompleteRequest":
        if (self.x is None) == (self.text is None):
            raise ValueError("give either x, with prefix, or text, with offset")
        if self.text is not None and (self.offset is None or self.offset > len(self.text)):
            raise ValueError(f"offset must be from 0 to {len(self.text)}, the length of text")
        return self


class NewExample(StrictRequest):
    """An example to add."""

    x: InputValue
    y: Text
    meta: Where = Field(default_factory=dict)


class AddRequest(ModelRequest):
    """Examples to add to the index."""

    examples: Annotated[list[NewExample], FailFast(), Field(min_length=1, max_length=MAX_EXAMPLES)]


class RemoveQuery(BaseRequest):
    """Examples to remove: those with these ids, and those with these meta values."""

    model: Name | None = Field(None, description="Name of a model. Default: the first model.")
    id: Annotated[list[Name], Field(max_length=MAX_EXAMPLES)] = Field(
        [], description="Id of an example. May be repeated."
    )
    where: Annotated[list[KeyValue], Field(max_length=MAX_FIELDS)] = Field(
        [], description="KEY=VALUE of the meta. May be repeated; all must match."
    )

    @model_validator(mode="after")
    def _selects_examples(self) -> "RemoveQuery":
        if not (self.id or self.where):
            raise ValueError("say which examples: give id or where")
        if len(self.filters) < len(set(self.where)):
            raise ValueError("where has two different values for one key; give one of them")
        return self

    @property
    def filters(self) -> dict[str, MetaValue]:
        """Return `where` as a dictionary."""
        return {key: value for key, _, value in (text.partition("=") for text in self.where)}
