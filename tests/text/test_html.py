"""HTML for notebooks: coloured, escaped, without scripts."""

from redraft.metrics.comparison import Answered, SystemComparison, SystemResult
from redraft.metrics.evaluation import Evaluation
from redraft.predictor import Prediction
from redraft.types import Candidate, Example, Prototype, TracedToken

HOSTILE = "<script>alert(1)</script>"
PROTOTYPE = Prototype(Example({"text": f"greet {HOSTILE}"}, "print(a)", {"k": HOSTILE}), 0.25)
ANSWER = Candidate(
    f"print({HOSTILE} b)",
    -1.0,
    PROTOTYPE,
    confidence=0.834,
    provenance=(
        TracedToken("print(", "prototype"),
        TracedToken(HOSTILE, "input"),
        TracedToken(" b", "generated"),
        TracedToken(")", "prototype"),
    ),
    invented=("b",),
)


def test_an_answer_is_coloured_by_origin_with_a_legend() -> None:
    html = ANSWER._repr_html_()
    assert html.count("<script") == 0
    assert html.count("copied from the prototype") == 4  # title of two runs; legend and its title
    assert 'title="value from nowhere"' in html
    assert "confidence 83 %" in html
    assert "edited from: greet &lt;script&gt;" in html
    assert "value from nowhere: &#x27;b&#x27;" in html


def test_an_answer_without_provenance_shows_its_text() -> None:
    html = Candidate("a < b", 0.0, None)._repr_html_()
    assert "a &lt; b" in html
    assert "title=" not in html


def test_a_diff_marks_what_changed() -> None:
    html = ANSWER.diff()._repr_html_()
    assert "<del style=" in html
    assert "<ins style=" in html
    assert "<script" not in html


def test_a_prediction_says_if_it_abstains_and_folds_the_others() -> None:
    html = Prediction({"text": HOSTILE}, [ANSWER, ANSWER], 0.9)._repr_html_()
    assert "the model abstains; its best guess:" in html
    assert "<summary>1 more</summary>" in html
    assert "<script" not in html
    assert "abstains" not in Prediction({"text": "x"}, [ANSWER], 0.5)._repr_html_()
    assert "nothing was retrieved" in Prediction({"text": "x"}, [], None)._repr_html_()


def test_an_evaluation_begins_with_the_count_of_right_answers() -> None:
    examples = [Example({"text": "a"}, ANSWER.output), Example({"text": "b"}, "other")]
    html = Evaluation.of(examples, [[ANSWER], [ANSWER]], nearest=["other", None])._repr_html_()
    assert html.startswith("<div><b>1 of 2 right; retrieval alone: 0</b></div><table>")
    assert "similarity, sentence BLEU" in html
    assert "<summary>wrong answers</summary>" in html
    assert "<script" not in html


def test_a_comparison_begins_with_its_recommendation() -> None:
    examples = [Example({"text": str(n)}, "right") for n in range(4)]
    answers = {HOSTILE: "wrong", "nearest": "right"}
    systems = [
        SystemResult(name, examples, [Answered(output, 0.01)] * 4)
        for name, output in answers.items()
    ]
    html = SystemComparison(systems)._repr_html_()
    assert html.startswith("<div><b>Use nearest: right on 100 % of 4 held-out questions")
    assert "100.0 (100.0 to 100.0)" in html
    assert html.count("<tr>") == 3
    assert "<script" not in html
