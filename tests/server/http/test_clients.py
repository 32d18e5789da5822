"""Requests of editor plug-ins, recorded or as their sources write them, replayed on a real server.

Each file in `clients/` names the plug-in, its version and the place in its source.
"""

import json
import re
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.server.functions import model_of
from tests.server.http.servers import running

CLIENTS = {path.stem: path for path in sorted((Path(__file__).parent / "clients").glob("*.json"))}
INFILL = [name for name in CLIENTS if name.startswith("llama")]
COMPLETIONS = [name for name in CLIENTS if not name.startswith("llama")]
CODE = """
def sum_with_tax(item, rate):
    net = item.price * item.count
    return net + net * rate
"""


@dataclass(frozen=True)
class Answer:
    """The body of an answer and its type."""

    text: str
    kind: str

    def json(self) -> Any:
        """Return the body as JSON."""
        return json.loads(self.text)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("project")
    (folder / "sums.py").write_text(CODE)
    model_of(folder).save(folder / "code")
    with running(folder / "code") as server:
        yield server.url


def replay(name: str, url: str) -> Answer:
    """Send a request with its own headers, also `Bearer ` without a key, which httpx refuses."""
    recorded = json.loads(CLIENTS[name].read_text())
    assert set(recorded) == {"client", "version", "source", "path", "headers", "body"}
    body = json.dumps(recorded["body"]).encode()
    request = urllib.request.Request(url + recorded["path"], body, recorded["headers"])
    with urllib.request.urlopen(request) as response:
        return Answer(response.read().decode(), response.headers["content-type"])


def events(response: Answer) -> list[dict[str, Any]]:
    assert response.kind.startswith("text/event-stream")
    *parts, done, end = response.text.split("\n\n")
    assert (done, end) == ("data: [DONE]", "")
    return [json.loads(part.removeprefix("data: ")) for part in parts]


def text_of(response: Answer) -> str:
    if response.text.startswith("data: "):
        return "".join(part["choices"][0]["text"] for part in events(response))
    text: str = response.json()["choices"][0]["text"]
    return text


@pytest.mark.parametrize("name", COMPLETIONS)
def test_prompts_of_all_formats_are_completed_at_the_cursor(name: str, url: str) -> None:
    assert text_of(replay(name, url)).startswith("price * item.count")


def test_zed_finds_every_field_that_its_types_require(url: str) -> None:
    answer = replay("zed_qwen", url).json()
    assert {"id", "object", "created", "model", "choices", "usage"} <= set(answer)
    tokens = answer["usage"]["completion_tokens"]
    assert tokens == answer["usage"]["total_tokens"] > 3
    assert answer["choices"][0]["redraft"]["prototype"]["x"]["name"] == "sum_with_tax"


def test_llama_vim_gets_the_fields_that_it_asks_for_in_compact_json(url: str) -> None:
    response = replay("llama_vim", url)
    assert '"content":"price * item.count' in response.text  # the plug-in looks for `"content":"`
    answer = response.json()
    asked = json.loads(CLIENTS["llama_vim"].read_text())["body"]["response_fields"]
    assert list(answer) == asked
    assert answer["truncated"] is False
    assert answer["timings/prompt_n"] > 10
    assert answer["timings/predicted_n"] >= 5
    assert answer["timings/predicted_ms"] > 0
    assert answer["tokens_cached"] == answer["timings/prompt_n"] + answer["timings/predicted_n"]


def test_several_completions_are_a_list_and_excerpts_count_as_context(url: str) -> None:
    answers = replay("llama_vim_extra", url).json()
    assert 1 <= len(answers) <= 3
    # the line of the cursor is empty: the indentation is a part of the completion
    assert answers[0]["content"].startswith("    net = item")


def test_a_recorded_request_is_completed_from_its_excerpts(url: str) -> None:
    answer = replay("llama_vim_recorded", url).json()
    assert answer["content"] == " open(path,"  # of the excerpt of shop/orders.py


@pytest.mark.parametrize("name", [name for name in INFILL if name.endswith("warm_up")])
def test_a_warm_up_is_answered_without_content(name: str, url: str) -> None:
    answer = replay(name, url).json()
    assert answer == {} if "vim" in name else answer["content"] == ""


def test_llama_vscode_gets_the_whole_answer_with_nested_timings(url: str) -> None:
    answer = replay("llama_vscode", url).json()
    assert answer["content"].startswith("price * item.count")
    assert (answer["stop"], answer["stop_type"], answer["truncated"]) == (True, "eos", False)
    assert answer["timings"]["predicted_n"] == answer["tokens_predicted"]
    assert answer["redraft"]["prototype"]["x"]["name"] in {"sum_with_tax", "price_with_tax"}


def test_the_probes_of_llama_cpp_are_answered(url: str) -> None:
    assert httpx.get(f"{url}/health").json()["status"] == "ok"
    assert httpx.get(f"{url}/props").json()["model_path"] == "code"
    assert [model["id"] for model in httpx.get(f"{url}/v1/models").json()["data"]] == ["code"]


def test_the_settings_on_the_page_name_one_server_and_one_model() -> None:
    page = (Path(__file__).parents[3] / "docs" / "editors.md").read_text()
    served = re.findall(r"redraft serve (\S+)=mine .*--port (\d+)", page)
    assert len(served) == 1
    [(model, port)] = served
    addresses = re.findall(r"http://127\.0\.0\.1:(\d+)(/[\w/]*)", page)
    assert {path for _, path in addresses} == {"/infill", "/v1/completions", "/v1"}
    assert {other for other, path in addresses if path != "/infill"} == {port}
    zed, cont = (blocks(page, kind)[-1] for kind in ("json", "yaml"))
    provider = json.loads(zed)["edit_predictions"]["open_ai_compatible_api"]
    [listed] = yaml.safe_load(cont)["models"]
    assert provider["model"] == listed["model"] == model
    assert f"model = '{model}'" in page
    assert json.loads(blocks(page, "json")[0]) == {
        "llama-vscode.endpoint": f"http://127.0.0.1:{port}"
    }


def blocks(page: str, kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", page, flags=re.DOTALL)
