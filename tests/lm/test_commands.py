"""The commands that ask a language model, against a small endpoint."""

import json
import os
import shutil
from pathlib import Path

import pytest

from redraft import RetrieveAndEdit
from redraft.data.pairs import write_pairs
from redraft.lm.address import LmAddress
from redraft.lm.client import LmClient
from redraft.predictor import lm_name
from redraft.server import schema
from redraft.server.served_model import ServedModel
from tests.conftest import Run
from tests.lm.endpoint import endpoint
from tests.lm.test_lm_editor import fit, reverse_pairs, solve

ASKED = "turn twoseventy around"
SOLVED = "reverse: ytnevesowt"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a model that was fitted with a language model."""
    folder = tmp_path_factory.mktemp("fitted") / "model"
    with endpoint(solve) as server:
        fit(server, reverse_pairs())[0].save(folder)
    return folder


@pytest.fixture
def model(saved: Path, tmp_path: Path) -> Path:
    """Return a copy of the model for one test."""
    return shutil.copytree(saved, tmp_path / "model")


def test_fit_judges_a_language_model(redraft: Run, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.jsonl"
    write_pairs(reverse_pairs(), pairs)
    with endpoint(solve) as server:
        done = redraft("fit", pairs, "-o", tmp_path / "model", "--no-train", "--lm", server.url)
    assert done.returncode == 0, done.stderr
    assert "asking the language model tiny" in done.stderr
    assert lm_name(RetrieveAndEdit.load(tmp_path / "model")) == "tiny"


def test_a_prediction_asks_only_if_the_address_is_given_again(redraft: Run, model: Path) -> None:
    with endpoint(solve) as server:
        without = redraft("predict", model, ASKED)
        assert server.bodies == []
        with_it = redraft("predict", model, ASKED, "--lm", server.url)
        assert len(server.bodies) == 1
    assert "answering without the language model tiny; --lm ADDRESS asks it" in without.stderr
    assert json.loads(without.stdout)["output"] != SOLVED
    assert json.loads(with_it.stdout)["output"] == SOLVED


def test_a_fault_is_one_line_and_the_others_answer(redraft: Run, model: Path) -> None:
    os.environ["REDRAFT_LM_KEY"] = "k3y-of-the-user"
    try:
        with endpoint(always="500") as server:
            done = redraft("predict", model, ASKED, "--lm", server.url)
    finally:
        del os.environ["REDRAFT_LM_KEY"]
    assert done.returncode == 0
    assert json.loads(done.stdout)["output"]
    [line] = done.stderr.splitlines()
    assert line.endswith("answered with status 500; answering without it")
    assert ASKED not in line


def test_evaluate_asks_as_well(redraft: Run, model: Path, tmp_path: Path) -> None:
    asked = tmp_path / "asked.jsonl"
    asked.write_text(json.dumps({"x": ASKED, "y": SOLVED}) + "\n")
    with endpoint(solve) as server:
        done = redraft("evaluate", model, asked, "-o", tmp_path / "out", "--lm", server.url)
    assert json.loads(done.stdout)["exact"] == 100


def test_a_served_model_asks_and_still_does_after_a_change(model: Path) -> None:
    request = schema.PredictRequest(inputs=[ASKED])
    with endpoint(solve) as server, LmClient(LmAddress.parse(server.url)) as client:
        served = ServedModel.open("model", model, lm=client)
        other = ServedModel.open("model", model)
        assert served.predict(request)[0][0].output == SOLVED
        assert other.predict(request)[0][0].output != SOLVED
        other.add([reverse_pairs()[0]])  # another program replaces the files
        assert served.refresh()
        assert served.predict(request)[0][0].output == SOLVED


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--editor", "lm"), "--editor lm: needs the address of a language model; add --lm"),
        (
            ("--editor", "verbatim", "--lm", "http://localhost:1/v1"),
            "--lm: needs --editor choosing or lm, not verbatim",
        ),
        (("--lm", "localhost"), "expected an address such as http://localhost:11434/v1"),
        (("--lm", "http://127.0.0.1:9/v1"), "nothing answers there"),
    ],
)
def test_wrong_options_of_fit_are_one_line(
    redraft: Run, pairs_file: Path, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    done = redraft("fit", pairs_file, "-o", tmp_path / "model", *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_wrong_template_is_named(redraft: Run, pairs_file: Path, tmp_path: Path) -> None:
    template = tmp_path / "prompt.txt"
    template.write_text("no places")
    with endpoint(solve) as server:
        options = ("--lm", server.url, "--lm-template", template)
        done = redraft("fit", pairs_file, "-o", tmp_path / "model", *options)
    assert done.returncode == 2
    assert "prompt.txt: needs {x} once, and after it {y} once" in done.stderr


def test_a_model_without_a_language_model_says_so(
    redraft: Run, pairs_file: Path, tmp_path: Path
) -> None:
    redraft("fit", pairs_file, "-o", tmp_path / "model", "--no-train")
    done = redraft("predict", tmp_path / "model", "sum", "--lm", "http://localhost:1/v1")
    assert done.returncode == 2
    assert "this model was fitted without a language model" in done.stderr


def test_a_model_alone_answers_and_shards_are_refused(
    redraft: Run, pairs_file: Path, tmp_path: Path
) -> None:
    with endpoint(lambda _: "sum(cards)") as server:
        address = ("--lm", server.url)
        redraft("fit", pairs_file, "-o", tmp_path / "model", "--editor", "lm", *address)
        done = redraft("predict", tmp_path / "model", "sum the cards", *address)
        assert json.loads(done.stdout)["output"] == "sum(cards)"
        inputs = tmp_path / "inputs.jsonl"
        inputs.write_text('{"x": "sum"}\n')
        sharded = redraft(
            "predict", tmp_path / "model", "--file", inputs, "-o", tmp_path / "out", *address
        )
    assert "--lm and --out exclude each other" in sharded.stderr


def test_a_missing_language_model_says_what_to_install(redraft: Run) -> None:
    done = redraft("lm", "start", "no-such-file.gguf")
    assert done.returncode == 2
    assert "no such model; name one of smollm2, or a GGUF file" in done.stderr


def test_another_file_is_no_language_model(redraft: Run, pairs_file: Path) -> None:
    done = redraft("lm", "start", pairs_file)
    assert done.returncode == 2
    assert "is not a GGUF file" in done.stderr
