"""Predict with options: the number of candidates, decoding, and when to abstain.

Python, the command line, HTTP and bulk jobs all predict through `Predictor`, so that an option
means the same everywhere. Knows no protocol and prints nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from redraft.config.toml import override
from redraft.data.inputs import as_inputs, fields_of
from redraft.editing.base import CalibratedEditor, DecodingEditor, Editor, LmAskingEditor
from redraft.errors import ConfigError
from redraft.model import RetrieveAndEdit
from redraft.text.html import prediction_html
from redraft.types import Candidate, Input, Prototype

if TYPE_CHECKING:
    from redraft.lm.client import LmClient


class OptionError(ConfigError):
    """An option that the model cannot follow; `field` is the name of the option."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.field = field


def is_below(confidence: float | None, threshold: float | None) -> bool:
    """Return True if a model abstains from an answer of this confidence, None counting as 0."""
    return threshold is not None and (confidence or 0.0) < threshold


@dataclass(frozen=True)
class Prediction:
    """The ranked candidates for an input, and the confidence threshold for abstaining."""

    x: Input
    ranked: Sequence[Candidate]
    threshold: float | None

    @property
    def confidence(self) -> float:
        """The calibrated confidence of the best candidate; 0 if there is none."""
        return (self.ranked[0].confidence or 0.0) if self.ranked else 0.0

    @property
    def abstains(self) -> bool:
        """True if the confidence is below the threshold."""
        return is_below(self.confidence, self.threshold)

    @property
    def output(self) -> str | None:
        """The output of the best candidate; None if there is none or the model abstains."""
        return self.ranked[0].output if self.ranked and not self.abstains else None

    def _repr_html_(self) -> str:
        """Return the input and its answers for a notebook."""
        return prediction_html(self.x, self.ranked, abstains=self.abstains)

    def to_json(self, *, explain: bool) -> dict[str, Any]:
        """Return the input, the best output and all candidates as one JSON object."""
        abstained = {} if self.threshold is None else {"abstained": self.abstains}
        candidates = [_row(candidate, explain=explain) for candidate in self.ranked]
        return {"x": dict(self.x), "output": self.output, **abstained, "candidates": candidates}


def _row(candidate: Candidate, *, explain: bool) -> dict[str, Any]:
    row = candidate.to_json()
    if not explain:
        del row["prototype"]
        return row
    defaults = {"log_prob": None, "confidence": None}
    provenance = [token.to_json() for token in candidate.provenance]
    return {**defaults, **row, "diff": candidate.diff().to_json(), "provenance": provenance}


@dataclass(frozen=True)
class PredictOptions:
    """Options of a prediction; None means the model's own setting.

    With `min_confidence` the model abstains below this confidence, with `precision` below the
    confidence that reached this precision on held-out pairs; they exclude each other. `where`
    restricts retrieval to examples whose meta has these values.
    """

    k: int = 1
    explain: bool = False
    decoding: Mapping[str, int | str | None] = field(default_factory=dict)
    min_confidence: float | None = None
    precision: float | None = None
    where: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("min_confidence", "precision"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise OptionError(f"{value:g} is not between 0 and 1", field=name)
        if self.min_confidence is not None and self.precision is not None:
            raise OptionError(
                "min_confidence and precision exclude each other; leave out one of them",
                field="precision",
            )


class Predictor:
    """A model together with the options of its predictions.

    Raises `OptionError` if the model cannot follow an option, such as `precision` for a model
    without confidence.
    """

    def __init__(self, model: RetrieveAndEdit, options: PredictOptions | None = None) -> None:
        self.options = options or PredictOptions()
        self.threshold = confidence_threshold(model.editor, self.options)
        self._model = RetrieveAndEdit(model.retriever, _tune(model.editor, self.options.decoding))

    @property
    def fields(self) -> list[str]:
        """The input fields of the model."""
        return fields_of(self._model.retriever.examples)

    def predict(self, inputs: Sequence[str | Input]) -> list[Prediction]:
        """Return the best candidates for each input."""
        fields = as_inputs(inputs, self._model.retriever.examples)
        ranked = self._model.predict(fields, self.options.k, where=self.options.where)
        return self._predictions(fields, ranked)

    def predict_one(self, x: str | Input) -> Prediction:
        """Return the best candidates for one input."""
        return self.predict([x])[0]

    def edit(
        self, inputs: Sequence[str | Input], prototypes: Sequence[Sequence[Prototype]]
    ) -> list[Prediction]:
        """Return the best edits of the given prototypes, one list per input."""
        fields = as_inputs(inputs, self._model.retriever.examples)
        ranked = self._model.editor.edit(fields, prototypes, self.options.k)
        return self._predictions(fields, ranked)

    def sample(self, inputs: Sequence[str | Input], *, seed: int) -> list[Prediction]:
        """Return sampled candidates for each input; they depend on the whole batch."""
        fields = as_inputs(inputs, self._model.retriever.examples)
        return self._predictions(fields, self._model.sample(fields, self.options.k, seed=seed))

    def _predictions(
        self, inputs: Sequence[Input], ranked: Sequence[Sequence[Candidate]]
    ) -> list[Prediction]:
        return [
            Prediction(x, candidates, self.threshold)
            for x, candidates in zip(inputs, ranked, strict=True)
        ]


def confidence_threshold(editor: Editor, options: PredictOptions) -> float | None:
    """Return the confidence below which the model abstains, or None if it never does."""
    name = "min_confidence" if options.precision is None else "precision"
    if getattr(options, name) is None:
        return None
    if not isinstance(editor, CalibratedEditor):
        reason = (
            f"the {editor.name} editor has no confidence; "
            "fit the model again with --editor choosing or neural"
        )
    elif editor.confidence is None:
        reason = "this model has no calibrated confidence; fit it again on 20 pairs or more"
    elif options.precision is None:
        return options.min_confidence
    elif (threshold := editor.confidence.threshold(options.precision)) is not None:
        return threshold
    else:
        reason = (
            f"{options.precision:g} is not reached at any confidence on the "
            f"{len(editor.confidence.held_out):,} held-out pairs; "
            "ask for less, or fit on more pairs"
        )
    raise OptionError(reason, field=name)


def lm_name(model: RetrieveAndEdit) -> str | None:
    """Return the name of the language model that a model was fitted with; None without one."""
    editor = model.editor
    settings = editor.lm_settings if isinstance(editor, LmAskingEditor) else None
    return settings.model if settings else None


def connect_lm(model: RetrieveAndEdit, client: "LmClient") -> RetrieveAndEdit:
    """Return a model that asks its language model at the address of `client`."""
    if lm_name(model) is None or not isinstance(model.editor, LmAskingEditor):
        raise ConfigError(
            "this model was fitted without a language model, or found it of no help; "
            "leave out --lm, or fit it again with --lm"
        )
    return RetrieveAndEdit(model.retriever, model.editor.with_client(client))


def _tune(editor: Editor, decoding: Mapping[str, int | str | None]) -> Editor:
    """Return the editor with its decoding settings overridden by those that are not None."""
    overrides = {name: value for name, value in decoding.items() if value is not None}
    if not overrides:
        return editor
    option = next(iter(overrides)).removesuffix("_size")
    if not isinstance(editor, DecodingEditor):
        raise OptionError(
            f"needs the neural editor, and this model has the {editor.name} one; "
            "fit it again with --editor neural",
            field=option,
        )
    where = f"--{option.replace('_', '-')}"
    return editor.with_decoding(override(editor.decoding, overrides, where=where))
