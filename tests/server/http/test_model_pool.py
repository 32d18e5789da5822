"""The model pool: models do not block each other, and waiting predictions are batched."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from starlette.testclient import TestClient

from redraft import Example
from redraft.errors import ModelError
from redraft.server.http.app import AppConfig, create_app
from redraft.server.http.model_pool import ModelPool, ModelPoolConfig
from redraft.server.served_model import ServedModel
from tests.server.http.servers import URL, Gated, asking, error_of, greetings, wait_until


def test_a_model_that_is_busy_or_loading_holds_up_no_other() -> None:
    gated = Gated("busy", greetings())
    slow = Gated("slow", greetings())

    def load_slowly() -> ServedModel:
        assert slow.gate.wait(30)
        return slow

    def fail() -> ServedModel:
        raise ModelError("damaged: fit it again")

    loaders = {
        "busy": lambda: gated,
        "slow": load_slowly,
        "damaged": fail,
        "free": lambda: ServedModel("free", greetings()),
    }
    asked = {"inputs": ["greet Ada"]}
    with (
        TestClient(create_app(loaders), base_url=URL) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        wait_until(lambda: len(client.get("/v1/models").json().get("models", [])) == 2)
        waiting = pool.submit(client.post, "/v1/predict", json={**asked, "model": "busy"})
        wait_until(lambda: bool(gated.begun))
        assert client.get("/healthz").json()["status"] == "ok"
        free = client.post("/v1/predict", json={**asked, "model": "free"})
        assert free.status_code == 200
        for name, reason in (("slow", "is still loading"), ("damaged", "could not be loaded")):
            refused = client.post("/v1/predict", json={**asked, "model": name})
            assert refused.status_code == 503
            assert refused.headers["Retry-After"] == "1"
            assert reason in str(error_of(refused)["message"])
        assert client.get("/readyz").status_code == 503
        slow.gate.set()
        gated.gate.set()
        assert waiting.result().status_code == 200
        asked_slow = {**asked, "model": "slow"}
        wait_until(lambda: client.post("/v1/predict", json=asked_slow).status_code == 200)
        ready = client.get("/readyz")  # one that never will be is not waited for
        assert (ready.status_code, ready.json()["models"]) == (200, ["busy", "slow", "free"])


def ask_at_once(client: TestClient, gated: Gated, count: int, **more: object) -> list[Any]:
    """So many predictions while a first one is held, and a completion after all of them."""
    asked = {"inputs": ["greet Ada"], **more}
    with ThreadPoolExecutor(count + 2) as pool:
        first = pool.submit(client.post, "/v1/predict", json=asked)
        wait_until(lambda: bool(gated.begun))
        later = [pool.submit(client.post, "/v1/predict", json=asked) for _ in range(count)]
        worker = cast(Any, client.app).state.pool.models["gated"]._answers
        wait_until(lambda: worker._count() == count)
        last = pool.submit(client.post, "/v1/complete", json={"x": "greet Ada", "prefix": "p"})
        wait_until(lambda: worker._count() == count + 1)
        gated.gate.set()
        return [each.result() for each in (first, *later, last)]


def test_predictions_that_wait_are_answered_together_and_completions_between_them() -> None:
    gated = Gated("gated", greetings())
    with asking({"gated": lambda: gated}) as client:
        answers = ask_at_once(client, gated, 40)
        assert {each.status_code for each in answers} == {200}
        assert sorted(gated.begun) == ["complete", "predict 1", "predict 32", "predict 8"]
        counts = client.get("/metrics").text
        assert 'redraft_batch_size_bucket{le="32.0",model="gated"} 3.0' in counts


def test_without_batching_each_is_answered_alone_and_completions_are_not_starved() -> None:
    gated = Gated("gated", greetings())
    config = AppConfig(pool=ModelPoolConfig(is_batching=False))
    with asking({"gated": lambda: gated}, config) as client:
        answers = ask_at_once(client, gated, 6)
        assert {each.status_code for each in answers} == {200}
        assert gated.begun.count("predict 1") == 7
        assert gated.begun.index("complete") < 3


def test_a_full_queue_is_503_and_a_timeout_504() -> None:
    gated = Gated("gated", greetings())
    limits = ModelPoolConfig(time_limit=0.5, max_queue=1)
    asked = {"inputs": ["greet Ada"]}
    with (
        asking({"gated": lambda: gated}, AppConfig(pool=limits)) as client,
        ThreadPoolExecutor(8) as pool,
    ):
        answers = [pool.submit(client.post, "/v1/predict", json=asked) for _ in range(8)]
        by_status = {each.result().status_code: each.result() for each in answers}
        gated.gate.set()
    assert set(by_status) == {503, 504}
    assert by_status[503].headers["Retry-After"] == "1"
    assert "requests waiting; retry soon" in str(error_of(by_status[503])["message"])
    assert "no result within 0.5 seconds" in str(error_of(by_status[504])["message"])
    assert len(gated.begun) == 1, "what was given up before it was begun must never be run"


def test_a_late_change_says_whether_it_had_started() -> None:
    gated = Gated("gated", greetings(3))

    def add_late(examples: Sequence[Example]) -> int:
        assert gated.gate.wait(30)
        return ServedModel.add(gated, examples)

    gated.add = add_late  # type: ignore[method-assign]
    asked = {"examples": [{"x": "greet Zuse", "y": "hello()"}]}
    config = AppConfig(pool=ModelPoolConfig(time_limit=0.2))
    with asking({"gated": lambda: gated}, config) as client:
        begun = client.post("/v1/examples", json=asked)
        waiting = client.post("/v1/examples", json=asked)
        gated.gate.set()
        wait_until(lambda: gated.info().examples == 4)
    assert (begun.status_code, waiting.status_code) == (504, 504)
    assert "started and will finish; check before" in str(error_of(begun)["message"])
    assert "send a smaller request, or raise --time-limit" in str(error_of(waiting)["message"])
    assert gated.info().examples == 4


def test_background_tasks_run_with_the_models_and_stop_with_the_server() -> None:
    seen: list[str] = []

    async def watch(pool: ModelPool) -> None:
        await pool.loaded()
        model = pool.find("greetings")
        count = await model.run_in_background(lambda served: served.info().examples)
        seen.append(f"{count} examples")
        try:
            await asyncio.sleep(60)
        finally:
            seen.append("stopped")

    async def fail(pool: ModelPool) -> None:
        raise ZeroDivisionError(len(pool.models))

    loaders = {"greetings": lambda: ServedModel("greetings", greetings())}
    app = create_app(loaders, background=[watch, fail])
    with TestClient(app, base_url=URL) as client:
        wait_until(lambda: bool(seen))
        assert client.get("/readyz").status_code == 200
    assert seen == ["10 examples", "stopped"]
