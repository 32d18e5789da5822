"""A language model as one proposer among others: it helps where it can, and harms nowhere."""

import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from redraft import Example, RetrieveAndEdit
from redraft.editing.choosing import ChoosingEditor
from redraft.editing.lm_editor import LmEditor, likelihoods
from redraft.errors import ConfigError, LmError, ModelError
from redraft.lm.address import LmAddress
from redraft.lm.client import LmClient
from redraft.lm.settings import LmSettings
from redraft.predictor import connect_lm, lm_name
from redraft.training.fit import FitOptions
from redraft.types import Candidate, Prototype, TracedToken
from tests.lm.endpoint import Endpoint, endpoint, question

WORDS = "one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
KEY = "k3y-of-the-user"


def reverse_pairs() -> list[Example]:
    """Return pairs that no substitution solves: the output spells the first word backwards."""
    pairs = []
    for i, word in enumerate(WORDS):
        for j, other in enumerate(WORDS):
            x = f"turn {word}{other} around"
            y = f"reverse: {(word + other)[::-1]}" if (i + j) % 2 else f"SELECT {i}"
            pairs.append(Example({"text": x}, y))
    return pairs


def solve(body: dict[str, Any]) -> str:
    """Answer a question of `reverse_pairs`."""
    word = question(body).split()[1]
    return f"reverse: {word[::-1]}"


def client_of(server: Endpoint) -> LmClient:
    address = LmAddress.parse(server.url)
    return LmClient(address, time_limit=0.5, backoff=0.01, environment={"REDRAFT_LM_KEY": KEY})


def fit(server: Endpoint, pairs: list[Example]) -> tuple[RetrieveAndEdit, list[str]]:
    """Fit a model with a language model; returns it, without a client, and the log."""
    log: list[str] = []
    with client_of(server) as client:
        lm = LmEditor(LmSettings.of(pairs, model="tiny"), client)
        model = RetrieveAndEdit.fit(pairs, options=FitOptions(lm=lm, log=log.append))
    editor = model.editor
    assert isinstance(editor, ChoosingEditor)
    if editor.lm is not None:
        editor = editor.with_client(None)
    return RetrieveAndEdit(model.retriever, editor), log


@pytest.fixture(scope="module")
def fitted() -> tuple[RetrieveAndEdit, list[str], Endpoint]:
    with endpoint(solve) as server:
        model, log = fit(server, reverse_pairs())
    return model, log, server


@pytest.fixture
def connect(
    fitted: tuple[RetrieveAndEdit, list[str], Endpoint],
) -> Iterator[Callable[[Endpoint], RetrieveAndEdit]]:
    """Return a function that lets the fitted model ask a server."""
    with ExitStack() as stack:
        yield lambda server: connect_lm(fitted[0], stack.enter_context(client_of(server)))


ASKED = {"text": "turn twoseventy around"}


def test_it_is_judged_on_a_limited_number_of_held_out_pairs(
    fitted: tuple[RetrieveAndEdit, list[str], Endpoint],
) -> None:
    _, log, server = fitted
    assert 20 <= len(server.bodies) <= 60
    assert f"asking the language model tiny {len(server.bodies)} held-out pairs" in log[-2]
    assert "without it" in log[-1]
    assert "language model" in log[-1]
    prompts = [body["prompt"] for body in server.bodies]
    assert all(prompt.count("Output:") == 6 for prompt in prompts)  # five examples and the question


def test_a_held_out_pair_is_not_in_its_own_prompt(
    fitted: tuple[RetrieveAndEdit, list[str], Endpoint],
) -> None:
    for body in fitted[2].bodies:
        assert body["prompt"].count(f"Input: {question(body)}\n") == 1


