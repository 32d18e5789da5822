"""The sections on retriever and confidence: where there is something to show, and harmless."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from redraft.metrics.evaluation import Evaluation
from redraft.model import RetrieveAndEdit
from redraft.report import sections
from redraft.report.plots import distance_histogram
from redraft.retrieval.auto import AutoRetriever
from redraft.retrieval.base import NoRetriever, Retriever
from redraft.retrieval.bow import BowRetriever
from redraft.types import Example
from tests.reports import (
    HOSTILE,
    Page,
    answered,
    evaluation_of,
    rated,
    retrieved,
    sections_of,
    task_retriever,
    written,
)

pytest.importorskip("plotly")


def assert_diagnosed(page: Page, retriever: Retriever, examples: Sequence[Example]) -> None:
    assert {"distances", "map", "retrieval-quality"} <= sections_of(page)
    assert "% of the variance" in page.text
    assert "has the same verb in" in page.text
    assert "Tokens to edit" in page.text
    data = json.loads(page.scripts[0])
    drawn = data["map"]
    assert sum(len(group["x"]) for group in drawn["groups"]) == len(retriever.examples)
    assert len(drawn["evaluated"]["texts"]) == len(examples)
    assert sum(data["distances"]["counts"]) == len(examples)


def test_a_lexical_retriever_is_diagnosed(tmp_path: Path, examples: list[Example]) -> None:
    retriever, evaluated = BowRetriever.build(examples[10:]), examples[5:15]
    page = written(retrieved(retriever, evaluated), tmp_path, retriever=retriever)
    assert_diagnosed(page, retriever, evaluated)
    links = {given.get("href") for tag, given in page.elements if tag == "a"}
    assert {"#distances", "#map", "#retrieval-quality"} <= links


def test_a_learned_retriever_is_diagnosed(tmp_path: Path, examples: list[Example]) -> None:
    retriever, evaluated = task_retriever(examples[10:]), examples[:10]
    page = written(retrieved(retriever, evaluated), tmp_path, retriever=retriever)
    assert_diagnosed(page, retriever, evaluated)


def test_without_a_retriever_there_is_neither_map_nor_retrieval_quality(tmp_path: Path) -> None:
    page = written(evaluation_of(12), tmp_path)
    assert sections_of(page) == {"summary", "scores", "retrieval", "distances", "examples"}
    assert json.loads(page.scripts[0]).keys() == {"histogram", "scatter", "distances"}


def test_the_report_of_any_retriever_has_a_map_and_says_how_it_was_chosen(
    tmp_path: Path, examples: list[Example]
) -> None:
    model = RetrieveAndEdit.fit(examples[10:], retriever="auto", editor="verbatim")
    assert isinstance(model.retriever, AutoRetriever)
    predictions = model.predict([example.x for example in examples[:10]])
    evaluation = Evaluation.of(examples[:10], predictions)
    page = written(evaluation, tmp_path, retriever=model.retriever)
    assert {"map", "distances", "retrieval-quality"} <= sections_of(page)
    assert "the retriever was chosen" in page.text
    assert model.retriever.selection.reason in page.text
    assert all(row.name in page.text for row in model.retriever.selection.measured)


def test_a_retriever_that_finds_nothing_has_a_report(
    tmp_path: Path, examples: list[Example]
) -> None:
    evaluation = Evaluation.of(examples[:3], [[], [], []])
    page = written(evaluation, tmp_path, retriever=NoRetriever(examples))
    assert "found no prototype for any example" in page.text
    assert "distances" not in sections_of(page)
    none = written(evaluation, tmp_path, retriever=NoRetriever())
    assert "retrieval-quality" not in sections_of(none)


def test_hostile_notes_are_shown_and_never_run(tmp_path: Path) -> None:
    short = "<b onclick='x()'>&amp;"
    examples = [
        Example(
            {"text": f"{HOSTILE} {at} of {at % 3}"}, f"{HOSTILE} {at}", {short: f"{short}{at % 2}"}
        )
        for at in range(30)
    ]
    retriever = BowRetriever.build(examples)
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
    retriever = BowRetriever.build(examples)
    page = written(retrieved(retriever, examples[:8]), tmp_path, retriever=retriever)
    # every true output is among the examples
    assert "the best possible ones 100.0" in page.text
    assert "For 8 of 8 examples the retrieved output is the best" in page.text


def test_a_sample_is_compared_of_many_and_the_table_says_so(
    tmp_path: Path, examples: list[Example], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sections, "MAX_COMPARED", 5)
    retriever = BowRetriever.build(examples)
    page = written(retrieved(retriever, examples), tmp_path, retriever=retriever)
    assert "5 examples were drawn at random from 60" in page.text


def test_a_very_long_output_does_not_cost_the_report(
    tmp_path: Path, examples: list[Example]
) -> None:
    retriever = BowRetriever.build(examples)
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


def abstentions(folder: Path) -> list[tuple[str, ...]]:
    """The table's rows: threshold, coverage, answers, precision."""
    text = (folder / "report.html").read_text(encoding="utf-8")
    table = text[text.index("If only confident") :].split("</table>", 1)[0]
    rows = [re.findall(r">\s*([^<>]*[^<>\s])", row) for row in table.split("<tr>")[2:]]
    return [tuple(row[:4]) for row in rows]


