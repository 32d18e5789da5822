"""Cancelled computations stop at their next step."""

from collections.abc import Callable
from threading import Thread

import pytest
import torch
from torch import Tensor

from redraft.editing.beam_search import SearchConfig, beam_search
from redraft.editing.cancellation import NoLongerWantedError, cancelled_when, check_cancelled


class Endless:
    """A next-token model that never ends an output, and counts its steps."""

    def __init__(self) -> None:
        self.steps = 0

    def step(self, state: None, tokens: Tensor) -> tuple[Tensor, None]:
        self.steps += 1
        return torch.zeros(len(tokens), 3).log_softmax(1), state

    def reorder(self, state: None, rows: Tensor) -> None:  # noqa: ARG002
        return state


def search(next_tokens: Endless) -> None:
    config = SearchConfig(beam_size=2, max_length=50)
    beam_search(next_tokens, None, config, bos=torch.tensor([0]), eos_ids=[0], suppressed=[0])


def test_a_search_stops_as_soon_as_its_result_is_not_wanted() -> None:
    next_tokens = Endless()
    with pytest.raises(NoLongerWantedError), cancelled_when(lambda: next_tokens.steps >= 5):
        search(next_tokens)
    assert next_tokens.steps == 5


def test_without_a_condition_or_after_its_block_nothing_stops() -> None:
    next_tokens = Endless()
    check_cancelled()
    with cancelled_when(lambda: False):
        search(next_tokens)
    with pytest.raises(NoLongerWantedError), cancelled_when(lambda: True):
        check_cancelled()
    check_cancelled()
    assert next_tokens.steps == 50


def test_a_condition_holds_in_its_own_thread_only() -> None:
    failures: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except NoLongerWantedError as error:
            failures.append(error)

    with cancelled_when(lambda: True):
        thread = Thread(target=run, args=(check_cancelled,))
        thread.start()
        thread.join()
    assert failures == []
