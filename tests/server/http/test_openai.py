"""OpenAI's client against a real server, and the conversion of its requests."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from redraft.server.http import openai as openai_routes
from redraft.server.http.fill_in_the_middle import NOTHING, Generation
from redraft.server.http.openai import CompletionsRequest
from redraft.server.schema import FieldError
from tests.server.http.servers import functions, greetings, running

BUFFER = "def area(side):\n    "


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[openai.OpenAI]:
    folder: Path = tmp_path_factory.mktemp("models")
    greetings(10).save(folder / "greet")
    functions().save(folder / "code")
    with (
        running(folder / "greet", folder / "code") as server,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client,
    ):
        yield client


def provenance(choice: Any) -> dict[str, Any]:
    found: dict[str, Any] = choice.model_extra["redraft"]
    return found


def test_models_are_listed(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["greet", "code"]


def test_an_input_is_answered(client: openai.OpenAI) -> None:
    answer = client.completions.create(model="greet", prompt="greet Ada", n=2, temperature=0.7)
    assert answer.choices[0].text == 'print("hello Ada")'
    assert [(each.index, each.finish_reason) for each in answer.choices] == [
        (0, "stop"),
        (1, "stop"),
    ]
    assert provenance(answer.choices[0])["prototype"]["x"] == "greet Ada"
    assert provenance(answer.choices[0])["distance"] == 0.0


def test_a_buffer_is_completed_at_its_end_or_before_the_suffix(client: openai.OpenAI) -> None:
    answer = client.completions.create(model="code", prompt=[BUFFER])
    assert answer.choices[0].text == "return side * side"
    assert provenance(answer.choices[0])["prototype"]["meta"] == {"package": "shapes"}
    assert provenance(answer.choices[0])["probability"] > 0.5
    answer = client.completions.create(model="code", prompt=BUFFER, suffix="\n\nside = 3\n")
    assert answer.choices[0].text == "return side * side"


def test_where_there_is_nothing_to_say_the_text_is_empty(client: openai.OpenAI) -> None:
    answer = client.completions.create(model="code", prompt="def area(si")
    assert [choice.text for choice in answer.choices] == [""]


def test_a_stream_has_the_same_text_token_by_token(client: openai.OpenAI) -> None:
    events = list(client.completions.create(model="greet", prompt="greet Ada", n=2, stream=True))
    first = [event.choices[0] for event in events if event.choices[0].index == 0]
    assert "".join(choice.text for choice in first) == 'print("hello Ada")'
    assert len(first) > 4
    assert [choice.finish_reason for choice in first] == [None] * (len(first) - 1) + ["stop"]
    assert provenance(first[-1])["prototype"]["x"] == "greet Ada"
    assert len({event.id for event in events}) == 1


def test_completions_respect_max_tokens_and_stop_sequences(client: openai.OpenAI) -> None:
    ask = client.completions.create
    short = ask(model="greet", prompt="greet Ada", max_tokens=4).choices[0]
    assert (short.text, short.finish_reason) == ('print("hello', "length")
    stopped = ask(model="greet", prompt="greet Ada", stop=[" Ada", "zzz"]).choices[0]
    assert (stopped.text, stopped.finish_reason) == ('print("hello', "stop")


def test_errors_are_raised_as_the_clients_exceptions(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="no model has this name"):
        client.completions.create(model="other", prompt="greet Ada")
    with pytest.raises(openai.UnprocessableEntityError, match="prompt: should have at most 1 item"):
        client.completions.create(model="greet", prompt=["greet Ada", "greet Ohm"])
    with pytest.raises(openai.UnprocessableEntityError, match="echo: is not a known field"):
        client.completions.create(model="greet", prompt="greet Ada", echo=True)


def test_a_model_with_other_fields_cannot_be_prompted() -> None:
    request = CompletionsRequest(prompt="a")
    with pytest.raises(FieldError, match="fields title, text; use /v1/predict"):
        openai_routes.to_predict_request(request, ["title", "text"])
    asked = openai_routes.to_predict_request(request, ["question"])
    assert asked.inputs == [{"question": "a"}]


def test_prompt_and_suffix_are_limited_together() -> None:
    request = CompletionsRequest(prompt="a" * 600_000, suffix="b" * 600_000)
    with pytest.raises(FieldError, match="may have 1,000,000 characters"):
        openai_routes.to_complete_request(request)


@pytest.mark.parametrize("text", ["", "a", "a  b\n\tc(d, e)", "é = [1,2 ,3]"])
def test_the_pieces_of_a_stream_are_the_text(text: str) -> None:
    request = CompletionsRequest(prompt="")
    generation = Generation(text, NOTHING.provenance)
    response = openai_routes.respond(request, "m", [generation])
    assert response.choices[0].text == text
    *events, last = openai_routes.stream(response)
    assert last == "data: [DONE]\n\n"
    assert all(event.startswith("data: {") and event.endswith("}\n\n") for event in events)
    assert "".join(request.limits.apply(text).tokens) == text
