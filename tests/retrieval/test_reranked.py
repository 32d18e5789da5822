"""The retrievers that learn from edits: they rank by what an edit can use, and choose by a rule."""

import json
from pathlib import Path

import numpy as np
import pytest

from redraft import Example, RetrieveAndEdit
from redraft.errors import ConfigError, ModelError, PairsError
from redraft.index.postings import Postings
from redraft.retrieval.auto import AutoRetriever, Selection
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.retrieval.reranked import POOL, RerankedRetriever
from redraft.storage.artifact import open_artifact
from redraft.storage.artifact_writer import write_artifact
from redraft.storage.disk import spool_examples
from redraft.training import fit_auto as fitting
from redraft.training.fit import FitOptions
from redraft.training.fit_auto import fit_auto, fit_reranked
from redraft.types import normal_input

CITIES = "Rome Oslo Paris Lima Cairo Quito Sofia Minsk Dakar Tunis Turin Porto".split()  # noqa: SIM905
KINDS = {
    "how many people live in {}": "SELECT COUNT(*) FROM people WHERE city = '{}'",
    "how many people work in {}": "SELECT COUNT(*) FROM jobs WHERE city = '{}'",
    "how many people vote in {}": "SELECT votes FROM elections WHERE city = '{}'",
}
ASKED = {"text": "how many people work in Rome"}


def pair(kind: str, city: str) -> Example:
    return Example({"text": kind.format(city)}, KINDS[kind].format(city))


@pytest.fixture(scope="module")
def known() -> list[Example]:
    """Every question for every city but the one that is asked: BM25 is drawn to its name."""
    pairs = [pair(kind, city) for city in CITIES for kind in KINDS]
    return [example for example in pairs if example.x != ASKED]


@pytest.fixture(scope="module")
def reranked(known: list[Example]) -> RerankedRetriever:
    return fit_reranked(known)


@pytest.fixture(scope="module")
def auto(known: list[Example]) -> AutoRetriever:
    return fit_auto(known, FitOptions())


def first(retriever: RerankedRetriever | Bm25Retriever | AutoRetriever) -> str:
    return retriever.retrieve([ASKED])[0][0].example.y


def test_the_prototype_that_edits_into_the_answer_comes_before_a_shared_name(
    known: list[Example], reranked: RerankedRetriever
) -> None:
    assert "'Rome'" in first(Bm25Retriever.build(known))
    assert "FROM jobs" in first(reranked)


def test_distances_ascend_and_lie_between_zero_and_one(reranked: RerankedRetriever) -> None:
    neighbours = reranked.search([ASKED, {"text": "zzz"}], 200)
    assert neighbours.rows.shape == (2, len(reranked.examples))
    assert (np.diff(neighbours.distances) >= 0).all()
    assert ((neighbours.distances > 0) & (neighbours.distances <= 1)).all()
    assert sorted(neighbours.rows[0]) == list(range(len(reranked.examples)))


