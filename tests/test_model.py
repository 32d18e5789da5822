"""The method as a composition of its two parts."""

from pathlib import Path

import pytest

from redraft import Example, RetrieveAndEdit
from redraft.editing.base import VerbatimEditor
from redraft.errors import ConfigError, ModelError, NoAnswerError, PairsError
from redraft.persistence import describe_model
from redraft.retrieval.base import NoRetriever
from redraft.retrieval.bow import BowRetriever


def test_the_answer_names_the_example_it_was_made_from(examples: list[Example]) -> None:
    model = RetrieveAndEdit(BowRetriever.build(examples), VerbatimEditor())
    answer = model.predict_one("sum the first 2 items of heroes")
    assert answer.prototype is not None
    assert answer.output == answer.prototype.example.y
    assert answer.output.startswith("sum(")
    assert "2" in answer.output


def test_predictions_are_ranked_lists_without_duplicates(examples: list[Example]) -> None:
    model = RetrieveAndEdit.fit([*examples, *examples], retriever="lexical", editor="verbatim")
    ranked = model.predict(["max the first 3 items of decks", {"text": "sum cards"}], k=4)
    assert [len(candidates) for candidates in ranked] == [4, 4]
    assert ranked[0][0].output == "max(decks[:3])"
    for candidates in ranked:
        assert len({candidate.output for candidate in candidates}) == 4
        scores = [candidate.score for candidate in candidates]
        assert scores == sorted(scores, reverse=True)


def test_leaving_one_out_and_filtering_reach_the_retriever(examples: list[Example]) -> None:
    model = RetrieveAndEdit.fit(examples, retriever="lexical", editor="verbatim")
    left_out = model.predict([examples[0].x], exclude=[examples[0]])[0][0]
    assert left_out.output != examples[0].y
    assert model.predict_one(examples[0].x, where={"verb": "max"}).output.startswith("max")


def test_an_ablation_is_a_composition(examples: list[Example]) -> None:
    model = RetrieveAndEdit(NoRetriever(examples), VerbatimEditor())
    assert model.predict(["anything"]) == [[]]
    with pytest.raises(NoAnswerError, match="no example to answer from; widen the filter"):
        model.predict_one("anything")


@pytest.mark.parametrize("retriever", ["bow", "bm25", "none"])
def test_a_saved_model_answers_as_before(
    retriever: str, tmp_path: Path, examples: list[Example]
) -> None:
    model = RetrieveAndEdit.fit(iter(examples), retriever=retriever, editor="verbatim")
    model.save(tmp_path / "model")
    loaded = RetrieveAndEdit.load(tmp_path / "model")
    inputs = [example.x for example in examples[:20]]
    assert loaded.predict(inputs, k=3) == model.predict(inputs, k=3)
    assert describe_model(tmp_path / "model")["retriever"] == retriever
    assert loaded.retriever.examples == model.retriever.examples
    # all are kept; the held-out ones come last
    assert {each.identity for each in loaded.retriever.examples} == {
        each.identity for each in examples
    }
    assert len(loaded.retriever.examples) == len(examples)


def test_an_added_pair_counts_at_once_and_the_old_model_stays(examples: list[Example]) -> None:
    model = RetrieveAndEdit.fit(examples)
    new = ("who is on call?", "select('weekend')")
    grown = model.add([new]).add([Example({"text": "Who was on call?"}, "history()")])
    assert grown.predict_one("Who is on call").output == new[1]
    assert grown.predict_one("who was on call").output == "history()"
    assert len(model.retriever.examples) == len(examples)
    assert model.predict_one("Who is on call").output != new[1]
    with pytest.raises(PairsError, match="expected an input with the fields text"):
        model.add([({"question": "who", "why": "so"}, "y")])
    with pytest.raises(PairsError, match="example 1: "):
        model.add(["no pair"])


def test_a_model_directory_holds_only_readable_data(
    tmp_path: Path, examples: list[Example]
) -> None:
    for name in ("bm25", "lexical"):
        RetrieveAndEdit.fit(examples, retriever=name, editor="verbatim").save(tmp_path / name)
    kinds = {path.suffix for path in tmp_path.rglob("*") if path.is_file()}
    assert kinds <= {".toml", ".json", ".jsonl", ".txt", ".safetensors", ".npy"}


def test_the_old_name_of_the_bow_retriever_is_accepted(
    tmp_path: Path, examples: list[Example]
) -> None:
    RetrieveAndEdit.fit(examples, retriever="lexical", editor="verbatim").save(tmp_path / "model")
    assert describe_model(tmp_path / "model")["retriever"] == "bow"


def test_unknown_parts_and_no_examples_are_refused(examples: list[Example]) -> None:
    with pytest.raises(ConfigError, match="no retriever is called 'psychic'; choose one of: bow"):
        RetrieveAndEdit.fit(examples, retriever="psychic")
    with pytest.raises(ConfigError, match="no editor is called 'red pen'"):
        RetrieveAndEdit.fit(examples, editor="red pen")
    with pytest.raises(PairsError, match="no examples to fit"):
        RetrieveAndEdit.fit([])


def test_loading_what_is_no_model_says_so(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"not a model \(no manifest.json\)"):
        RetrieveAndEdit.load(tmp_path / "nowhere")
