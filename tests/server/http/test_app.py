"""The routes: responses and refusals."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from redraft import PredictOptions, Predictor, RetrieveAndEdit
from redraft.server.served_model import ServedModel
from tests.server.http.servers import asking, error_of, functions, greetings
from tests.shop import MAPPED, UNKNOWN, WITHOUT_VALUE, shop, shopkeeper


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    loaders = {
        "greetings": lambda: ServedModel("greetings", greetings()),
        "code": lambda: ServedModel("code", functions()),
    }
    with asking(loaders) as client:
        yield client


def test_inputs_are_answered_by_the_first_model_or_by_the_one_that_is_named(
    client: TestClient,
) -> None:
    asked = {"inputs": ["greet Ada", "greet Curie"], "k": 2}
    answered = client.post("/v1/predict", json=asked).json()
    assert answered["model"] == "greetings"
    assert [best["output"] for best, _ in answered["results"]] == [
        'print("hello Ada")',
        'print("hello Curie")',
    ]
    x = {"docstring": "", "name": "area", "arguments": "side"}
    named = client.post("/v1/predict", json={"inputs": [x], "model": "code"}).json()
    assert named["results"][0][0]["prototype"]["meta"] == {"package": "shapes"}


def test_examples_are_found_by_input_and_by_id(client: TestClient) -> None:
    found = client.post("/v1/retrieve", json={"inputs": ["greet Ada"], "k": 3}).json()
    nearest = found["results"][0][0]
    assert len(found["results"][0]) == 3
    example = client.get(f"/v1/models/greetings/examples/{nearest['id']}").json()
    assert example == {key: nearest[key] for key in ("id", "x", "y", "meta")}


def test_outputs_and_buffers_are_gone_on_with(client: TestClient) -> None:
    asked = {"x": "greet Ada", "prefix": "print("}
    found = client.post("/v1/complete", json=asked).json()
    assert found["completions"][0]["text"] == '"hello Ada")'
    text = "def area(side):\n    "
    asked_code = {"model": "code", "text": text, "offset": len(text)}
    found = client.post("/v1/complete", json=asked_code).json()
    assert found["completions"][0]["text"] == "return side * side"


def test_models_are_listed_for_us_and_for_clients_of_openai(client: TestClient) -> None:
    listed = client.get("/v1/models").json()
    assert [each["name"] for each in listed["models"]] == ["greetings", "code"]
    assert [each["completes_python"] for each in listed["models"]] == [False, True]
    assert listed["object"] == "list"
    assert [(each["id"], each["object"]) for each in listed["data"]] == [
        ("greetings", "model"),
        ("code", "model"),
    ]


def test_the_map_is_that_of_the_model(client: TestClient) -> None:
    assert client.get("/v1/models/code/map").json()["examples"] == 1


@pytest.mark.parametrize("value", ["NaN", "-1e999", "[" * 900 + "]" * 900])
def test_meta_that_json_lacks_is_refused(value: str, tmp_path: Path) -> None:
    greetings(3).save(tmp_path / "model")

    def load() -> ServedModel:
        model = RetrieveAndEdit.load(tmp_path / "model")
        return ServedModel("greetings", model, tmp_path / "model")

    example = '{"x": "greet Zuse", "y": "hello()", "meta": {"m": HOLE}}'
    body = f'{{"examples": [{example.replace("HOLE", value)}]}}'
    with asking({"greetings": load}) as client:
        headers = {"content-type": "application/json"}
        refused = client.post("/v1/examples", content=body, headers=headers)
        assert refused.status_code == 422, refused.text
        assert "meta" in refused.text
        assert len(RetrieveAndEdit.load(tmp_path / "model").retriever.examples) == 3


def test_examples_are_added_and_removed(tmp_path: Path) -> None:
    greetings(3).save(tmp_path / "model")

    def load() -> ServedModel:
        model = RetrieveAndEdit.load(tmp_path / "model")
        return ServedModel("greetings", model, tmp_path / "model")

    with asking({"greetings": load}) as client:
        new = {"x": "greet Zuse", "y": "hello()", "meta": {"initial": "Z"}}
        added = client.post("/v1/examples", json={"examples": [new]}).json()
        assert added == {"model": "greetings", "changed": 1, "examples": 4}
        answer = client.post("/v1/predict", json={"inputs": ["greet Zuse"]}).json()
        identity = answer["results"][0][0]["prototype"]["id"]
        assert len(RetrieveAndEdit.load(tmp_path / "model").retriever.examples) == 4
        removed = client.delete("/v1/examples", params={"id": identity}).json()
        assert removed == {"model": "greetings", "changed": 1, "examples": 3}
        removed = client.delete("/v1/examples", params={"where": "initial=A"}).json()
        assert removed["examples"] == 2
        both = {"where": "initial=B", "id": "unknown"}
        refused = client.delete("/v1/examples", params=both)
        assert refused.status_code == 404
        assert error_of(refused)["message"] == "no example has this id; it may have been removed"
        assert client.delete("/v1/examples", params={"where": "initial=B"}).json()["changed"] == 1
        last = client.delete("/v1/examples", params={"where": "initial=C"})
        assert last.status_code == 409
        assert "at least one must stay" in str(error_of(last)["message"])


SECRET = "what the user typed"


@pytest.mark.parametrize(
    ("path", "body", "field", "message"),
    [
        ("predict", {}, "inputs", "is missing"),
        ("predict", {"inputs": []}, "inputs", "should have at least 1 item"),
        ("predict", {"inputs": [SECRET, 5]}, "inputs.1", "should be a valid string or"),
        ("predict", {"inputs": [{"text": 5}]}, "inputs.0.text", "should be a valid string"),
        ("predict", {"inputs": [SECRET * 2000]}, "inputs.0", "at most 20000 characters"),
        ("predict", {"inputs": ["\ud800"]}, "inputs.0", "unable to parse raw data as a unicode"),
        ("predict", {"inputs": [SECRET], "k": "2"}, "k", "should be a valid integer"),
        ("predict", {"inputs": [SECRET], "k": 21}, "k", "less than or equal to 20"),
        ("predict", {"inputs": [SECRET], "beam": 3}, "beam", "is not a known field"),
        ("predict", {"inputs": [SECRET], SECRET: 3}, None, "is not a known field"),
        ("predict", {"inputs": [{"title": SECRET}]}, "inputs.0", "the fields text"),
        ("predict", {"inputs": [SECRET], "where": {"a": []}}, "where.a", "valid"),
        ("predict", [SECRET], None, "expected a JSON object"),
        ("retrieve", {"inputs": [SECRET], "k": 0}, "k", "greater than or equal to 1"),
        ("complete", {"x": SECRET, "text": SECRET}, None, "either x, with prefix, or text"),
        ("complete", {"text": SECRET, "offset": 99}, None, "offset must be from 0 to 19"),
        ("complete", {"text": SECRET, "offset": 9}, "text", "cannot complete a Python buffer"),
        ("complete", {"x": {"title": SECRET}}, "x", "the fields text"),
        ("examples", {"examples": [{"x": SECRET}]}, "examples.0.y", "is missing"),
        ("examples", {"examples": [{"x": {"a": "b"}, "y": ""}]}, "examples.0.x", "the fields"),
        ("completions", {"prompt": [SECRET, SECRET]}, "prompt", "at most 1 item"),
        ("completions", {"prompt": SECRET, "logprobs": 3}, "logprobs", "is not a known field"),
        ("completions", {"prompt": SECRET * 2000}, "prompt", "at most 20000 characters"),
    ],
)
def test_malformed_fields_are_named_and_their_values_not_repeated(
    client: TestClient, path: str, body: object, field: str | None, message: str
) -> None:
    headers = {"Content-Type": "application/json"}
    refused = client.post(f"/v1/{path}", content=json.dumps(body), headers=headers)
    assert refused.status_code == 422
    error = error_of(refused)
    assert error["field"] == field
    assert message in str(error["message"])
    assert field is None or str(error["message"]).startswith(f"{field}: ")
    assert SECRET not in refused.text


@pytest.mark.parametrize(
    ("content", "status", "message"),
    [
        (b'{"inputs": ["wh', 400, "the body is not JSON (at character 12)"),
        (b"[" * 100_000, 400, "the body cannot be read; send JSON"),
        (b'{"inputs": ["\xff"]}', 400, "the body cannot be read; send JSON"),
        (b"", 422, "the body is missing; send JSON"),
        (b'{"inputs": ["a"], "where": {"a": NaN}}', 422, "where.a: should be a finite number"),
    ],
)
def test_bodies_that_are_not_json_are_refused(
    client: TestClient, content: bytes, status: int, message: str
) -> None:
    headers = {"Content-Type": "application/json"}
    refused = client.post("/v1/predict", content=content, headers=headers)
    assert refused.status_code == status
    assert message in str(error_of(refused)["message"])


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        ("GET", "/nowhere", 404, "no such path"),
        ("GET", "/v1/nowhere", 404, "no such path"),
        ("PUT", "/v1/predict", 405, "does not take this method"),
        ("GET", "/v1/models/other/map", 404, "no model has this name; the models are: greetings"),
        ("GET", "/v1/models/code/examples/1", 404, "no example has this id"),
        ("DELETE", "/v1/examples", 422, "say which examples: give id or where"),
        ("DELETE", "/v1/examples?where=abc", 422, "where.0: should match pattern"),
        ("DELETE", "/v1/examples?ids=abc", 422, "ids: is not a known field"),
        ("DELETE", "/v1/examples?id=a&model=other", 404, "no model has this name"),
        ("POST", "/v1/predict", 415, "Content-Type: expected application/json"),
    ],
)
def test_missing_paths_models_and_examples_are_404(
    client: TestClient, method: str, path: str, status: int, message: str
) -> None:
    refused = client.request(method, path)
    assert refused.status_code == status
    assert message in str(error_of(refused)["message"])


def test_plain_text_is_refused_since_any_site_may_post_it(client: TestClient) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        refused = client.post(
            "/v1/predict", content='{"inputs": ["a"]}', headers={"Content-Type": kind}
        )
        assert refused.status_code == 415


def test_an_error_of_ours_has_an_id_and_its_place_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(ServedModel):
        def predict(self, request: Any) -> Any:
            raise ZeroDivisionError(str(request.inputs))

    with asking({"broken": lambda: Broken("broken", greetings())}) as client:
        failed = client.post("/v1/predict", json={"inputs": [SECRET]})
        assert failed.status_code == 500
        identity = str(error_of(failed)["message"]).split()[-1]
        assert f"error {identity}: ZeroDivisionError at " in caplog.text
        assert SECRET not in failed.text + caplog.text
        assert "Traceback" not in failed.text + caplog.text
        assert client.get("/healthz").status_code == 200
        assert 'route="POST /v1/predict",status="500"} 1.0' in client.get("/metrics").text


def test_three_hundred_mixed_requests_one_in_ten_malformed(client: TestClient) -> None:
    good = (
        ("predict", {"inputs": ["greet Ada"]}),
        ("retrieve", {"inputs": ["greet Ada", "greet Ohm"]}),
        ("complete", {"x": "greet Ada", "prefix": "print("}),
    )

    def ask(at: int) -> tuple[bool, int, str]:
        is_bad = at % 10 == 0
        path, body = ("predict", {"inputs": [at]}) if is_bad else good[at % 3]
        response = client.post(f"/v1/{path}", json=body)
        return is_bad, response.status_code, response.text

    with ThreadPoolExecutor(8) as pool:
        for is_bad, status, text in pool.map(ask, range(300)):
            assert status == (422 if is_bad else 200)
            assert not is_bad or "inputs.0: should be" in text


@pytest.fixture(scope="module")
def shop_client() -> Iterator[TestClient]:
    loaders = {
        "shop": lambda: ServedModel("shop", shopkeeper()),
        "greetings": lambda: ServedModel("greetings", greetings()),
    }
    with asking(loaders) as client:
        yield client


def test_the_model_abstains_per_input_and_still_lists_the_candidates(
    shop_client: TestClient,
) -> None:
    asked: dict[str, Any] = {"inputs": [MAPPED, UNKNOWN]}
    plain = shop_client.post("/v1/predict", json=asked).json()
    assert (plain["abstained"], plain["threshold"]) == (None, None)
    sure = shop_client.post("/v1/predict", json=asked | {"min_confidence": 0.5}).json()
    assert (sure["abstained"], sure["threshold"]) == ([False, True], 0.5)
    assert sure["results"] == plain["results"]
    precise = shop_client.post("/v1/predict", json=asked | {"precision": 1}).json()
    expected = Predictor(shopkeeper(), PredictOptions(precision=1.0))
    assert precise["threshold"] == expected.threshold
    predictions = expected.predict(asked["inputs"])
    assert precise["abstained"] == [prediction.abstains for prediction in predictions]


def test_a_stored_input_is_never_abstained_from(shop_client: TestClient) -> None:
    asked = {"inputs": [dict(pair.x) for pair in shop()[:5]], "min_confidence": 0.99}
    assert shop_client.post("/v1/predict", json=asked).json()["abstained"] == [False] * 5


def test_candidates_carry_their_marks(shop_client: TestClient) -> None:
    asked = {"inputs": [MAPPED, WITHOUT_VALUE, UNKNOWN]}
    [mapped], [invented], [unknown] = shop_client.post("/v1/predict", json=asked).json()["results"]
    assert {"text": "PL", "origin": "mapped"} in mapped["tokens"]
    assert (mapped["invented"], mapped["unfamiliar"]) == ([], False)
    assert (invented["invented"], invented["unfamiliar"]) == (["BR"], False)
    assert unknown["unfamiliar"] is True
    completions = shop_client.post("/v1/completions", json={"prompt": WITHOUT_VALUE}).json()
    assert completions["choices"][0]["redraft"]["invented"] == ["BR"]


@pytest.mark.parametrize(
    ("thresholds", "message"),
    [
        ({"precision": 0.9}, "precision: the verbatim editor has no confidence; fit"),
        ({"min_confidence": 0.9}, "min_confidence: the verbatim editor has no confidence; fit"),
        ({"min_confidence": 1.5}, "min_confidence: should be less than or equal to 1"),
        ({"precision": "0.5"}, "precision: should be a valid number"),
        ({"precision": 0.5, "min_confidence": 0.5}, "exclude each other; give one of them"),
    ],
)
def test_thresholds_that_the_model_cannot_follow_are_refused(
    shop_client: TestClient, thresholds: dict[str, object], message: str
) -> None:
    asked = {"inputs": ["greet Ada"], "model": "greetings", **thresholds}
    refused = shop_client.post("/v1/predict", json=asked)
    assert refused.status_code == 422
    assert message.lower() in str(error_of(refused)["message"]).lower()
