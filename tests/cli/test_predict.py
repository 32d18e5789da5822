"""`redraft predict` with a model that learned: explanations, options, abstention."""

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.syntax import Syntax
from typer.testing import CliRunner, Result

from redraft import RetrieveAndEdit
from redraft.cli._panels import code, explained_panel, legend, traced
from redraft.cli.app import app
from redraft.editing.beam_search import SearchConfig
from redraft.types import Candidate, TracedToken
from tests.greetings import greeter
from tests.shop import MAPPED, UNKNOWN, WITHOUT_VALUE, shopkeeper

TEXT = "greet Zorblax"
OUTPUT = 'print("hello Zorblax")'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with confidence, one without, one that does not edit, and one that marks."""
    folder = tmp_path_factory.mktemp("models")
    greeter(30).save(folder / "sure")
    greeter().save(folder / "few")
    shopkeeper().save(folder / "shop")
    examples = greeter().retriever.examples
    verbatim = RetrieveAndEdit.fit(examples, retriever="lexical", editor="verbatim")
    verbatim.save(folder / "verbatim")
    return folder


def predict(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["predict", *map(str, arguments)])


def answer(*arguments: object) -> dict[str, Any]:
    done = predict(*arguments)
    assert done.exit_code == 0, done.stderr
    (line,) = done.stdout.splitlines()
    row: dict[str, Any] = json.loads(line)
    return row


def assert_refused(expected: str, *arguments: object) -> None:
    done = predict(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert expected in line


def test_an_explanation_has_all_that_is_known(folder: Path) -> None:
    row = answer(folder / "sure", TEXT, "--explain")
    assert row["output"] == OUTPUT
    assert "abstained" not in row
    (best,) = row["candidates"]
    assert best["log_prob"] < 0 < best["confidence"] < 1
    assert "".join(token["text"] for token in best["provenance"]) == OUTPUT
    assert {"text": " Zorblax", "origin": "input"} in best["provenance"]
    assert best["prototype"]["y"].startswith('print("hello ')
    assert {"change": "added", "text": " Zorblax"} in best["diff"]


def test_what_is_unknown_is_null_and_without_explain_left_out(folder: Path) -> None:
    (few,) = answer(folder / "few", TEXT, "--explain")["candidates"]
    assert few["confidence"] is None
    (verbatim,) = answer(folder / "verbatim", TEXT, "--explain")["candidates"]
    assert (verbatim["log_prob"], verbatim["confidence"]) == (None, None)
    assert verbatim["provenance"] == []
    (brief,) = answer(folder / "sure", TEXT)["candidates"]
    assert set(brief) == {"output", "score", "log_prob", "confidence"}


def test_an_explanation_for_people_has_figures_prototype_diff_and_origins(folder: Path) -> None:
    shown = predict(folder / "sure", TEXT, "--explain", "--format", "table").stdout
    for expected in ("log-probability", "confidence", "prototype ·", "distance", "{+ Zorblax+}"):
        assert expected in shown
    assert "‹copied from the prototype›   «copied from the input»   generated" in shown
    assert "«Zorblax»" in shown
    assert (
        "confidence" not in predict(folder / "few", TEXT, "--explain", "--format", "table").stdout
    )


@pytest.mark.parametrize("explain", [(), ("--explain",)])
def test_an_answer_for_people_says_how_sure_it_is(explain: tuple[str, ...], folder: Path) -> None:
    options = (*explain, "--format", "table")
    sure = predict(folder / "sure", TEXT, *options).stdout
    assert re.search(r"╭─ .*confidence \d+ % ", sure)
    assert "confidence" not in predict(folder / "few", TEXT, *options).stdout


def test_origins_can_be_told_apart_without_colours() -> None:
    provenance = (
        TracedToken("f", "prototype"),
        TracedToken("(", "prototype"),
        TracedToken(" name", "input"),
        TracedToken(" PL", "mapped"),
        TracedToken(")", "generated"),
    )
    candidate = Candidate("f( name PL)", 0.0, None, provenance=provenance)
    console = Console(file=io.StringIO(), force_terminal=True, no_color=True)
    with console.capture() as captured:
        console.print(traced(provenance, marks=False))
        console.print(legend(candidate, marks=False))
    answer, *lines = captured.get().splitlines()
    explained = "".join(lines)
    assert answer == "\x1b[1mf(\x1b[0m \x1b[4mname\x1b[0m \x1b[3mPL\x1b[0m)"
    assert explained.startswith("\x1b[1mcopied from the prototype\x1b[0m")
    assert "\x1b[4mcopied from the input\x1b[0m" in explained
    assert "\x1b[3mmapped from the input as in other examples\x1b[0m" in explained
    assert traced(provenance, marks=True).plain == "‹f(› «name» [→PL])"


def test_an_invented_value_is_marked_within_its_token_and_across_tokens() -> None:
    provenance = (TracedToken("date = '2024", "prototype"), TracedToken("-07'", "generated"))
    invented = ("2024-07",)
    assert traced(provenance, marks=True, invented=invented).plain == "‹date = '2024(?)›-07(?)'"
    shown = traced(provenance, marks=False, invented=invented)
    marked = [
        shown.plain[span.start : span.end] for span in shown.spans if "reverse" in str(span.style)
    ]
    assert "".join(marked) == "2024-07"


@pytest.mark.parametrize(
    ("output", "language"),
    [
        ("SELECT name FROM users", "SQL"),
        ("insert into refunds values (1)", "SQL"),
        ("with open(path) as lines:\n    return lines", "Python"),
        ("kubectl get pods -n auth", "Text only"),
        ("", "Python"),
    ],
)
def test_an_output_is_highlighted_in_its_language(output: str, language: str) -> None:
    shown = code(output)
    assert isinstance(shown, Syntax)
    assert shown.lexer is not None
    assert shown.lexer.name == language


def test_an_explanation_in_a_terminal_says_the_answer_once_by_origin() -> None:
    provenance = (TracedToken("SELECT", "prototype"), TracedToken(" 7", "input"))
    candidate = Candidate("SELECT 7", 0.0, None, provenance=provenance, confidence=0.9)
    shown = {}
    for marks in (False, True):
        console = Console(file=io.StringIO(), width=80)
        console.print(explained_panel({"text": "seven"}, candidate, marks=marks))
        shown[marks] = console.file.getvalue()  # type: ignore[attr-defined]
    assert shown[False].count("SELECT 7") == 1
    assert shown[True].count("SELECT 7") == 1
    assert "‹SELECT› «7»" in shown[True]
    assert "╭─ confidence 90 % ─" in shown[False]


@pytest.mark.parametrize("explain", [(), ("--explain",)])
def test_warnings_stand_above_the_answer(explain: tuple[str, ...], folder: Path) -> None:
    options = (*explain, "--format", "table")
    shown = predict(folder / "shop", WITHOUT_VALUE, *options).stdout
    assert shown.index("warning: value from nowhere: 'BR'") < shown.index("│ answer")
    assert "nothing similar" not in shown
    shown = predict(folder / "shop", UNKNOWN, *options).stdout
    assert shown.index("warning: nothing similar in the index") < shown.index("│ answer")
    assert "warning" not in predict(folder / "shop", MAPPED, *options).stdout


def test_mapped_and_invented_values_have_marks_and_a_legend(folder: Path) -> None:
    options = ("--explain", "--format", "table")
    shown = predict(folder / "shop", MAPPED, *options).stdout
    assert "‹SELECT rate FROM taxes WHERE country = '›[→PL]‹'›" in shown
    assert "[→mapped from the input as in other examples]" in shown
    shown = predict(folder / "shop", WITHOUT_VALUE, *options).stdout
    assert "‹SELECT rate FROM taxes WHERE country = 'BR(?)'›" in shown
    assert "value from nowhere(?)" in shown


def test_edits_can_be_read_in_a_file(folder: Path) -> None:
    shown = predict(folder / "shop", MAPPED, "--format", "table").stdout
    assert "country = '[-BR-]{+PL+}'" in shown


def test_marks_are_in_the_json_where_there_are_any(folder: Path) -> None:
    (invented,) = answer(folder / "shop", WITHOUT_VALUE)["candidates"]
    assert invented["invented"] == ["BR"]
    assert "unfamiliar" not in invented
    row = answer(folder / "shop", UNKNOWN, "--precision", 0.9)
    assert (row["output"], row["abstained"]) == (None, True)
    assert row["candidates"][0]["unfamiliar"] is True
    (mapped,) = answer(folder / "shop", MAPPED, "--precision", 0.9, "--explain")["candidates"]
    assert {"text": "PL", "origin": "mapped"} in mapped["provenance"]
    assert not {"invented", "unfamiliar"} & set(mapped)


def test_steps_of_test_time_training_reach_the_search(folder: Path) -> None:
    log_probs = [
        answer(folder / "sure", TEXT, *options, "--explain")["candidates"][0]["log_prob"]
        for options in ((), ("--ttt-steps", 0), ("--ttt-steps", 2))
    ]
    assert log_probs[0] == log_probs[1] != log_probs[2]


def test_the_beam_reaches_the_search(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def recording(size: int, *rest: float) -> SearchConfig:
        sizes.append(size)
        return SearchConfig(size, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr("redraft.editing.neural.SearchConfig", recording)
    for beam in ((), ("--beam", 1), ("--beam", 7)):
        assert answer(folder / "sure", TEXT, *beam)["output"] == OUTPUT
    assert sizes == [5, 1, 7]


def test_a_seed_draws_the_same_as_in_the_library(folder: Path) -> None:
    rows = [answer(folder / "sure", TEXT, "-k", 3, "--sample", seed) for seed in (1, 1)]
    assert rows[0] == rows[1]
    expected = RetrieveAndEdit.load(folder / "sure").sample([TEXT], 3, seed=1)[0]
    assert [each["output"] for each in rows[0]["candidates"]] == [c.output for c in expected]


def test_a_model_abstains_where_it_is_not_sure(folder: Path) -> None:
    unsure = answer(folder / "sure", TEXT, "--min-confidence", 0.999)
    assert (unsure["output"], unsure["abstained"]) == (None, True)
    assert unsure["candidates"][0]["output"] == OUTPUT
    sure = answer(folder / "sure", TEXT, "--min-confidence", 0.001)
    assert (sure["output"], sure["abstained"]) == (OUTPUT, False)
    shown = predict(folder / "sure", TEXT, "--min-confidence", 0.999, "--format", "table").stdout
    assert shown.startswith("no answer: the best candidate's confidence is ")
    assert "below 100 %" in shown
    assert "│ candidate · " in shown
    assert "│ answer" not in shown


def test_a_precision_becomes_a_confidence(folder: Path) -> None:
    done = predict(folder / "sure", TEXT, "--precision", 0.0)
    assert done.exit_code == 0, done.stderr
    assert "abstaining below a confidence of" in done.stderr
    assert json.loads(done.stdout)["abstained"] in (True, False)


def test_a_precision_that_rests_on_few_pairs_is_warned_of(folder: Path) -> None:
    assert "warning" not in predict(folder / "sure", TEXT, "--precision", 0.0).stderr
    done = predict(folder / "shop", UNKNOWN, "--precision", 0.99)
    count = re.search(
        r"warning: a precision of 99 % rests on (\d+) held-out pairs, and 299", done.stderr
    )
    assert count is not None, done.stderr


def test_a_precision_that_was_never_reached_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from redraft.editing.confidence import Confidence

    monkeypatch.setattr(Confidence, "threshold", lambda *_: None)
    expected = "--precision: 0.95 is not reached at any confidence on the 3 held-out pairs"
    assert_refused(expected, folder / "sure", TEXT, "--precision", 0.95)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--beam", 2),
        ("--ttt-steps", 2),
    ],
)
def test_options_of_the_neural_editor_are_refused_by_models_without_it(
    option: str, value: float, folder: Path
) -> None:
    expected = f"{option}: needs the neural editor, and this model has the verbatim one; fit it"
    assert_refused(expected, folder / "verbatim", TEXT, option, value)


@pytest.mark.parametrize("option", ["--min-confidence", "--precision"])
def test_a_threshold_is_refused_by_editors_without_confidence(option: str, folder: Path) -> None:
    expected = f"{option}: the verbatim editor has no confidence; fit the model again"
    assert_refused(expected, folder / "verbatim", TEXT, option, 0.5)


def test_a_model_of_few_pairs_says_what_its_confidence_would_take(folder: Path) -> None:
    expected = "--precision: this model has no calibrated confidence; fit it again on 20"
    assert_refused(expected, folder / "few", TEXT, "--precision", 0.9)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--sample", 1, "--beam", 2), "--sample and --beam"),
        (("--sample", 1, "--where", "a=b"), "--sample and --where"),
        (("--precision", 0.5, "--min-confidence", 0.5), "--min-confidence and --precision"),
        (("--ttt-steps", 2, "--precision", 0.5), "--ttt-steps and --precision"),
        (("--ttt-steps", 2, "--min-confidence", 0.5), "--ttt-steps and --min-confidence"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    options: tuple[object, ...], named: str, folder: Path
) -> None:
    assert_refused(f"{named} exclude each other", folder / "sure", TEXT, *options)