def test_candidates_outside_of_the_pool_follow_in_the_order_of_bm25(
    reranked: RerankedRetriever, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redraft.retrieval.reranked.POOL", 4)
    rows = reranked.search([ASKED], 9).rows[0].tolist()
    nearest = reranked.base.search([ASKED], 9).rows[0].tolist()
    assert sorted(rows[:4]) == sorted(nearest[:4])
    assert rows[4:] == nearest[4:]
    assert POOL == 50  # the pool is wider than the prototypes of the default editor


def test_filters_added_and_removed_examples_are_followed(reranked: RerankedRetriever) -> None:
    (mine,) = [Example({"text": "how many dogs bark in Rome"}, "SELECT bark", {"team": "pets"})]
    grown = reranked.add([mine])
    assert grown.retrieve([ASKED], where={"team": "pets"})[0][0].example == mine
    assert grown.retrieve([mine.x])[0][0].example == mine
    assert first(grown.remove([len(reranked.examples)])) == first(reranked)
    jobs = [row for row, each in enumerate(grown.examples) if "jobs" in each.y]
    assert "jobs" not in first(grown.replace(jobs, []))
    assert reranked.with_examples([]).retrieve([ASKED]) == [[]]


def test_training_inputs_are_ranked_by_weights_that_were_fitted_without_them(
    reranked: RerankedRetriever, known: list[Example]
) -> None:
    weights = [reranked.held_out[normal_input(example.x)] for example in known]
    assert len({id(each) for each in weights}) == fitting.RERANKER_FOLDS
    assert reranked.reranker not in weights


@pytest.mark.parametrize("kind", ["reranked", "auto"])
def test_a_saved_retriever_retrieves_alike(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    retriever = request.getfixturevalue(kind)
    with write_artifact(tmp_path / "saved") as staging:
        retriever.save(staging)
    loaded = type(retriever).load(open_artifact(tmp_path / "saved"), retriever.examples)
    assert loaded.retrieve([ASKED], 7) == retriever.retrieve([ASKED], 7)
    assert loaded.inverse_temperature == retriever.inverse_temperature


def test_auto_takes_the_best_and_says_why(auto: AutoRetriever) -> None:
    selection = auto.selection
    assert isinstance(auto.chosen, RerankedRetriever)
    assert [row.name for row in selection.measured] == ["bm25", "bow", "reranked"]
    bm25, _, best = selection.measured
    assert (bm25.gain, bm25.low, bm25.high) == (0, 0, 0)
    assert best.gain == pytest.approx(best.similarity - bm25.similarity, abs=0.02)
    assert 0 < best.low <= best.gain <= best.high
    assert "reranked: its edits are the most similar" in selection.text
    assert f"edits of {selection.pairs} first prototypes" in selection.text
    assert max(map(len, selection.text.splitlines())) <= 66  # fits into a table of 80 columns


def test_auto_keeps_bm25_if_no_retriever_is_surely_ahead() -> None:
    words = [f"w{i}" for i in range(40)]
    told_apart = [Example({"text": f"{word} of {i}"}, word) for i, word in enumerate(words)]
    logged: list[str] = []
    auto = fit_auto(told_apart, FitOptions(log=logged.append))
    assert isinstance(auto.chosen, Bm25Retriever)
    assert "bm25: no other retriever's edits are surely more similar" in logged[-1]


@pytest.mark.parametrize("count", [1, 19])
def test_too_few_pairs_leave_bm25(known: list[Example], count: int) -> None:
    auto = fit_auto(known[:count], FitOptions())
    assert auto.chosen.name == "bm25"
    assert auto.selection.reason == "bm25: too few pairs to hold any out"
    with pytest.raises(PairsError, match="needs 20 pairs with different inputs to learn from"):
        fit_reranked(known[:count])


def test_equal_inputs_leave_nothing_to_ask() -> None:
    same = [Example({"text": "again"}, f"y{i % 3}") for i in range(30)]
    assert fit_auto(same, FitOptions()).chosen.name == "bm25"


def test_a_model_names_its_retriever_and_shows_the_table(
    known: list[Example], tmp_path: Path
) -> None:
    from redraft.persistence import describe_model

    model = RetrieveAndEdit.fit(known, retriever="auto", editor="substitution")
    assert model.predict_one(ASKED).output == "SELECT COUNT(*) FROM jobs WHERE city = 'Rome'"
    model.save(tmp_path / "model")
    facts = describe_model(tmp_path / "model")
    assert facts["retriever"] == "auto"
    assert facts["selection"]["chosen"] == "reranked"
    loaded = RetrieveAndEdit.load(tmp_path / "model")
    assert loaded.predict_one(ASKED).output == model.predict_one(ASKED).output
    new = Example(ASKED, "SELECT 1")
    grown = RetrieveAndEdit(loaded.retriever.add([new]), loaded.editor)
    assert grown.predict_one(ASKED).output == "SELECT 1"
    grown.save(tmp_path / "model")
    assert describe_model(tmp_path / "model")["selection"] == facts["selection"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"chosen": "task"}, "the chosen retriever is unknown"),
        ({"chosen": 3}, "chosen is not of type str"),
        ({"pairs": -1}, "pairs is not a whole number"),
        ({"measured": [{"name": "bm25"}]}, "similarity is not of type float"),
        ({"measured": {}}, "measured is not of type list"),
    ],
)
def test_a_damaged_selection_is_refused(
    auto: AutoRetriever, changed: dict[str, object], message: str
) -> None:
    saved = json.loads(json.dumps(auto.selection.to_json()))
    path = Path("selection.json")
    assert Selection.from_json(saved, path) == auto.selection
    with pytest.raises(ModelError, match=message):
        Selection.from_json({**saved, **changed}, path)


def test_an_unknown_retriever_is_answered_with_the_names() -> None:
    with pytest.raises(ConfigError, match="bow, bm25, reranked, encoder, auto, task, input, none"):
        RetrieveAndEdit.fit([Example({"text": "x"}, "y")], retriever="rerank")


@pytest.mark.parametrize("kind", ["reranked", "auto"])
def test_a_retriever_saved_without_examples_is_given_those_of_a_store(
    kind: str, request: pytest.FixtureRequest, known: list[Example], tmp_path: Path
) -> None:
    retriever = request.getfixturevalue(kind)
    with write_artifact(tmp_path / "bare") as staging:
        retriever.with_examples([]).save(staging)
    loaded = type(retriever).load(open_artifact(tmp_path / "bare"), [])
    assert loaded.with_examples(known).retrieve([ASKED], 7) == retriever.retrieve([ASKED], 7)


def test_examples_on_disk_are_re_ranked_alike(
    reranked: RerankedRetriever, known: list[Example], tmp_path: Path
) -> None:
    on_disk = reranked.with_examples(spool_examples([known], tmp_path / "disk"))
    assert isinstance(on_disk.base.index, Postings)
    assert first(on_disk) == first(reranked)
    grown = on_disk.add([Example(ASKED, "SELECT 1")])
    assert first(grown) == "SELECT 1"
