"""The sections on the retriever: there where there is something to show, and harmless."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from redraft.data.example import Example
from redraft.evaluation import sections
from redraft.evaluation.evaluation import Evaluation
from redraft.evaluation.plots import distance_histogram
from redraft.retrieval.lexical import Bm25Retriever, LexicalRetriever
from redraft.retrieval.retriever import NoRetriever, Retriever
from redraft.retrieve_and_edit import RetrieveAndEdit
from tests.reports import (
    HOSTILE,
    Page,
    answered,
    evaluation_of,
    retrieved,
    sections_of,
    task_retriever,
    written,
)

pytest.importorskip("plotly")


def assert_diagnosed(page: Page, retriever: Retriever, examples: Sequence[Example]) -> None:
    assert {"distances", "map", "editability"} <= sections_of(page)
    assert "% of the variance" in page.text
    assert "has the same verb in" in page.text
    assert "Tokens to edit" in page.text
    data = json.loads(page.scripts[0])
    drawn = data["map"]
    assert sum(len(group["x"]) for group in drawn["groups"]) == len(retriever.examples)
    assert len(drawn["evaluated"]["texts"]) == len(examples)
    assert sum(data["distances"]["counts"]) == len(examples)


def test_a_lexical_retriever_is_diagnosed(tmp_path: Path, examples: list[Example]) -> None:
    retriever, evaluated = LexicalRetriever.build(examples[10:]), examples[5:15]
    page = written(retrieved(retriever, evaluated), tmp_path, retriever=retriever)
    assert_diagnosed(page, retriever, evaluated)
    links = {given.get("href") for tag, given in page.elements if tag == "a"}
    assert {"#distances", "#map", "#editability"} <= links


def test_a_learned_retriever_is_diagnosed(tmp_path: Path, examples: list[Example]) -> None:
    retriever, evaluated = task_retriever(examples[10:]), examples[:10]
    page = written(retrieved(retriever, evaluated), tmp_path, retriever=retriever)
    assert_diagnosed(page, retriever, evaluated)


def test_without_a_retriever_there_is_neither_map_nor_editability(tmp_path: Path) -> None:
    page = written(evaluation_of(12), tmp_path)
    assert sections_of(page) == {"summary", "scores", "retrieval", "distances", "examples"}
    assert json.loads(page.scripts[0]).keys() == {"histogram", "scatter", "distances"}


def test_a_retriever_without_vectors_has_a_report_without_a_map(
    tmp_path: Path, examples: list[Example]
) -> None:
    model = RetrieveAndEdit.fit(examples[10:], retriever="bm25")
    assert isinstance(model.retriever, Bm25Retriever)
    predictions = model.predict([example.x for example in examples[:10]])
    evaluation = Evaluation.of(examples[:10], predictions)
    page = written(evaluation, tmp_path, retriever=model.retriever)
    assert "map" not in sections_of(page)
    assert {"distances", "editability"} <= sections_of(page)


def test_a_retriever_that_finds_nothing_has_a_report(
    tmp_path: Path, examples: list[Example]
) -> None:
    evaluation = Evaluation.of(examples[:3], [[], [], []])
    page = written(evaluation, tmp_path, retriever=NoRetriever(examples))
    assert "found no prototype for any example" in page.text
    assert "distances" not in sections_of(page)
    none = written(evaluation, tmp_path, retriever=NoRetriever())
    assert "editability" not in sections_of(none)


def test_hostile_notes_are_shown_and_never_run(tmp_path: Path) -> None:
    short = "<b onclick='x()'>&amp;"
    examples = [
        Example(
            {"text": f"{HOSTILE} {at} of {at % 3}"}, f"{HOSTILE} {at}", {short: f"{short}{at % 2}"}
        )
        for at in range(30)
    ]
    retriever = LexicalRetriever.build(examples)
    page = written(retrieved(retriever, examples[:4]), tmp_path, retriever=retriever)
    assert page.count("script") == 3
    assert not any(name.startswith("on") for _, given in page.elements for name in given)
    assert f"{short}1" in page.text
    assert f"has the same {short} in" in page.text
    assert "<" not in page.scripts[0]
    drawn = json.loads(page.scripts[0])["map"]
    texts = [text for group in (*drawn["groups"], drawn["evaluated"]) for text in group["texts"]]
    assert all("<" not in text.replace("<br>", "") for text in texts)
    assert any("&lt;b onclick" in text for text in texts)


def test_the_oracle_is_the_ceiling_of_the_retriever(
    tmp_path: Path, examples: list[Example]
) -> None:
    retriever = LexicalRetriever.build(examples)
    page = written(retrieved(retriever, examples[:8]), tmp_path, retriever=retriever)
    # every true output is among the examples
    assert "where the best ones reach 100.0" in page.text
    assert "For 8 of 8 examples nothing better" in page.text


def test_a_sample_is_compared_of_many_and_the_table_says_so(
    tmp_path: Path, examples: list[Example], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sections, "MAX_COMPARED", 5)
    retriever = LexicalRetriever.build(examples)
    page = written(retrieved(retriever, examples), tmp_path, retriever=retriever)
    assert "5 examples were drawn at random from 60" in page.text


def test_a_very_long_output_does_not_cost_the_report(
    tmp_path: Path, examples: list[Example]
) -> None:
    retriever = LexicalRetriever.build(examples)
    long = Example({"text": "sum the first"}, "word " * 3000)
    page = written(retrieved(retriever, [long]), tmp_path, retriever=retriever)
    assert "Tokens to edit" in page.text


def test_the_histogram_of_distances_counts_every_prototype_once() -> None:
    for scale in (1e-4, 1.0, 730.0):
        distances = scale * np.random.default_rng(0).random(57)
        predictions = [answered("y", distance=each) for each in distances.tolist()]
        examples = [Example({"text": "x"}, "y")] * 58
        plot = distance_histogram(Evaluation.of(examples, [*predictions, []]))
        assert plot is not None
        assert plot.values is not None
        assert sum(plot.values["counts"]) == 57
        assert 10 <= len(plot.values["counts"]) <= 30
        assert "Left out: 1 example without a prototype." in plot.caption


def test_equal_distances_are_said_and_not_drawn() -> None:
    plot = distance_histogram(Evaluation.of([Example({"text": "x"}, "y")] * 3, [answered("y")] * 3))
    assert plot is not None
    assert plot.values is None
    assert plot.caption == "All 3 prototypes are at a distance of 0.25."
