"""`/infill`: its limits, context of a request, streams, and malformed and huge requests."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from redraft.server import schema
from redraft.server.http.app import AppConfig
from redraft.server.http.llama_cpp import InfillFile, InfillRequest
from redraft.server.http.middleware import SecurityConfig
from redraft.server.served_model import ServedModel
from tests.server.functions import served_functions
from tests.server.http.servers import asking, error_of, greetings

CODE = """
def read_items(path):
    items = []
    with open(path) as lines:
        for line in lines:
            items.append(line.strip())
    return items
"""
EXTRA = {
    "filename": "shop/prices.py",
    "text": "        return old\n\n    def vat_of(self, amount):\n"
    "        quota = amount * self.vat_rate\n        return round(quota, 2)\n\n    def broken(self",
}
AROUND = {"input_prefix": "def read_lines(path):\n", "input_suffix": "\n", "prompt": "    items ="}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder: Path = tmp_path_factory.mktemp("project")
    (folder / "items.py").write_text(CODE)
    loaders = {
        "code": lambda: served_functions(folder),
        "greetings": lambda: ServedModel("greetings", greetings()),
    }
    with asking(loaders) as client:
        yield client


def infill(client: TestClient, **fields: Any) -> dict[str, Any]:
    response = client.post("/infill", json={**AROUND, **fields})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def test_the_model_of_another_server_is_ignored_as_llama_cpp_does(client: TestClient) -> None:
    assert infill(client, model="qwen2.5-coder")["model"] == "code"
    assert infill(client)["content"].lstrip().startswith("[]")


def test_functions_of_excerpts_that_do_not_parse_count_for_this_request(client: TestClient) -> None:
    around = {
        "input_prefix": "class Shop:\n    def vat_of(self, amount):\n",
        "prompt": "        quota",
    }
    with_extra = infill(client, **around, input_extra=[EXTRA])
    assert with_extra["content"].startswith(" = amount * self.vat_rate")
    assert with_extra["redraft"]["prototype"]["meta"] == {"file": "shop/prices.py"}
    assert "vat_rate" not in infill(client, **around)["content"]


def test_completions_end_at_stops_tokens_and_outer_lines(client: TestClient) -> None:
    around = {"prompt": "    items = []\n    with open(path) as lines:\n        for"}
    whole = infill(client, **around)
    assert whole["content"].startswith(" line in lines")
    short = infill(client, **around, n_predict=3)
    assert (short["content"], short["stop_type"]) == (" line in", "limit")
    stopped = infill(client, **around, stop=["lines", "zzz"])
    assert (stopped["content"], stopped["stop_type"]) == (" line in ", "word")
    assert stopped["stopping_word"] == "lines"
    assert "\n" not in infill(client, **around, n_indent=80)["content"]


def test_a_stream_has_the_same_content(client: TestClient) -> None:
    whole = infill(client)
    response = client.post("/infill", json={**AROUND, "stream": True})
    parts = [json.loads(line.removeprefix("data: ")) for line in response.text.split("\n\n")[:-1]]
    assert "".join(part["content"] for part in parts) == whole["content"]
    assert [part["stop"] for part in parts] == [False] * (len(parts) - 1) + [True]
    assert parts[-1]["redraft"] == whole["redraft"]


def test_the_ending_of_the_file_is_that_of_most_excerpts() -> None:
    names = ["a.py", "b.ts", "c.ts", None, "Makefile"]
    extra = [InfillFile(text="", filename=name) for name in names]
    request = InfillRequest(input_prefix="", input_suffix="", input_extra=extra)
    assert request.gap.file == "untitled.ts"
    long = InfillFile(text="", filename="a." + "b" * (schema.MAX_PATH_LENGTH - 2))
    request = InfillRequest(input_prefix="", input_suffix="", input_extra=[long])
    assert request.gap.to_request(1).file is None
    assert InfillRequest(input_prefix="", input_suffix="").gap.file is None


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"input_prefix": None}, "input_prefix"),
        ({"input_suffix": 1}, "input_suffix"),
        ({"prompt": [1, 2]}, "prompt"),
        ({"n_predict": -2}, "n_predict"),
        ({"n_predict": "5"}, "n_predict"),
        ({"n_cmpl": 0}, "n_cmpl"),
        ({"n_cmpl": 1000}, "n_cmpl"),
        ({"stop": [""]}, "stop.0"),
        ({"stop": ["a"] * 65}, "stop"),
        ({"input_extra": [{"filename": "a.py"}]}, "input_extra.0.text"),
        ({"input_extra": [{"text": ""}] * 257}, "input_extra"),
        ({"input_prefix": "a" * 1_000_001}, "input_prefix"),
        ({"input_prefix": "a" * 600_000, "input_suffix": "a" * 600_000}, "suffix"),
        ({"response_fields": ["a"] * 65}, "response_fields"),
        ({f"unknown{i}": 1 for i in range(64)}, None),
    ],
)
def test_malformed_and_huge_requests_are_refused(
    fields: dict[str, Any], named: str | None, client: TestClient
) -> None:
    response = client.post("/infill", json={**AROUND, **fields})
    assert response.status_code == 422
    assert error_of(response)["field"] == named


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"a"', b"\xff", b"[" * 100_000])
def test_bodies_that_are_not_objects_are_refused(body: bytes, client: TestClient) -> None:
    response = client.post("/infill", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code in {400, 422}
    assert error_of(response)["message"]


def test_other_sites_other_hosts_and_strangers_are_refused(client: TestClient) -> None:
    plain = client.post(
        "/infill", content=json.dumps(AROUND), headers={"Content-Type": "text/plain"}
    )
    assert plain.status_code == 415
    assert client.post("/infill", json=AROUND, headers={"Host": "evil.example"}).status_code == 403
    config = AppConfig(security=SecurityConfig(token="secret"))
    with asking({"g": lambda: ServedModel("g", greetings())}, config, token="secret") as own:
        without = {"Authorization": "Bearer wrong"}
        assert own.post("/infill", json=AROUND, headers=without).status_code == 401
        assert own.get("/props", headers=without).status_code == 401
        assert own.get("/health", headers=without).status_code == 200
        assert own.post("/infill", json=AROUND).status_code == 422  # greetings are no functions


def test_random_requests_are_answered_or_refused(client: TestClient) -> None:
    generator = random.Random(7)
    words = [*CODE.split(" "), "\x00", "\ud800", "def ", "\n", "'''", "(" * 50, "\t", "é", "😀"]

    def text() -> str:
        return "".join(generator.choices(words, k=generator.randint(0, 40)))

    for _ in range(150):
        extra = [{"text": text(), "filename": text()} for _ in range(generator.randint(0, 3))]
        body: dict[str, Any] = {
            "input_prefix": text(),
            "input_suffix": text(),
            "input_extra": extra,
        }
        body |= {"n_predict": generator.randint(-1, 9), "n_indent": generator.randint(0, 9)}
        content = json.dumps(body)  # keeps lone surrogates as escapes
        response = client.post(
            "/infill", content=content, headers={"Content-Type": "application/json"}
        )
        assert response.status_code in {200, 422}, response.text
