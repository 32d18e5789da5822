"""The client: the library's questions, and the server's errors as ours."""

import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest
from starlette.testclient import TestClient

from redraft import Client, Example, RedraftError
from redraft.errors import NoAnswerError, PairsError
from redraft.server.client import RefusedError, UnreachableError
from redraft.server.http.app import AppConfig
from redraft.server.http.middleware import SecurityConfig
from redraft.server.served_model import ServedModel
from tests.server.http.servers import URL, asking, functions, greetings
from tests.shop import MAPPED, UNKNOWN, shopkeeper

TOKEN = "a-token-of-some-length"


class Through(httpx.BaseTransport):
    """Hands requests to an app in this process."""

    def __init__(self, inner: TestClient) -> None:
        self._inner = inner

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._inner.request(
            request.method,
            str(request.url),
            content=request.read(),
            headers=dict(request.headers),
        )
        return httpx.Response(answer.status_code, content=answer.content)


@pytest.fixture
def through() -> Iterator[Through]:
    config = AppConfig(security=SecurityConfig(token=TOKEN))
    loaders = {
        "greetings": lambda: ServedModel("greetings", greetings()),
        "code": lambda: ServedModel("code", functions()),
    }
    with asking(loaders, config) as client:
        yield Through(client)


@pytest.fixture
def client(through: Through) -> Iterator[Client]:
    with Client(URL, token=TOKEN, transport=through) as client:
        yield client


def test_it_asks_what_the_library_is_asked(client: Client) -> None:
    assert [model.name for model in client.models()] == ["greetings", "code"]
    answer = client.predict_one("greet Ada")
    assert answer.output == 'print("hello Ada")'
    assert answer.prototype is not None
    assert answer.prototype.meta == {"initial": "A"}
    assert [len(each) for each in client.predict([{"text": "greet Ada"}, "b"], k=2)] == [2, 2]
    assert client.retrieve(["greet Ada"], k=3)[0][0].distance == 0
    assert client.complete("greet Ada", "print(")[0].text == '"hello Ada")'


def test_answers_below_a_threshold_are_left_out() -> None:
    with (
        asking({"shop": lambda: ServedModel("shop", shopkeeper())}) as inner,
        Client(URL, transport=Through(inner)) as client,
    ):
        [sure], unsure = client.predict([MAPPED, UNKNOWN], min_confidence=0.5)
        assert sure.output.endswith("country = 'PL'")
        assert unsure == []
        assert client.predict([MAPPED, UNKNOWN], precision=0.9) == [[sure], []]
        assert client.predict_one(MAPPED, precision=0.9) == sure
        with pytest.raises(NoAnswerError, match="the model abstains"):
            client.predict_one(UNKNOWN, min_confidence=0.5)
        assert client.predict_one(UNKNOWN).unfamiliar


def test_a_threshold_needs_a_model_with_confidence(client: Client) -> None:
    with pytest.raises(RefusedError, match="the verbatim editor has no confidence") as caught:
        client.predict(["greet Ada"], precision=0.9)
    assert (caught.value.status, caught.value.field) == (422, "precision")


def test_more_inputs_than_a_request_may_have_are_asked_in_several(client: Client) -> None:
    inputs = [f"greet {name}" for name in ("Ada", "Curie")] * 50
    answers = client.predict(inputs)
    assert len(answers) == 100
    assert answers[98][0].output == 'print("hello Ada")'
    assert len(client.retrieve(inputs, k=1)) == 100
    assert client.predict([]) == []


def test_another_model_is_asked_by_name(through: Through) -> None:
    text = "def area(side):\n    "
    with Client(URL, token=TOKEN, model="code", transport=through) as client:
        assert client.complete_buffer(text, len(text))[0].text == "return side * side"


def test_examples_are_added_and_removed(client: Client) -> None:
    new = [Example({"text": f"greet number {at}"}, f"hello({at})", {"at": at}) for at in range(3)]
    assert client.add(new) == 3
    assert client.predict_one("greet number 1").output == "hello(1)"
    assert client.predict_one("greet number 1", where={"at": 2}).output == "hello(2)"
    assert client.remove([new[0].identity]) == 1
    assert client.remove(where={"at": 1}) == 1
    assert client.models()[0].examples == 11


def test_more_ids_than_a_request_may_have_are_removed_in_several(client: Client) -> None:
    new = [
        Example({"text": f"greet number {at}"}, f"hello({at})", {"at": at}) for at in range(1100)
    ]
    assert client.add(new) == 1100
    assert client.remove([each.identity for each in (*new, *new)], where={"at": 1050}) == 1100
    assert client.models()[0].examples == 10


def test_the_servers_errors_are_ours_with_its_message(client: Client, through: Through) -> None:
    with pytest.raises(RefusedError, match="k: should be less than or equal to 20") as caught:
        client.predict(["a"], k=99)
    assert (caught.value.status, caught.value.field) == (422, "k")
    with pytest.raises(RedraftError, match=r"inputs\.0: expected an input with the fields text"):
        client.predict([{"title": "a"}])
    with pytest.raises(RefusedError, match="no example has this id"):
        client.remove(["unknown"])
    with pytest.raises(RefusedError, match="say which examples"):
        client.remove()
    with pytest.raises(NoAnswerError, match="no example to answer from; widen the filter"):
        client.predict_one("a", where={"initial": "none"})
    with Client(URL, transport=through) as stranger:
        with pytest.raises(RefusedError, match="a token is needed") as caught:
            stranger.models()
        assert caught.value.status == 401
    with (
        Client(URL, token=TOKEN, model="other", transport=through) as other,
        pytest.raises(RefusedError, match="no model has this name"),
    ):
        other.remove(["a"])


def test_values_that_json_cannot_represent_are_an_error(client: Client) -> None:
    with pytest.raises(PairsError, match=r"predict: cannot be sent as JSON \(UnicodeEncodeError\)"):
        client.predict(["\ud800"])
    with pytest.raises(PairsError, match="use valid Unicode and finite numbers"):
        client.retrieve(["a"], where={"a": float("nan")})


def test_a_missing_or_foreign_server_is_an_error() -> None:
    with (
        Client("http://127.0.0.1:9") as client,
        pytest.raises(UnreachableError, match="start the server with `redraft serve`"),
    ):
        client.models()
    for status in (200, 500):
        other = httpx.MockTransport(lambda _, status=status: httpx.Response(status, text="hello"))
        with (
            Client(transport=other) as client,
            pytest.raises(RefusedError, match="not a response of"),
        ):
            client.models()


def test_it_imports_no_model_and_names_the_extra_that_it_needs() -> None:
    light = "import sys, redraft; redraft.Client; assert not {'torch', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", light], check=True)
    missing = (
        "import sys; sys.modules['httpx'] = None; import redraft; from redraft import *\n"
        "try: redraft.Client\n"
        "except redraft.RedraftError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", missing], check=True, capture_output=True)
    assert done.stdout.decode() == (
        "redraft.Client needs httpx, which is not installed; "
        "install it with: pip install 'redraft[serve]'\n"
    )
