"""`redraft compare`: the same questions for every system, and a recommendation by its figures."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from redraft.comparison import CompareOptions, compare, hold_out
from redraft.data.pairs import write_pairs
from redraft.editing.lm_editor import LmEditor
from redraft.errors import LmError, PairsError
from redraft.lm.settings import LmSettings
from redraft.metrics.comparison import Answered, SystemComparison, SystemResult
from redraft.types import Example
from tests.conftest import Run
from tests.lm.endpoint import Endpoint, endpoint, question
from tests.lm.test_lm_editor import client_of, reverse_pairs, solve
from tests.shop import shop


def result(name: str, right: int, *, requests: int = 0, is_trained: bool = False) -> SystemResult:
    """Return a system that answers the first `right` of 50 questions."""
    examples = [Example({"text": f"q {i}"}, f"select column_{i} from t") for i in range(50)]
    answers = [
        Answered(example.y if i < right else "nothing alike", 0.1, requests, 1000 * requests)
        for i, example in enumerate(examples)
    ]
    return SystemResult(name, examples, answers, is_trained=is_trained, price=2.0)


def test_the_best_system_is_recommended_if_it_is_measurably_ahead() -> None:
    compared = SystemComparison([result("cheap", 5), result("model", 40, requests=1)])
    assert compared.recommended.name == "model"
    assert compared.recommendation.startswith(
        "Use model: right on 80 % of 50 held-out questions, 70.0 points ("
    )
    assert compared.recommendation.endswith(" ahead of cheap, the next best.")


def test_of_systems_that_are_level_the_cheapest_is_recommended() -> None:
    compared = SystemComparison([result("model", 41, requests=1), result("cheap", 40)])
    assert (compared.best.name, compared.recommended.name) == ("model", "cheap")
    assert "model is ahead by 2.0 points, which may be chance (" in compared.recommendation
    assert compared.recommendation.endswith(", and needs more.")
    trained = SystemComparison([result("trained", 40, is_trained=True), result("plain", 40)])
    assert trained.recommended.name == "plain"


def test_without_right_answers_similarity_decides() -> None:
    compared = SystemComparison([result("a", 0), result("b", 0)])
    assert compared.measure == "similarity"
    assert "where nothing is right" in compared.recommendation


def test_the_cost_of_an_answer_comes_from_its_tokens() -> None:
    assert result("model", 1, requests=1).cost == pytest.approx(2.0 * 1000 / 1e6)
    assert result("cheap", 1).cost is None


def test_nothing_is_compared_on_no_questions() -> None:
    with pytest.raises(PairsError, match="nothing to compare; ask at least one question"):
        SystemComparison([])


def test_held_out_pairs_are_others_than_those_fitted_on() -> None:
    train, asked = hold_out(shop(), 100)
    assert len(asked) == pytest.approx(0.2 * len(shop()), abs=1)
    assert not set(map(str, train)) & set(map(str, asked))
    assert (train, asked) == hold_out(shop(), 100)
    with pytest.raises(PairsError, match="9 pairs are too few to compare on; give 10 or more"):
        hold_out(shop()[:9], 100)


def asked_by(server: Endpoint, seconds: float = 0.0) -> tuple[SystemComparison, list[str]]:
    log: list[str] = []
    train, asked = hold_out(reverse_pairs(), 6)
    with client_of(server) as client:
        lm = LmEditor(LmSettings.of(train, model="tiny"), client)
        return compare(train, asked, CompareOptions(lm=lm, seconds=seconds, log=log.append)), log


def test_every_system_is_asked_the_same_questions() -> None:
    with endpoint(solve) as server:
        compared, _ = asked_by(server)
    assert [system.name for system in compared.systems] == [
        "the nearest example",
        "substitution",
        "Redraft untrained",
        "language model alone",
        "language model with random examples",
        "language model with BM25's examples",
        "language model with Redraft's examples",
    ]
    assert compared.n == 6
    assert [system.requests for system in compared.systems] == [0, 0, 0, 1, 1, 1, 1]
    alone, random, nearest, cover = (server.bodies[i]["prompt"] for i in range(4))
    assert [text.count("Output:") for text in (alone, random, nearest, cover)] == [1, 6, 6, 6]
    assert len({alone, random, nearest}) == 3


def test_a_time_limit_ends_the_questions_for_all() -> None:
    with endpoint(solve) as server:
        compared, log = asked_by(server, seconds=1e-6)
    assert compared.n == 1
    assert {len(system.answers) for system in compared.systems} == {1}
    assert log[-1] == "time is over: the figures are of 1 of 6 questions"


def test_an_interrupt_ends_the_questions_and_keeps_the_figures() -> None:
    asked: list[str] = []

    def interrupted(body: dict[str, Any]) -> str:
        asked.append(question(body))
        if len(asked) == 10:  # within the third question
            signal.raise_signal(signal.SIGINT)
        return solve(body)

    with endpoint(interrupted) as server:
        compared, log = asked_by(server)
    assert compared.n == 2
    assert {len(system.answers) for system in compared.systems} == {2}
    assert log[-1] == "stopped: the figures are of 2 of 6 questions"


def test_a_fault_ends_the_questions_or_is_an_error_at_the_first() -> None:
    with endpoint(solve, faults=[""] * 10, always="401") as server:
        compared, log = asked_by(server)
    assert compared.n == 2
    assert "the figures are of 2 questions" in log[-1]
    assert "status 401" in log[-1]
    with endpoint(solve, always="401") as server, pytest.raises(LmError, match="status 401"):
        asked_by(server)


def test_a_late_answer_counts_as_wrong_and_three_in_a_row_end_the_questions() -> None:
    with endpoint(solve, faults=[""] * 5 + ["silent"], always="") as server:
        compared, log = asked_by(server)
    assert compared.n == 6
    outputs = [answer.output for answer in compared.systems[4].answers]
    assert [output is None for output in outputs] == [False, True, False, False, False, False]
    assert log[-1] == "late answers of the language model, which count as wrong: 1"
    with endpoint(solve, faults=[""] * 8, always="silent") as server:
        compared, log = asked_by(server)
    assert compared.n == 2
    assert "the figures are of 2 questions" in log[-2]
    assert log[-1] == "late answers of the language model, which count as wrong: 2"


def test_the_command_writes_table_figures_and_report(redraft: Run, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.jsonl"
    hostile = Example({"text": "<script>alert(1)</script> & co"}, "<b>SELECT</b>")
    write_pairs([*reverse_pairs(), *[hostile] * 8], pairs)
    with endpoint(lambda body: question(body)[::-1]) as server:
        options = ("--lm", server.url, "--questions", 12, "--price", 0.5, "-o", tmp_path / "out")
        done = redraft("compare", pairs, *options)
    assert done.returncode == 0, done.stderr
    assert "Redraft's" in done.stdout
    assert "cost" in done.stdout
    figures = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert done.stdout.strip().endswith(figures["recommendation"])
    rows = (tmp_path / "out" / "rows.jsonl").read_text().splitlines()
    assert len(rows) == figures["n"] == 12
    page = (tmp_path / "out" / "report.html").read_text()
    assert figures["recommendation"].replace("'", "&#x27;") in page
    assert "<script" not in page
    assert "<b>SELECT" not in page


def test_the_command_works_without_a_language_model(redraft: Run, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.jsonl"
    write_pairs(shop(), pairs)
    done = redraft("compare", pairs, "--format", "json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    best = max(figures["systems"], key=lambda system: system["exact"])
    assert best["exact"] > 50
    assert best["system"] in figures["recommendation"]
    assert [system["requests"] for system in figures["systems"]] == [0, 0, 0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--price", "1"), "--price: only a language model has one; add --lm ADDRESS"),
        (("--budget", "9s"), "--budget: is the time to train; add --train"),
        (("--lm", "https://api.example.com/v1"), "confirm that with --lm-remote"),
        (("--lm", "http://127.0.0.1:9/v1"), "nothing answers there; start the server"),
    ],
)
def test_wrong_options_are_one_line(
    redraft: Run, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    pairs = tmp_path / "pairs.jsonl"
    write_pairs(shop(), pairs)
    done = redraft("compare", pairs, *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
