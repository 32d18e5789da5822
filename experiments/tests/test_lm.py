"""The experiment on completion with a language model, on a tiny project and a scripted endpoint."""

import math
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.completion.projects import cut
from experiments.lm.collection import (
    Collector,
    CursorAnswer,
    ForcedAnswer,
    from_line,
    place_of,
    to_line,
)
from experiments.lm.mixture import fit_mixture, write_mixture
from experiments.lm.pairs import PairAnswers, pair_row, pooled_row
from experiments.lm.sets import SYSTEMS, all_sets_rows, set_row
from experiments.lm.summary import cursor_rows, forced_rows
from experiments.public_pairs.sets import PairSet
from redraft.completion.mixing import starter_mixture
from redraft.editing.alignment import aligned
from redraft.lm.address import LmAddress
from redraft.lm.client import LmClient
from redraft.types import Example, Prototype
from tests.lm.endpoint import endpoint
from tests.lm.test_lm_editor import reverse_pairs, solve

SOURCE = '''def area(side):
    """Area."""
    total = side * side
    total = total + 0
    print(total)
    return total


def volume(side):
    """Volume."""
    total = side * side * side
    total = total + 0
    print(total)
    return total
'''


def answer(i: int, *, is_right: bool, shots: int = 3) -> CursorAnswer:
    """Return an answer whose probabilities tell whether it is right."""
    log_prob = -0.05 if is_right else -2.5
    text = "return total + 1" if is_right else "return something"
    return CursorAnswer(
        f"package{i % 3}",
        f"function{i}",
        "empty body",
        shots,
        "return total + 1\n",
        [("print(total) or", 0.3)],
        [(text, log_prob, log_prob, 4, True)],
        0.5,
        i % 2 == 0,
    )


def test_a_function_is_asked_at_its_cursors_and_at_every_word() -> None:
    project = cut("shapes", {"shapes/shapes.py": SOURCE}, 1, random.Random(0))
    [asked] = project.asked
    body = asked.example.y

    def continue_truly(request: dict[str, object]) -> str:
        written = str(request["prompt"]).rpartition(f"def {asked.example.x['name']}(")[2]
        typed = written.partition('"""\n')[2].replace("\n    ", "\n").removeprefix("   ").strip()
        rest = body[len(typed) :].replace("\n", "\n    ")
        return rest.removeprefix(" ") if typed else rest

    with (
        endpoint(continue_truly, log_prob=-0.01) as server,
        LmClient(LmAddress.parse(server.url)) as client,
    ):
        answers = list(Collector(client, "tiny", random.Random(0)).ask(project, [0, 1], [1]))
        done = frozenset(map(place_of, answers[2:]))
        resumed = Collector(client, "tiny", random.Random(0), done=done)
        left = list(resumed.ask(project, [0, 1], [1]))
    assert [place_of(one) for one in left] == [place_of(one) for one in answers[:2]]
    assert [type(one) for one in answers] == [CursorAnswer] * 8 + [ForcedAnswer]
    assert isinstance(answers[-1], ForcedAnswer)
    assert np.mean(answers[-1].hits) > 0.5
    assert [from_line(to_line(one)) for one in answers] == [
        from_line(to_line(from_line(to_line(one)))) for one in answers
    ]


def test_a_mixture_learns_which_generations_are_right(tmp_path: Path) -> None:
    answers = [answer(i, is_right=i % 2 == 0) for i in range(40)]
    mixture = fit_mixture(answers)
    write_mixture(mixture, tmp_path / "mixing.json")
    rows = cursor_rows(
        [*answers, *(answer(i, is_right=False, shots=0) for i in range(40))], mixture, "dev", 0
    )
    right = {
        row.system: row.metrics["right"]
        for row in rows
        if "right" in row.metrics and not row.baseline
    }
    assert right["redraft"] == 0
    assert right["mixed"] == pytest.approx(50)
    assert right["mixed, within 0.5 s"] == right["mixed"]


def test_the_lead_of_retrieval_is_paired() -> None:
    alone = [ForcedAnswer("p", f"f{i}", 0, [True, False, True, False], 1.0) for i in range(4)]
    shown = [ForcedAnswer("p", f"f{i}", 3, [True, True, True, False], 1.0) for i in range(4)]
    rows = forced_rows([*alone, *shown], "test", 0)
    assert [row.metrics["longest"] for row in rows] == [1.0, 3.0, 2.0]
    assert rows[-1].is_difference


def test_a_false_source_would_be_counted() -> None:
    stored = Prototype(Example({"text": "x"}, "SELECT a FROM b"), 1.0)
    candidate = aligned(["rome"], "SELECT a FROM rome", [stored])
    answers = PairAnswers(0, [(0.9, True), (0.2, False)], [({"text": "of Rome"}, candidate)])
    assert pair_row(answers).metrics["false"] == 0
    other = Prototype(Example({"text": "x"}, "DELETE"), 1.0)
    wrong = PairAnswers(0, answers.mixed, [({"text": "x"}, replace(candidate, prototype=other))])
    assert pair_row(wrong).metrics["false"] == 4
    pooled = pooled_row([pair_row(answers), pair_row(wrong)])
    assert (pooled.n, pooled.metrics["false"], pooled.metrics["right"]) == (4, 4, 50)
    assert pooled.metrics["error"] == pytest.approx(5)


def test_every_system_is_compared_on_a_drawn_part_of_a_set() -> None:
    pairs = reverse_pairs()
    with endpoint(solve) as server, LmClient(LmAddress.parse(server.url)) as client:
        rows = [
            set_row(
                PairSet(name, "dev", pairs[20:], pairs[:20]), client, questions=4, shots=2, seed=0
            )
            for name in ("one", "two")
        ]
    assert rows[0].n == 4
    assert rows[0].config["recommended"] in SYSTEMS.values()
    assert rows[0].metrics["seconds"] > 0
    assert {name: rows[0].metrics[name] for name in SYSTEMS} == {
        name: 25.0 * sum(rows[0].config["exact"][name]) for name in SYSTEMS
    }
    mean, *leads = all_sets_rows(rows)
    assert (mean.n, mean.metrics["ours"]) == (8, rows[0].metrics["ours"])
    assert [lead.metrics["nearest"] for lead in leads] == [
        mean.metrics[name] - mean.metrics["nearest"] for name in ("untrained", "ours")
    ]


def test_the_shipped_mixture_trusts_a_sure_generation_more() -> None:
    weights = starter_mixture().generated
    assert weights[1] > 0
    assert math.isfinite(float(weights.sum()))