def test_it_answers_what_no_substitution_does(
    connect: Callable[[Endpoint], RetrieveAndEdit],
) -> None:
    with endpoint(solve) as server:
        [best] = connect(server).predict([ASKED])[0]
    assert best.output == f"reverse: {'twoseventy'[::-1]}"
    assert best.confidence is not None
    assert best.prototype is not None
    assert "".join(token.text for token in best.provenance) == best.output
    stored = best.prototype.example.y
    copied = [token.text.strip() for token in best.provenance if token.origin == "prototype"]
    assert copied
    assert all(text in stored for text in copied)
    assert best.provenance[-1].origin == "generated"


FAULTS = ("silent", "429", "500", "break", "half json", "html", "hang up", "wrong event")


@pytest.mark.parametrize("fault", FAULTS)
def test_after_a_fault_the_others_answer_with_one_warning(
    fault: str,
    fitted: tuple[RetrieveAndEdit, list[str], Endpoint],
    connect: Callable[[Endpoint], RetrieveAndEdit],
    caplog: pytest.LogCaptureFixture,
) -> None:
    inputs = [ASKED, {"text": "turn sixninety around"}]
    with endpoint(always=fault) as server, caplog.at_level(logging.INFO, logger="redraft"):
        answers = connect(server).predict(inputs)
    assert answers == fitted[0].predict(inputs)
    [line] = [record.getMessage() for record in caplog.records if record.name[:7] == "redraft"]
    assert line.startswith(f"language model: {server.url}")
    assert line.endswith("answering without it")
    assert KEY not in caplog.text
    assert "twoseventy" not in caplog.text


def test_a_server_that_dies_leaves_the_others_answering(
    fitted: tuple[RetrieveAndEdit, list[str], Endpoint],
    connect: Callable[[Endpoint], RetrieveAndEdit],
) -> None:
    with endpoint(solve) as server:
        model = connect(server)
        before = model.predict([ASKED])
    assert model.predict([ASKED]) == fitted[0].predict([ASKED])
    assert before != model.predict([ASKED])


def asked_once(server: Endpoint) -> tuple[LmEditor, list[Candidate]]:
    """Return an editor, and its answer to a question beside a short and a long example."""
    outputs = ("select 0", "select 1 from orders", " ".join(WORDS * 2))
    pairs = [Example({"text": f"q {i}"}, y) for i, y in enumerate(outputs)]
    with client_of(server) as client:
        editor = LmEditor(LmSettings.of(pairs, model="tiny"), client)
        shown = [Prototype(example, 1.0) for example in pairs[:2]]
        return editor, editor.edit([{"text": "q 3"}], [shown])[0]


def test_it_may_generate_little_more_than_the_longest_example() -> None:
    with endpoint(lambda _: "select 3") as server:
        editor, [answer] = asked_once(server)
    assert answer.output == "select 3"
    assert server.bodies[0]["max_tokens"] == 16 + 3 * 8 // 2 < editor.settings.max_tokens
    assert editor.settings.limit([]) == editor.settings.max_tokens


def test_a_generation_that_loops_is_ended_and_is_no_answer() -> None:
    with endpoint(lambda _: "select a from b where " + "c and d " * 100_000) as server:
        started = time.monotonic()
        assert asked_once(server)[1] == []
        assert time.monotonic() - started < 0.5  # the limit of the client


def test_nothing_is_sent_without_an_address(
    fitted: tuple[RetrieveAndEdit, list[str], Endpoint], tmp_path: Path
) -> None:
    model, _, server = fitted
    model.save(tmp_path / "model")
    saved = [path for path in (tmp_path / "model").rglob("*") if path.is_file()]
    assert not any(server.url.encode() in path.read_bytes() for path in saved)
    before = len(server.bodies)
    loaded = RetrieveAndEdit.load(tmp_path / "model")
    assert loaded.predict([ASKED]) == model.predict([ASKED])
    assert len(server.bodies) == before
    assert lm_name(loaded) == "tiny"


