"""Conversion of the library's types to the response schemas."""

from typing import Any

from redraft.report.embedding_map import EmbeddingMap
from redraft.server import responses
from redraft.types import Candidate, Completion, Example, Prototype, input_text

_LABEL_LENGTH = 120
"""Characters of a label on the map."""


def example(value: Example) -> responses.ExampleSchema:
    """Convert an example."""
    return responses.ExampleSchema(**_fields(value))


def prototype(value: Prototype) -> responses.PrototypeSchema:
    """Convert a prototype."""
    return responses.PrototypeSchema(**_fields(value.example), distance=round(value.distance, 6))


def candidate(value: Candidate) -> responses.CandidateSchema:
    """Convert a candidate, with its provenance and its diff from the prototype."""
    return responses.CandidateSchema(
        output=value.output,
        score=round(value.score, 6),
        log_prob=value.log_prob,
        confidence=value.confidence,
        prototype=prototype(value.prototype) if value.prototype else None,
        tokens=[
            responses.Token(text=token.text, origin=token.origin) for token in value.provenance
        ],
        diff=[
            responses.DiffSpan(change=span.change, text=span.text) for span in value.diff().spans
        ],
        invented=list(value.invented),
        unfamiliar=not value.is_familiar,
    )


def completion(value: Completion) -> responses.CompletionSchema:
    """Convert a completion of an output or a suggestion at a cursor."""
    return responses.CompletionSchema(
        text=value.text,
        token=value.token,
        probability=None if value.probability is None else round(value.probability, 6),
        prototype=prototype(value.prototype) if value.prototype else None,
        generated=value.is_generated,
    )


def example_map(name: str, space: EmbeddingMap | None, examples: int) -> responses.MapResponse:
    """Convert the map of the model `name`; it is empty if they do not vary in two dimensions."""
    rows = zip(space.points.tolist(), space.examples, space.groups, strict=True) if space else ()
    return responses.MapResponse(
        model=name,
        key=space.key if space else None,
        share=round(space.share, 6) if space else 0.0,
        examples=examples,
        points=[
            responses.MapPoint(
                id=example.identity,
                label=" ".join(input_text(example.x).split())[:_LABEL_LENGTH],
                group=group,
                x=round(x, 6),
                y=round(y, 6),
            )
            for (x, y), example, group in rows
        ],
    )


def _fields(value: Example) -> dict[str, Any]:
    row = value.to_json()
    return {"id": value.identity, "x": row["x"], "y": row["y"], "meta": row.get("meta", {})}
