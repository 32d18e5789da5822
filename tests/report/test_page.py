import html
import json
import math
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from redraft.errors import MissingExtraError
from redraft.metrics.evaluation import Evaluation
from redraft.report.page import shown_rows, write_report
from redraft.report.plots import (
    MAX_POINTS,
    distance_plot,
    mean_line,
    score_plot,
)
from redraft.types import Candidate, Example, Origin, Prototype, TracedToken
from tests.reports import HOSTILE, Page, answered, evaluation_of, rated, written
from tests.shop import MAPPED, UNKNOWN, WITHOUT_VALUE, shopkeeper

pytest.importorskip("plotly")


def hostile_evaluation() -> Evaluation:
    example = Example({HOSTILE: HOSTILE}, HOSTILE)
    prototype = Prototype(Example({HOSTILE: HOSTILE}, f"old {HOSTILE}"), 0.5)
    predictions = [[Candidate(f"new\n    {HOSTILE}", 0.0, prototype)]] * 2
    return Evaluation.of([example] * 2, predictions, language="text")


def test_the_page_fetches_nothing(tmp_path: Path) -> None:
    page = written(evaluation_of(12), tmp_path)
    links = [
        (tag, value)
        for tag, given in page.elements
        for name, value in given.items()
        if name in {"src", "href", "srcset", "data", "action", "poster"}
    ]
    assert links
    assert all(value and value.startswith(("#", "data:")) for _, value in links)
    policy = next(
        given["content"] or ""
        for tag, given in page.elements
        if tag == "meta" and given.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none';")
    assert len(re.findall("'sha256-", policy)) == 2
    assert not re.search(r"url\(|@import", Path(tmp_path / "report.html").read_text()[:30_000])


def test_the_page_has_the_marks_of_a_good_document(tmp_path: Path) -> None:
    page = written(evaluation_of(12), tmp_path)
    assert page.count("html", lang="en") == page.count("h1") == page.count("main") == 1
    assert page.count("title") == page.count("meta", name="viewport") == page.count("caption") == 1
    ids = [given["id"] for _, given in page.elements if "id" in given]
    assert len(ids) == len(set(ids))
    links = {(given.get("href") or "")[1:] for tag, given in page.elements if tag == "a"}
    assert links <= set(ids)


def test_hostile_text_is_shown_and_never_run(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_report(hostile_evaluation(), path, title=HOSTILE, facts={HOSTILE: HOSTILE})
    page = Page(path)
    assert page.count("script") == len(page.scripts) == 3
    assert not any(name.startswith("on") for _, given in page.elements for name in given)
    assert not page.count("b", onclick="x()")
    assert page.text.count(HOSTILE) >= 8
    data, plotly, _ = page.scripts
    assert "<" not in data
    assert "alert(1)" not in plotly
    hover = json.loads(data)["scatter"]["texts"][0]
    assert "&lt;script&gt;" in hover
    assert "<script" not in hover


def test_every_metric_and_interval_is_shown(tmp_path: Path) -> None:
    evaluation = evaluation_of(12)
    text = written(evaluation, tmp_path).text
    for name, value in evaluation.scores.metrics.items():
        low, high = evaluation.scores.interval[name]
        assert name in text
        assert f"{value:.1f}" in text
        assert f"{low:.1f} – {high:.1f}" in text
    assert evaluation.scores.notes["signature"] in text
    assert "Retriever" in text
    assert "lexical" in text


def test_a_metric_it_has_no_words_for_is_still_shown(tmp_path: Path) -> None:
    evaluation = evaluation_of(3)
    scores = evaluation.scores
    more = type(scores)(
        scores.n,
        {**scores.metrics, "new<metric>": 12.34},
        {**scores.interval, "new<metric>": (10.0, 15.0)},
        scores.per_example,
        scores.notes,
    )
    page = written(Evaluation(evaluation.examples, evaluation.answers, more), tmp_path)
    assert "new<metric>" in page.text
    assert "10.0 – 15.0" in page.text


def test_an_evaluation_without_answers_has_a_report(tmp_path: Path) -> None:
    examples = [Example({"text": "x"}, "y"), Example({"text": "z"}, "w")]
    page = written(Evaluation.of(examples, [[], []]), tmp_path)
    assert "there is no distance to plot" in page.text
    assert json.loads(page.scripts[0])["scatter"] is None
    assert page.count("figure", **{"class": "plot is-empty"}) == 1
    assert "0 of 2" in page.text


def test_an_answer_without_prototype_has_no_distance() -> None:
    examples = [Example({"text": "x"}, "y")] * 3
    infinite = answered("y", distance=math.inf)
    plot = distance_plot(Evaluation.of(examples, [[Candidate("y", 0.0, None)], infinite, []]))
    assert plot.values is None


def test_one_example_is_enough_for_a_report(tmp_path: Path) -> None:
    page = written(evaluation_of(1), tmp_path)
    assert page.count("details", **{"class": "example"}) == 1
    assert "The one example scores" in page.text
    assert "cannot be resampled" in page.text


def test_every_example_is_shown_once_the_worst_first(tmp_path: Path) -> None:
    evaluation = evaluation_of(40)
    rows = shown_rows(evaluation)
    assert sorted(rows) == [*range(40)]
    scores = [evaluation.scores.per_example["bleu_yin"][row] for row in rows]
    assert scores == sorted(scores)
    page = written(evaluation, tmp_path)
    assert page.count("details", **{"class": "example"}) == 32
    assert page.count("details", **{"class": "example right"}) == 8
    assert "All 40" in page.text
    assert "Wrong 32" in page.text
    assert "Right 8" in page.text


def test_of_too_many_examples_an_even_sample_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redraft.report.page.MAX_SHOWN", 4)
    page = written(evaluation_of(10), tmp_path)
    assert "All 4" in page.text
    assert "A sample of 10; rows.jsonl has all." in page.text


def test_the_page_begins_with_how_many_are_right_and_what_retrieval_alone_has(
    tmp_path: Path,
) -> None:
    examples = [Example({"text": "a"}, "SELECT a;"), Example({"text": "b"}, "SELECT b;")]
    predictions = [answered("select A"), answered("SELECT c")]
    evaluation = Evaluation.of(examples, predictions, nearest=["SELECT 'a'", None])
    page = written(evaluation, tmp_path)
    assert page.text.index("1 of 2") < page.text.index("Sentence BLEU")
    assert "the same SQL up to case outside of quotes" in page.text
    assert "Retrieval alone, without an edit: 0 of 2" in page.text


def test_a_comparison_marks_what_was_removed_and_added(tmp_path: Path) -> None:
    example = Example({"text": "x"}, "if a:\n    return c")
    predictions = [answered("if a:\n    return b", source="if a:\n    return d")]
    write_report(Evaluation.of([example], predictions), tmp_path / "r.html", title="", facts={})
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "if a:\n    return<del> d</del><ins> b</ins></pre>" in page
    assert "if a:\n    return<del> b</del><ins> c</ins></pre>" in page


def test_a_comparison_loses_no_character(tmp_path: Path) -> None:
    truth = "\nif a:\n\n        b = 1\n\n\tc\n   \n"
    page = written(
        Evaluation.of([Example({"text": "x"}, truth)], [answered("", source="")]), tmp_path
    )
    assert page.text.count(truth) == 2


def traced(*tokens: tuple[str, Origin]) -> Evaluation:
    """An answer made of these tokens."""
    provenance = tuple(TracedToken(text, origin) for text, origin in tokens)
    output = "".join(text for text, _ in tokens)
    candidate = replace(answered(output)[0], confidence=0.934, provenance=provenance)
    return Evaluation.of([Example({"text": "x"}, output)], [[candidate]])


def traced_box(page: Path) -> str:
    """The markup of the first box with the tokens' origins."""
    text = page.read_text(encoding="utf-8")
    start = text.index("<pre", text.index("tokens come from"))
    return text[start : text.index("</pre>", start)]


def shown(markup: str) -> str:
    """What a reader sees of a box."""
    # a newline right after <pre> is not shown
    return html.unescape(re.sub(r"<[^>]*>", "", markup)).removeprefix("\n")


def test_a_card_shows_where_each_token_came_from(tmp_path: Path) -> None:
    evaluation = traced(
        ("if", "prototype"),
        (" a", "input"),
        (" <", "generated"),
        (" 1", "generated"),
        (":\n    ", "prototype"),
        ("return", "prototype"),
        (" a", "input"),
    )
    page = written(evaluation, tmp_path)
    box = traced_box(tmp_path / "report.html")
    marks = re.findall(r'(\s*)<span class="from-(\w+)" title="[^"]+">([^<]*)</span>', box)
    # white space has no mark, and neighbours of one origin share theirs
    assert marks == [
        ("\n", "prototype", "if"),
        (" ", "input", "a"),
        (" ", "generated", "&lt; 1"),
        ("", "prototype", ":"),
        ("\n    ", "prototype", "return"),
        (" ", "input", "a"),
    ]
    assert "copied from the prototype 3 tokens" in page.text
    assert "copied from the input 2 tokens" in page.text
    assert "generated 2 tokens" in page.text
    assert shown(box) == "if a < 1:\n    return a"


def test_a_card_marks_mapped_and_invented_values_and_unfamiliar_inputs(tmp_path: Path) -> None:
    inputs = [MAPPED, WITHOUT_VALUE, UNKNOWN]
    examples = [Example({"text": x}, "SELECT 1") for x in inputs]
    page = written(Evaluation.of(examples, shopkeeper().predict(inputs)), tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    mapped = '<span class="from-mapped" title="mapped from the input as in other examples">PL<'
    assert mapped in text
    assert "mapped from the input as in other examples 1 token" in page.text
    assert '<span class="invented" title="value from nowhere">BR<' in text
    assert "Value from nowhere: 'BR'." in page.text
    assert page.text.count("Nothing similar in the index.") == 1


def test_an_invented_value_cannot_run(tmp_path: Path) -> None:
    plain = traced((HOSTILE, "prototype"))
    [answer] = plain.answers
    assert answer is not None
    marked = replace(answer, invented=(HOSTILE,))
    page = written(Evaluation.of(plain.examples, [[marked]]), tmp_path)
    assert page.count("script") == 3
    assert f"Value from nowhere: '{HOSTILE}'." in page.text


def test_a_card_without_provenance_shows_none(tmp_path: Path) -> None:
    assert "tokens come from" not in written(evaluation_of(2), tmp_path).text


def test_hostile_tokens_are_shown_and_never_run(tmp_path: Path) -> None:
    page = written(traced((HOSTILE, "input"), (f"\n {HOSTILE}", "generated")), tmp_path)
    assert page.count("script") == 3
    assert not any(name.startswith("on") for _, given in page.elements for name in given)
    assert shown(traced_box(tmp_path / "report.html")) == f"{HOSTILE}\n {HOSTILE}"


def test_a_long_answer_is_traced_up_to_a_limit(tmp_path: Path) -> None:
    tokens: list[tuple[str, Origin]] = [("word ", "input"), ("other ", "generated")]
    page = written(traced(*tokens * 3_000), tmp_path)
    assert "generated 3,000 tokens" in page.text
    whole = "word other " * 3_000
    expected = f"{whole[:20_000]}\n… and 13,000 characters more"
    assert shown(traced_box(tmp_path / "report.html")) == expected


@pytest.mark.parametrize(
    ("confidence", "said"),
    [(0.934, "93"), (0.0001, "under\xa01"), (0.9999, "over\xa099"), (0.5, "50")],
)
def test_a_card_is_tagged_with_its_confidence(confidence: float, said: str, tmp_path: Path) -> None:
    page = written(rated([confidence], [True]), tmp_path)
    assert f"distance 0.25, confidence\xa0{said}\xa0%, right" in page.text


def test_a_long_text_is_cut_and_says_so(tmp_path: Path) -> None:
    example = Example({"text": "long " * 10}, "word " * 8_000)
    path = tmp_path / "report.html"
    write_report(Evaluation.of([example], [answered("word")]), path, title="Long", facts={})
    assert "… and 20,000 characters more" in path.read_text(encoding="utf-8")


def test_half_a_character_does_not_cost_the_report(tmp_path: Path) -> None:
    examples = [Example({"text": "half \ud83d"}, "y")]
    assert "half ?" in written(Evaluation.of(examples, [answered("y")]), tmp_path).text


def test_the_histogram_counts_every_example_once() -> None:
    evaluation = evaluation_of(23)
    values = score_plot(evaluation).values
    assert values is not None
    assert sum(values["counts"]) == 23
    assert values["edges"][0] == 0
    assert values["edges"][-1] == 100


def test_the_mean_line_covers_every_point_and_keeps_ties_together() -> None:
    distances = np.array([0.0] * 20 + [0.5] * 5 + [1.0] * 15)
    scores = np.array([90.0] * 20 + [50.0] * 5 + [10.0] * 15)
    line = mean_line(distances, scores)
    assert sum(each["n"] for each in line) == len(distances)
    assert line[0] == {"distance": 0.0, "score": 90.0, "n": 20}
    assert mean_line(distances[:9], scores[:9]) == []
    assert mean_line(distances[:20], scores[:20]) == []


def test_a_large_scatter_plot_is_thinned_and_says_so() -> None:
    small = evaluation_of(1)
    size = MAX_POINTS + 500

    def repeated(values: Sequence[float]) -> list[float]:
        return list(values) * size

    per_example = {name: repeated(each) for name, each in small.scores.per_example.items()}
    scores = type(small.scores)(
        size, small.scores.metrics, small.scores.interval, per_example, small.scores.notes
    )
    plot = distance_plot(Evaluation([*small.examples] * size, [*small.answers] * size, scores))
    assert plot.values is not None
    assert len(plot.values["distances"]) == MAX_POINTS
    assert "2,000 of 2,500" in plot.caption


def test_without_plotly_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "plotly", None)
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'redraft\[report\]'"):
        written(evaluation_of(1), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_report_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    path.write_text("the old report")

    def fail(_self: Path, _data: bytes) -> int:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(OSError, match="disk full"):
        write_report(evaluation_of(1), path, title="New", facts={})
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]
    assert path.read_text() == "the old report"
