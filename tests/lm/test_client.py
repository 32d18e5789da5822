"""The client against a server that answers, and against one that fails in every way."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from redraft.errors import LmError
from redraft.lm.address import LmAddress
from redraft.lm.client import LmClient
from redraft.lm.prompt import TEMPLATE, Prompt, PromptTemplate
from redraft.lm.stream import LmAnswer
from tests.lm.endpoint import Endpoint, elapsed, endpoint, question

KEY, TEXT = "k3y-of-the-user", "private question"

LIMIT = 0.6
"""Seconds for an answer in these tests."""

SLACK = 3.0
"""Seconds that a loaded machine may add; a server that hangs does so for longer."""


def prompt(text: str = TEXT) -> Prompt:
    return PromptTemplate.parse(TEMPLATE).prompt({"text": text}, [], tokens=500, multiline=False)


Connect = Callable[..., LmClient]


@pytest.fixture
def client() -> Iterator[Connect]:
    """Return a function that connects to a server; the connections are closed after the test."""
    with ExitStack() as stack:

        def connect(server: Endpoint, *, requests: int | None = None) -> LmClient:
            client = LmClient(
                LmAddress.parse(server.url),
                time_limit=LIMIT,
                requests=requests,
                backoff=0.01,
                environment={"REDRAFT_LM_KEY": KEY},
            )
            return stack.enter_context(client)

        yield connect


def ask(asked: LmClient, *, is_chat: bool = False) -> LmAnswer:
    return asked.generate(prompt(), model="tiny", max_tokens=20, is_chat=is_chat)


@pytest.mark.parametrize("is_chat", [False, True])
def test_an_answer_is_streamed_with_its_probability(is_chat: bool, client: Connect) -> None:
    with endpoint(lambda body: f"{question(body)} answered") as server:
        answer = ask(client(server), is_chat=is_chat)
    assert answer == LmAnswer(f"{TEXT} answered", -1.5, is_complete=True)
    [body] = server.bodies
    assert (body["temperature"], body["stop"], body["stream"]) == (0, ["\n"], True)
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_a_server_without_streams_and_probabilities_is_read_as_well(client: Connect) -> None:
    with endpoint(always="unstreamed") as server:
        assert ask(client(server)) == LmAnswer("fine", None, is_complete=True)


@pytest.mark.parametrize(
    ("sent", "read"),
    [(float("nan"), None), (float("-inf"), None), (float("inf"), None), (1000.0, 0.0)],
)
def test_impossible_probabilities_are_not_believed(
    sent: float, read: float | None, client: Connect
) -> None:
    with endpoint(log_prob=sent) as server:
        assert ask(client(server)) == LmAnswer("fine", read, is_complete=True)


def test_text_after_a_stop_sequence_is_cut_off(client: Connect) -> None:
    with endpoint(lambda _: "SELECT\nInput: more") as server:
        assert ask(client(server)).text == "SELECT"


@pytest.mark.parametrize("fault", ["429", "500", "503", "hang up", "break"])
def test_faults_that_may_pass_are_retried(fault: str, client: Connect) -> None:
    with endpoint(faults=[fault, fault]) as server:
        asked = client(server)
        assert ask(asked).text == "fine"
    assert asked.sent == 3


FAULTS = {
    "429": "answered with status 429",
    "500": "answered with status 500",
    "401": "answered with status 401; put its key into REDRAFT_LM_KEY",
    "404": "answered with status 404; check the address and --lm-model, or try --lm-chat",
    "302": "answered with status 302",
    "silent": "no answer within 0.6 s; raise --lm-time-limit",
    "trickle": "no answer within 0.6 s; raise --lm-time-limit",
    "hang up": "its answer broke off",
    "break": "its answer broke off",
    "html": "sent something else than a completion",
    "half json": "sent something else than a completion",
    "other json": "sent something else than a completion",
    "wrong event": "sent something else than a completion",
    "error event": "sent something else than a completion",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_one_clear_line_within_the_limit(
    fault: str, caplog: pytest.LogCaptureFixture, client: Connect
) -> None:
    with endpoint(always=fault) as server, caplog.at_level(logging.DEBUG):
        start = time.monotonic()
        with pytest.raises(LmError) as raised:
            ask(client(server))
        assert elapsed(start) < LIMIT + SLACK
        client(server).warn(raised.value)
    message = str(raised.value)
    assert message.startswith(server.url)
    assert FAULTS[fault] in message
    assert "\n" not in message
    for text in (message, caplog.text):
        assert KEY not in text
        assert TEXT not in text
    assert [record for record in caplog.records if record.name == "redraft.lm.client"]


def test_a_server_that_is_not_there_is_named(client: Connect) -> None:
    with endpoint() as server:
        pass
    with pytest.raises(LmError, match="nothing answers there; start the server"):
        ask(client(server))


def test_after_a_fault_no_request_is_sent_for_a_while(client: Connect) -> None:
    with endpoint(faults=["401"]) as server:
        asked = client(server)
        for _ in range(3):
            with pytest.raises(LmError, match="status 401"):
                ask(asked)
    assert asked.sent == 1


def test_a_reason_is_logged_once(caplog: pytest.LogCaptureFixture, client: Connect) -> None:
    with endpoint(always="401") as server:
        asked = client(server)
        for _ in range(3):
            with pytest.raises(LmError) as raised:
                ask(asked)
            asked.warn(raised.value)
    [record] = caplog.records
    assert record.getMessage().startswith(f"language model: {server.url}: answered with status 401")
    assert record.getMessage().endswith("; answering without it")


def test_the_number_of_requests_is_limited(client: Connect) -> None:
    with endpoint() as server:
        asked = client(server, requests=2)
        ask(asked)
        ask(asked)
        with pytest.raises(LmError, match="its limit of 2 requests is used up"):
            ask(asked)
    assert len(server.bodies) == 2


def test_the_only_model_needs_no_name(client: Connect) -> None:
    with endpoint() as server:
        assert client(server).find_model(None) == "tiny"
        assert client(server).find_model("other") == "other"


def test_an_answer_that_reached_the_limit_is_not_complete() -> None:
    from redraft.lm.stream import LmStream

    stream = LmStream(("\n",))
    stream.add({"choices": [{"text": " SELECT", "finish_reason": "length"}]}, is_whole=False)
    assert not stream.finished().is_complete
