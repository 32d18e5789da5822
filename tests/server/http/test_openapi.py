"""The OpenAPI document against a real server: it matches the server for generated requests."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode

from tests.server.http.servers import greetings, running

CONFIG = {
    # the fields of an input are the model's own and no part of the document: an input that fits
    # the document may still be refused for them
    "checks": {
        "positive_data_acceptance": {"expected-statuses": ["2xx", "404", "409", "422"]},
    },
}
EXAMPLES = 5


@pytest.fixture(scope="module")
def contract(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder: Path = tmp_path_factory.mktemp("models") / "greet"
    greetings(10).save(folder)
    with running(folder) as server:
        config = schemathesis.Config.from_dict(CONFIG)
        yield schemathesis.openapi.from_url(f"{server.url}/openapi.json", config=config)


BOUNDED = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def operations(contract: Any) -> list[Any]:
    found = [each.ok() for each in contract.get_all_operations()]
    assert len(found) == 15
    return found


def reads_something(operation: Any) -> bool:
    return bool(len(operation.body) + len(operation.query) + len(operation.path_parameters))


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_generated_requests_get_the_documented_responses(
    contract: Any, mode: GenerationMode
) -> None:
    for operation in operations(contract):
        if mode is GenerationMode.POSITIVE or reads_something(operation):

            @BOUNDED
            @given(case=operation.as_strategy(generation_mode=mode))
            def check(case: Any) -> None:
                case.call_and_validate()

            check()


def test_every_limit_and_every_wrong_method_is_answered_as_the_contract_says(
    contract: Any,
) -> None:
    modes = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]
    for operation in operations(contract):
        config = contract.config.generation_for(operation=operation)
        cases = contract.iter_coverage_cases(
            operation, generation_modes=modes, generation_config=config
        )
        for case in cases:
            case.call_and_validate()
