"""What is said of a training run: the time it takes, once, and before anything else."""

import pytest

from redraft.training.progress import TIMED_STEPS, Report, announced, duration


def report(step: int, *, steps: int = 100) -> Report:
    return Report(step, steps, {"loss": 1.0}, 1000.0, 0.1, seconds=2.0 * step, core_seconds=1.0)


def test_the_expected_time_is_logged_once_after_a_few_steps() -> None:
    told: list[str] = []
    heard: list[Report] = []
    listen = announced("training on 9 pairs", log=told.append, on_step=heard.append)
    for step in range(1, TIMED_STEPS):
        listen(report(step))
    assert told == []
    for step in range(TIMED_STEPS, 20):
        listen(report(step))
    assert told == ["training on 9 pairs, about 3 minutes"]
    assert [one.step for one in heard] == [*range(1, 20)]


def test_a_run_of_few_steps_is_announced_at_its_end() -> None:
    told: list[str] = []
    listen = announced("training", log=told.append, on_step=None)
    listen(report(1, steps=2))
    listen(report(2, steps=2))
    assert told == ["training, about 4 seconds"]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.2, "1 second"),
        (89, "89 seconds"),
        (240, "4 minutes"),
        (5000, "83 minutes"),
        (7200, "2 hours"),
    ],
)
def test_a_duration_is_said_in_its_unit(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected
