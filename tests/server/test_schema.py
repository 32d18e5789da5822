"""The schemas: refused values, and no import of a model."""

import subprocess
import sys

import pytest
from pydantic import ValidationError

from redraft.server import schema


def test_it_imports_no_model_and_no_server() -> None:
    heavy = ["torch", "numpy", "fastapi", "uvicorn", "faiss"]
    code = f"import redraft.server.responses, sys; assert not set({heavy}) & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("request_type", "message", "said"),
    [
        (schema.PredictRequest, {}, "inputs"),
        (schema.PredictRequest, {"inputs": []}, "at least 1 item"),
        (schema.PredictRequest, {"inputs": [""] * 65}, "at most 64 items"),
        (schema.PredictRequest, {"inputs": ["a"], "k": 21}, "less than or equal to 20"),
        (schema.PredictRequest, {"inputs": ["a"], "beam": 3}, "Extra inputs are not permitted"),
        (schema.PredictRequest, {"inputs": ["a" * 20_001]}, "at most 20000 characters"),
        (schema.CompleteRequest, {"x": "a", "text": "b"}, "either x, with prefix, or text"),
        (schema.CompleteRequest, {}, "either x, with prefix, or text"),
        (schema.CompleteRequest, {"text": "abc", "offset": 4}, "offset must be from 0 to 3"),
        (schema.AddRequest, {"examples": [{"x": "a"}]}, "examples.0.y"),
        (schema.RemoveQuery, {"where": ["a=1", "a=2"]}, "two different values for one key"),
    ],
)
def test_invalid_values_are_named(
    request_type: type[schema.Message], message: dict[str, object], said: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        request_type.model_validate(message)
    assert said in str(caught.value)


IN_MEMORY_LIMIT: dict[str, object] = {f"name_{at}": [] for at in range(1000)}


@pytest.mark.parametrize(
    ("request_type", "message", "place"),
    [
        (schema.PredictRequest, {"inputs": ["a"], **IN_MEMORY_LIMIT}, ()),
        (schema.PredictRequest, {"inputs": ["a"], "where": IN_MEMORY_LIMIT}, ("where",)),
        (schema.PredictRequest, {"inputs": [IN_MEMORY_LIMIT] * 64}, ("inputs", 0)),
        (schema.RetrieveRequest, {"inputs": [IN_MEMORY_LIMIT] * 64}, ("inputs", 0)),
        (schema.AddRequest, {"examples": [IN_MEMORY_LIMIT] * 1000}, ("examples", 0)),
        (
            schema.AddRequest,
            {"examples": [{"x": "a", "y": "b", "meta": IN_MEMORY_LIMIT}] * 1000},
            ("examples", 0, "meta"),
        ),
        (schema.RemoveQuery, IN_MEMORY_LIMIT, ()),
    ],
)
def test_very_many_mistakes_are_a_few_errors_since_each_takes_time(
    request_type: type[schema.Message], message: dict[str, object], place: tuple[str | int, ...]
) -> None:
    with pytest.raises(ValidationError) as caught:
        request_type.model_validate(message)
    errors = caught.value.errors()
    assert len(errors) <= 2
    assert errors[-1]["loc"][: len(place)] == place
    assert errors[-1]["msg"] == "Value error, should have at most 64 keys"


def test_a_key_may_be_asked_for_twice_with_one_value() -> None:
    assert schema.RemoveQuery(where=["a=1", "a=1", "b=2"]).filters == {"a": "1", "b": "2"}