def test_a_saved_model_asks_when_it_is_connected_again(
    fitted: tuple[RetrieveAndEdit, list[str], Endpoint],
    connect: Callable[[Endpoint], RetrieveAndEdit],
    tmp_path: Path,
) -> None:
    fitted[0].save(tmp_path / "model")
    with endpoint(solve) as server:
        loaded = RetrieveAndEdit.load(tmp_path / "model")
        with client_of(server) as client:
            answers = connect_lm(loaded, client).predict([ASKED])
        assert answers == connect(server).predict([ASKED])


def test_a_stored_input_asks_nobody(connect: Callable[[Endpoint], RetrieveAndEdit]) -> None:
    pair = reverse_pairs()[5]
    with endpoint(solve) as server:
        assert connect(server).predict([pair.x])[0][0].output == pair.y
    assert server.bodies == []


def test_a_language_model_of_no_help_is_not_used() -> None:
    with endpoint(lambda _: "nonsense") as server:
        model, log = fit(server, reverse_pairs())
    assert log[-1].endswith("the language model is not used, since it does not help")
    assert lm_name(model) is None
    with (
        client_of(server) as client,
        pytest.raises(ConfigError, match="fitted without a language model, or found it of no help"),
    ):
        connect_lm(model, client)


@pytest.mark.parametrize("always", ["500", "unstreamed"])
def test_one_that_fails_or_says_nothing_while_it_is_judged_is_not_used(always: str) -> None:
    with endpoint(lambda _: "", always=always) as server:
        model, log = fit(server, reverse_pairs())
    assert "the language model is not used: it answered 0 held-out pairs" in log[-1]
    assert lm_name(model) is None


def test_too_few_pairs_judge_nobody() -> None:
    with endpoint(solve) as server:
        _, log = fit(server, reverse_pairs()[:30])
    assert "held-out pairs are too few to judge it" in log[-1]
    assert server.bodies == []


def test_alone_it_is_an_editor_and_a_fault_is_an_error(tmp_path: Path) -> None:
    pairs = reverse_pairs()
    with endpoint(solve) as server, client_of(server) as client:
        lm = LmEditor(LmSettings.of(pairs, model="tiny"), client)
        model = RetrieveAndEdit.fit(pairs, editor=lm)
        assert model.predict_one(ASKED).output == f"reverse: {'twoseventy'[::-1]}"
        server.always = "401"
        with pytest.raises(LmError, match="status 401"):
            model.predict_one(ASKED)
    model.save(tmp_path / "model")
    with pytest.raises(ConfigError, match="name its address with --lm"):
        RetrieveAndEdit.load(tmp_path / "model").predict_one(ASKED)


def test_damaged_settings_are_named(
    fitted: tuple[RetrieveAndEdit, list[str], Endpoint], tmp_path: Path
) -> None:
    from redraft.storage.artifact import Artifact

    editor = fitted[0].editor
    assert isinstance(editor, ChoosingEditor)
    assert editor.lm is not None
    editor.lm.save(tmp_path)
    path = tmp_path / "lm.json"
    values = json.loads(path.read_text())
    artifact = Artifact(tmp_path, {"lm.json": path})
    for wrong in ({**values, "shots": -1}, {**values, "template": "{x}"}, {**values, "url": "a"}):
        path.write_text(json.dumps(wrong))
        with pytest.raises(ConfigError, match=r"lm\.json: "):
            LmEditor.load(artifact)
    path.write_text("[]")
    with pytest.raises(ModelError, match="not the settings of a language model"):
        LmEditor.load(artifact)


def test_the_generated_output_has_its_own_probability() -> None:
    answer = Candidate("a", 0.0, None, log_prob=-0.1, provenance=(TracedToken("a", "generated"),))
    sure = likelihoods(["b", "a", "c"], [answer])
    assert sure[1] == pytest.approx(-0.1)
    assert sure[0] == sure[2] < sure[1]
    assert likelihoods(["b"], []) == [0.0]
