"""The wire contract: what goes in and comes out, and its limits. Imports no model and no server."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    StringConstraints,
    model_validator,
)

MOST_INPUTS = 64
MOST_FIELDS = 64
MOST_CANDIDATES = 20
MOST_EXAMPLES = 1_000
LONGEST_TEXT = 20_000
LONGEST_BUFFER = 1_000_000
LONGEST_NAME = 200

Name = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME)]
Text = Annotated[str, StringConstraints(max_length=LONGEST_TEXT)]
Buffer = Annotated[str, StringConstraints(max_length=LONGEST_BUFFER)]


def _of_few_names(value: object) -> object:
    """The value, if it is no object of too many names: each could be an error of its own."""
    if isinstance(value, Mapping) and len(value) > MOST_FIELDS:
        raise ValueError(f"should have at most {MOST_FIELDS} names")
    return value


Few = BeforeValidator(_of_few_names)
InputValue = Text | Annotated[dict[Name, Text], Few, Field(min_length=1, max_length=MOST_FIELDS)]
Inputs = Annotated[list[InputValue], FailFast(), Field(min_length=1, max_length=MOST_INPUTS)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
MetaValue = Text | int | Finite | bool | None
KeyValue = Annotated[
    str, StringConstraints(pattern=r"^[^=]+=", max_length=LONGEST_NAME + LONGEST_TEXT)
]
Count = Annotated[int, Field(ge=1, le=MOST_CANDIDATES)]
Where = Annotated[dict[Name, MetaValue], Few, Field(max_length=MOST_FIELDS)]


class Wire(BaseModel):
    """A message: a field that it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class Received(Wire):
    """A message that comes in: one of very many names is refused before each is looked at."""

    @model_validator(mode="before")
    @classmethod
    def _has_few_names(cls, value: object) -> object:
        return _of_few_names(value)


class Asked(Received):
    """A message in JSON: a number that is written as text, or the like, is an error too."""

    model_config = ConfigDict(strict=True)


class Question(Asked):
    """What every request can say: which model is asked."""

    model: Name | None = Field(None, description="The name of a model; the first without one.")


class PredictRequest(Question):
    """Inputs to answer."""

    inputs: Inputs = Field(description="Texts, or objects with the fields of the model's input.")
    k: Count = Field(1, description="How many answers to each.")
    where: Where | None = Field(None, description="Only examples whose meta has these values.")
    prototype: Name | None = Field(None, description="The id of the example to edit.")


class RetrieveRequest(Question):
    """Inputs to find examples for."""

    inputs: Inputs = Field(description="Texts, or objects with the fields of the model's input.")
    k: Count = Field(5, description="How many examples for each.")
    where: Where | None = Field(None, description="Only examples whose meta has these values.")


class CompleteRequest(Question):
    """An output to go on with: that of an input, or the code at a cursor of a Python buffer."""

    x: InputValue | None = Field(None, description="The input, if no buffer is given.")
    prefix: Text = Field("", description="The output so far.")
    text: Buffer | None = Field(None, description="A Python buffer.")
    offset: int | None = Field(None, ge=0, description="The cursor in it, in characters.")
    k: Count = Field(5, description="How many ways to go on.")

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> "CompleteRequest":
        if (self.x is None) == (self.text is None):
            raise ValueError("give either x, with prefix, or text, with offset")
        if self.text is not None and (self.offset is None or self.offset > len(self.text)):
            raise ValueError(f"offset must be from 0 to {len(self.text)}, the length of text")
        return self


class NewExample(Asked):
    """A pair to add."""

    x: InputValue
    y: Text
    meta: Where = Field(default_factory=dict)


class AddRequest(Question):
    """Examples that can be retrieved from now on."""

    examples: Annotated[list[NewExample], FailFast(), Field(min_length=1, max_length=MOST_EXAMPLES)]


class RemoveQuery(Received):
    """Examples to forget: those with these ids, and those whose meta has these values."""

    model: Name | None = Field(None, description="The name of a model; the first without one.")
    id: Annotated[list[Name], Field(max_length=MOST_EXAMPLES)] = Field(
        [], description="The id of an example. May be repeated."
    )
    where: Annotated[list[KeyValue], Field(max_length=MOST_FIELDS)] = Field(
        [], description="KEY=VALUE of the meta. May be repeated: all must hold."
    )

    @model_validator(mode="after")
    def _says_which(self) -> "RemoveQuery":
        if not (self.id or self.where):
            raise ValueError("say which examples: give id or where")
        if len(self.filters) < len(set(self.where)):
            raise ValueError("where names a key twice, with values that cannot both hold")
        return self

    @property
    def filters(self) -> dict[str, MetaValue]:
        """What `where` says, by key."""
        return {key: value for key, _, value in (each.partition("=") for each in self.where)}


class ShownExample(Wire):
    """An example of a model."""

    id: str
    x: str | dict[str, str]
    y: str
    meta: dict[str, Any]


class ShownPrototype(ShownExample):
    """An example that was retrieved, and how far from the input it stands."""

    distance: float


class Token(Wire):
    """A token of an output, with the space before it, and where it came from."""

    text: str
    origin: Literal["prototype", "input", "generated"]


class Change(Wire):
    """A piece of text that was kept of the prototype's output, removed from it or added to it."""

    change: Literal["kept", "removed", "added"]
    text: str


class Answer(Wire):
    """An output, how good it is, and what it was made from."""

    output: str
    score: float
    log_prob: float | None
    confidence: float | None
    prototype: ShownPrototype | None
    tokens: list[Token]
    diff: list[Change]


class PredictResponse(Wire):
    """For each input its answers, best first."""

    model: str
    results: list[list[Answer]]


class RetrieveResponse(Wire):
    """For each input its prototypes, nearest first."""

    model: str
    results: list[list[ShownPrototype]]


class ShownCompletion(Wire):
    """What can be inserted, how likely its first token is, and where it is from."""

    text: str
    token: str
    probability: float | None = Field(description="None where it goes on as the prototype does.")
    prototype: ShownPrototype | None


class CompleteResponse(Wire):
    """The ways to go on, best first."""

    model: str
    completions: list[ShownCompletion]


class ExamplesResponse(Wire):
    """What adding or removing came to."""

    model: str
    changed: int
    examples: int


class ModelInfo(Wire):
    """A model that is served."""

    name: str
    retriever: str
    editor: str
    fields: list[str]
    meta: list[str]
    examples: int
    completes_python: bool = Field(description="Whether it learned from functions.")


class ModelCard(Wire):
    """A model as OpenAI's clients list it."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "redraft"


class ModelsResponse(Wire):
    """All models that are served, the first of which answers where none is named."""

    models: list[ModelInfo]
    object: Literal["list"] = "list"
    data: list[ModelCard] = Field([], description="The same as OpenAI's clients read them.")


class HealthResponse(Wire):
    """Whether the server lives, and which of its models answer."""

    status: Literal["ok"] = "ok"
    models: list[str] = []


class MapPoint(Wire):
    """An example on the map."""

    id: str
    label: str
    group: str
    x: float
    y: float


class MapResponse(Wire):
    """The examples in two dimensions, near where the retriever finds them alike."""

    model: str
    key: str | None = Field(description="What of the meta the groups are.")
    share: float = Field(description="Of the variance, that the two dimensions hold.")
    examples: int
    points: list[MapPoint]


class Problem(Wire):
    """What is wrong, where, and what to do."""

    message: str
    field: str | None = None


class ErrorResponse(Wire):
    """The answer to a request that cannot be answered."""

    error: Problem
