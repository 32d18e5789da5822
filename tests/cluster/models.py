"""Small models in a store, of encoders that nobody trained, and what their stores hold."""

from collections.abc import Sequence
from pathlib import Path

import psycopg

from redraft import Example, RetrieveAndEdit
from redraft.editing.base import VerbatimEditor
from redraft.persistence import stored_model
from redraft.postgres.store import schema_of
from redraft.retrieval.dense import TaskRetriever
from tests.retrieval.test_dense import untrained


def save_stored(examples: Sequence[Example], folder: Path, store: str) -> str:
    """Save a model that finds its own examples by their directions; its schema."""
    encoder = untrained(list(examples[0].x), [each.x["text"] for each in examples])
    RetrieveAndEdit(TaskRetriever.build(examples, encoder), VerbatimEditor()).save(
        folder, store=store
    )
    return schema_in(folder)


def schema_in(folder: Path) -> str:
    """The schema that a model names."""
    model = stored_model(folder)
    assert model is not None
    return schema_of(model)


def outputs(store: str, schema: str) -> list[str]:
    """The outputs of all examples, as SQL sees them, each of which must have its vector."""
    with psycopg.connect(store) as connection:
        rows = connection.execute(
            f"SELECT example ->> 'y', vector IS NULL FROM {schema}.examples ORDER BY id"
        ).fetchall()
    assert not any(lacks for _, lacks in rows)
    return [y for y, _ in rows]
