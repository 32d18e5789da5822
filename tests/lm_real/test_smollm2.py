"""A real language model: answers, judging, provenance, comparison, and a server that dies."""

import json
from pathlib import Path

import pytest

from redraft import Example, RetrieveAndEdit
from redraft.data.pairs import write_pairs
from redraft.editing.lm_editor import LmEditor
from redraft.errors import LmError
from redraft.lm.address import LmAddress
from redraft.lm.client import LmClient
from redraft.lm.prompt import TEMPLATE, PromptTemplate
from redraft.lm.settings import LmSettings
from redraft.predictor import connect_lm
from redraft.training.fit import FitOptions
from redraft.types import Candidate
from tests.conftest import Run
from tests.lm_real.conftest import smollm2
from tests.shop import shop

NEW = {"text": "total revenue of Bergen"}
ANSWER = "SELECT SUM(total) FROM orders WHERE city = 'Bergen'"


def editor_of(client: LmClient, *, shots: int, is_chat: bool = False) -> LmEditor:
    settings = LmSettings.of(shop(), model=client.find_model(None), shots=shots, is_chat=is_chat)
    return LmEditor(settings, client)


@pytest.mark.parametrize("is_chat", [False, True])
def test_it_answers_from_examples_with_a_probability(client: LmClient, is_chat: bool) -> None:
    model = RetrieveAndEdit.fit(shop(), editor=editor_of(client, shots=3, is_chat=is_chat))
    answer = model.predict_one(NEW)
    assert answer.output == ANSWER
    assert answer.log_prob is not None
    assert answer.log_prob < 0
    assert client.tokens > 50


def check_provenance(answer: Candidate) -> None:
    """Assert that the tokens are the output, and the copied ones stand in the named source."""
    assert "".join(token.text for token in answer.provenance) == answer.output
    source = answer.prototype.example.y if answer.prototype else ""
    for token in answer.provenance:
        assert token.origin != "prototype" or token.text in f" {source}"


def test_it_is_judged_beside_the_others_and_answers_with_its_source(client: LmClient) -> None:
    log: list[str] = []
    lm = editor_of(client, shots=1)
    pairs = [*shop(), *(Example({"text": f"say {i} twice"}, f"{i} {i}") for i in range(30))]
    fitted = RetrieveAndEdit.fit(pairs, options=FitOptions(lm=lm, log=log.append))
    assert any("asking the language model smollm2" in line for line in log)
    assert "language model" in log[-1]
    answers = fitted.predict([NEW, {"text": "open tickets in Bergen"}])
    for [answer] in answers:
        check_provenance(answer)
        assert answer.confidence is not None


def test_copied_tokens_stand_in_the_named_source(client: LmClient) -> None:
    pairs = shop()
    lm = editor_of(client, shots=1)
    asked = [pair.x for pair in pairs[::18]]
    retriever = RetrieveAndEdit.fit(pairs, editor="verbatim").retriever
    prototypes = retriever.retrieve(asked, 10, exclude=pairs[::18])
    answers = [answer for [answer] in filter(None, lm.edit(asked, prototypes))]
    assert len(answers) >= 2
    for answer in answers:
        check_provenance(answer)


def test_a_comparison_asks_it_with_and_without_examples(
    redraft: Run, address: str, tmp_path: Path
) -> None:
    write_pairs(shop(), tmp_path / "pairs.jsonl")
    options = ("--lm", address, "--lm-shots", 2, "--questions", 1, "--format", "json")
    done = redraft("compare", tmp_path / "pairs.jsonl", *options)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert [system["requests"] for system in figures["systems"]] == [0, 0, 0, 1, 1, 1, 1]


def test_a_time_limit_stops_the_generation(address: str) -> None:
    prompt = PromptTemplate.parse(TEMPLATE).prompt(NEW, shop()[:20], tokens=3000, multiline=True)
    with (
        LmClient(LmAddress.parse(address), time_limit=0.05) as client,
        pytest.raises(LmError, match=r"no answer within 0\.05 s"),
    ):
        client.generate(prompt, model="smollm2", max_tokens=500)


def test_when_the_server_dies_the_others_answer(caplog: pytest.LogCaptureFixture) -> None:
    from tests.lm.endpoint import endpoint
    from tests.lm.test_lm_editor import fit, reverse_pairs, solve

    with endpoint(solve) as server:
        model, _ = fit(server, reverse_pairs())
    asked = [{"text": "turn twoseventy around"}]
    with smollm2() as (url, process), LmClient(LmAddress.parse(url), backoff=0.01) as client:
        connected = connect_lm(model, client)
        connected.predict(asked)
        sent = client.sent
        assert sent == 1
        process.kill()
        process.wait()
        assert connected.predict(asked) == model.predict(asked)
    [warning] = [record.getMessage() for record in caplog.records if "language" in record.message]
    assert "nothing answers there" in warning or "broke off" in warning
