"""The verbs on a store, each in a process of its own, as a user types them."""

import json
from pathlib import Path
from typing import Any

import pytest

from redraft import Example
from redraft.data.pairs import write_pairs
from redraft.server import schema
from redraft.server.served_model import ServedModel
from tests.baskets import write_project
from tests.cluster.models import save_stored
from tests.cluster.test_store import schemas
from tests.conftest import Run, sentence
from tests.server.functions import model_of
from tests.shop import shopkeeper


def told(redraft: Run, *arguments: object) -> dict[str, Any]:
    """What a verb prints last, as JSON."""
    done = redraft(*arguments)
    assert done.returncode == 0, done.stderr
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


@pytest.mark.parametrize("retriever", ["bm25", "auto", "reranked"])
def test_fit_add_remove_and_predict_on_a_store(
    retriever: str, pairs_file: Path, tmp_path: Path, store: str, redraft: Run
) -> None:
    model, new = tmp_path / "model", sentence("min", 3, "hands")
    write_pairs([new], tmp_path / "new.jsonl")
    parts = ("--retriever", retriever, "--editor", "verbatim")
    fitted = told(redraft, "fit", pairs_file, "-o", model, *parts, "--store", store)
    assert (fitted["examples"], fitted["fields"]) == (60, ["text"])
    added = told(redraft, "add", model, tmp_path / "new.jsonl", "--store", store)
    assert (added["added"], added["examples"]) == (1, 61)
    ask = ("predict", model, new.x["text"], "--store", store)
    assert told(redraft, *ask)["output"] == new.y
    assert told(redraft, *ask, "--where", "verb=max")["output"].startswith("max(")
    removed = told(redraft, "remove", model, "--where", "verb=min", "--store", store)
    assert (removed["removed"], removed["examples"]) == (1, 60)
    assert told(redraft, *ask)["output"] != new.y


def test_index_makes_a_stored_model_of_a_code_base(
    tmp_path: Path, store: str, redraft: Run
) -> None:
    model_of(write_project(tmp_path / "shop", ("zinnia", "yucca"))).save(tmp_path / "plain")
    project, mine = write_project(tmp_path / "mine", ("rose", "sage")), tmp_path / "model"
    index = ("index", project, "-o", mine, "--store", store)
    first = told(redraft, *index, "--from", tmp_path / "plain")
    assert (first["examples"], first["removed"], first["added"]) == (2, 2, 2)
    (project / "more.py").write_text((tmp_path / "shop" / "basket_0.py").read_text())
    second = told(redraft, *index)
    assert (second["examples"], second["removed"], second["added"]) == (4, 0, 2)
    assert len(schemas(store)) == 1
    copy = told(redraft, *index[:2], "-o", tmp_path / "copy", *index[4:], "--from", mine)
    assert copy["examples"] == 4
    assert len(schemas(store)) == 2


def test_shards_of_a_store_that_changed_are_those_of_another_job(
    examples: list[Example], pairs_file: Path, tmp_path: Path, store: str, redraft: Run
) -> None:
    save_stored(examples, tmp_path / "model", store)
    write_pairs([sentence("min", 3, "hands")], tmp_path / "new.jsonl")
    out = tmp_path / "answers"
    ask = ("predict", tmp_path / "model", "--file", pairs_file, "-o", out, "--store", store)
    assert told(redraft, *ask)["written"] == 1
    assert told(redraft, *ask)["found"] == 1
    told(redraft, "add", tmp_path / "model", tmp_path / "new.jsonl", "--store", store)
    refused = redraft(*ask)
    assert refused.returncode == 2
    assert "holds the shards of another job (it differs in: store)" in refused.stderr


def test_a_pair_that_is_added_to_a_store_is_answered_as_it_was_added(
    store: str, tmp_path: Path
) -> None:
    shopkeeper().save(tmp_path / "model", store=store)
    one, other = (ServedModel.open("shop", tmp_path / "model", store=store) for _ in range(2))
    one.add([Example({"text": "who is on call?"}, "SELECT name FROM agents")])
    other.refresh()
    for served in (one, other):
        [[answer]] = served.predict(schema.PredictRequest(inputs=["WHO is on call"]))
        assert answer.output == "SELECT name FROM agents"
        assert answer.confidence == pytest.approx(0.99)
