"""What is counted, and that no text is."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from redraft.server.served_model import ServedModel
from tests.server.http.servers import asking, greetings


@pytest.fixture
def client() -> Iterator[TestClient]:
    with asking({"greetings": lambda: ServedModel("greetings", greetings())}) as client:
        yield client


def test_requests_are_counted_by_route_and_status(client: TestClient) -> None:
    client.post("/v1/predict", json={"inputs": ["greet Ada", "greet Ohm"]})
    client.post("/v1/predict", json={"inputs": [5]})
    counted = client.get("/metrics")
    assert counted.headers["Content-Type"].startswith("text/plain; version=")
    lines = counted.text.splitlines()
    assert 'redraft_requests_total{route="POST /v1/predict",status="200"} 1.0' in lines
    assert 'redraft_requests_total{route="POST /v1/predict",status="422"} 1.0' in lines
    assert 'redraft_request_seconds_count{route="POST /v1/predict"} 2.0' in lines
    assert 'redraft_batch_size_sum{model="greetings"} 2.0' in lines
    assert 'redraft_examples{model="greetings"} 10.0' in lines
    assert "redraft_requests_in_flight 1.0" in lines


def test_the_count_of_examples_follows_changes(client: TestClient) -> None:
    client.post("/v1/examples", json={"examples": [{"x": "greet Zuse", "y": "hello()"}]})
    assert 'redraft_examples{model="greetings"} 11.0' in client.get("/metrics").text


def test_nothing_that_was_asked_is_in_the_counts(client: TestClient) -> None:
    client.post("/v1/predict", json={"inputs": ["typed-text"], "where": {"typed-key": "v"}})
    client.get("/v1/models/typed-model/map")
    client.get("/v1/models/greetings/examples/typed-id")
    client.delete("/v1/examples", params={"id": "typed-id"})
    client.get("/typed-path")
    client.request("TYPED", "/typed-path")
    counted = client.get("/metrics").text
    assert "typed" not in counted.lower()
    assert 'route="GET /v1/models/{name}/map",status="404"' in counted
    assert 'redraft_requests_total{route="other",status="404"}' in counted
