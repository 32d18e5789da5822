"""Values of the library as messages of the wire."""

from typing import Any

from redraft.autocomplete.engine import Suggestion
from redraft.data.example import Example, input_text
from redraft.editing.candidate import Candidate
from redraft.editing.completion import Completion
from redraft.evaluation.space import Space
from redraft.retrieval.prototype import Prototype
from redraft.serving import schema
from redraft.serving.field_error import FieldError as FieldError

_LABEL = 120
"""Characters of an example on the map."""


def example(found: Example) -> schema.ShownExample:
    """An example."""
    return schema.ShownExample(**_pair(found))


def prototype(found: Prototype) -> schema.ShownPrototype:
    """A prototype."""
    return schema.ShownPrototype(**_pair(found.example), distance=_rounded(found.distance))


def answer(candidate: Candidate) -> schema.Answer:
    """A candidate, with what was made of its prototype."""
    return schema.Answer(
        output=candidate.output,
        score=_rounded(candidate.score),
        log_prob=candidate.log_prob,
        confidence=candidate.confidence,
        prototype=prototype(candidate.prototype) if candidate.prototype else None,
        tokens=[schema.Token(text=each.text, origin=each.origin) for each in candidate.provenance],
        diff=[schema.Change(change=span.change, text=span.text) for span in candidate.diff().spans],
    )


def completion(found: Completion | Suggestion) -> schema.ShownCompletion:
    """A way to go on with an output, or at a cursor."""
    return schema.ShownCompletion(
        text=found.text,
        token=found.token,
        probability=_rounded_if_known(found.probability),
        prototype=prototype(found.prototype) if found.prototype else None,
    )


def example_map(name: str, space: Space | None, examples: int) -> schema.MapResponse:
    """The map of a model; empty where its retriever has no space."""
    if space is None:
        return schema.MapResponse(model=name, key=None, share=0.0, examples=examples, points=[])
    drawn = zip(space.points.tolist(), space.examples, space.groups, strict=True)
    return schema.MapResponse(
        model=name,
        key=space.key,
        share=_rounded(space.share),
        examples=examples,
        points=[
            schema.MapPoint(
                id=found.identity,
                label=" ".join(input_text(found.x).split())[:_LABEL],
                group=group,
                x=_rounded(x),
                y=_rounded(y),
            )
            for (x, y), found, group in drawn
        ],
    )


def _pair(found: Example) -> dict[str, Any]:
    row = found.to_json()
    return {"id": found.identity, "x": row["x"], "y": row["y"], "meta": row.get("meta", {})}


def _rounded(value: float) -> float:
    return round(value, 6)


def _rounded_if_known(value: float | None) -> float | None:
    return None if value is None else _rounded(value)