def test_confidences_are_shown_with_their_reliability(tmp_path: Path) -> None:
    confidences = np.linspace(0.05, 0.97, 60).tolist()
    evaluation = rated([*confidences, None], [*(each > 0.5 for each in confidences), True])
    page = written(evaluation, tmp_path)
    assert "confidence" in sections_of(page)
    assert page.count("a", href="#confidence") == 1
    assert "31 of 60 answers are right, 51.7 %; the model expected 51.0 %." in page.text
    assert "cannot show a precision" not in page.text
    assert "over 6 bins" in page.text
    assert "Left out: 1 example without a confidence." in page.text
    assert page.count("div", role="img", **{"data-plot": "confidence"}) == 1
    drawn = json.loads(page.scripts[0])["confidence"]
    assert sum(drawn["counts"]) == 60
    columns = ("lows", "shares", "highs")
    assert all(a <= b <= c for a, b, c in zip(*(drawn[each] for each in columns), strict=True))
    assert len(drawn["texts"]) == len(drawn["confidences"]) == 6
    expected = [("any", "98.4 %", "60", "51.7 %")]
    for threshold in (0.1, 0.25, 0.5, 0.75, 0.9, 0.95):
        kept = [each for each in confidences if each >= threshold]
        right = 100 * sum(each > 0.5 for each in kept) / len(kept)
        shares = f"{100 * len(kept) / 61:.1f} %", str(len(kept)), f"{right:.1f} %"
        expected.append((f"{100 * threshold:.0f} %", *shares))
    assert abstentions(tmp_path) == expected


def test_the_table_leaves_out_thresholds_that_make_no_difference(tmp_path: Path) -> None:
    page = written(rated([0.3] * 5 + [0.6] * 15, [True] * 20), tmp_path)
    assert abstentions(tmp_path) == [
        ("any", "100.0 %", "20", "100.0 %"),
        ("50 %", "75.0 %", "15", "100.0 %"),
    ]
    assert "No answer reaches a confidence of 75 %." in page.text
    assert "20 answers cannot show a precision of 95 %: at least 59 are needed" in page.text


@pytest.mark.parametrize("size", [1, 2, 11])
@pytest.mark.parametrize("right", [True, False])
def test_a_few_answers_are_enough_for_a_section(size: int, tmp_path: Path, *, right: bool) -> None:
    page = written(rated([0.999999] * size, [right] * size), tmp_path)
    assert "over 1 bin)" in page.text
    assert json.loads(page.scripts[0])["confidence"]["counts"][-1] == size


def test_without_confidences_nothing_is_said_of_them(tmp_path: Path) -> None:
    page = written(evaluation_of(12), tmp_path)
    assert "confidence" not in sections_of(page)
    assert "confidence" not in page.text
