"""Real processes that are connected as workers and run the functions that a test gives them."""

import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from redraft.training.workers import Workers, connected

WAIT = 120.0
Task = Callable[..., Any]


def environment(store: TCPStore, *, rank: int, size: int) -> dict[str, str]:
    """What `torchrun` would set for a worker, with a store that a test holds."""
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(rank),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(store.port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }


def meeting_place() -> TCPStore:
    """A store at any free port."""
    return TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)


class Team:
    """Some workers; all are asked at once, each answers for itself."""

    def __init__(self, pipes: list["Connection[Any, Any]"]) -> None:
        self.pipes = pipes

    def run(self, task: Task, *arguments: object) -> list[Any]:
        """What `task(workers, *arguments)` gives at each, or the text of its error."""
        for pipe in self.pipes:
            pipe.send((task, arguments))
        return [pipe.recv() if pipe.poll(WAIT) else "no answer" for pipe in self.pipes]


@contextmanager
def team(size: int) -> Iterator[Team]:
    """So many workers while it lasts."""
    context = multiprocessing.get_context("spawn")
    store = meeting_place()
    pipes, processes = [], []
    for rank in range(size):
        own, other = context.Pipe()
        variables = environment(store, rank=rank, size=size)
        process = context.Process(target=_work, args=(other, variables), daemon=True)
        process.start()
        other.close()
        pipes.append(own)
        processes.append(process)
    try:
        yield Team(pipes)
    finally:
        for pipe in pipes:
            pipe.close()
        for process in processes:
            process.join(WAIT)


def _work(pipe: "Connection[Any, Any]", variables: dict[str, str]) -> None:
    torch.set_num_threads(1)
    os.environ.update(variables)
    try:
        with connected(os.environ, "cpu", meeting=timedelta(seconds=WAIT)) as workers:
            _answer(pipe, workers)
    except Exception:
        os._exit(1)  # the test has what it asked for, and the others may be gone


def _answer(pipe: "Connection[Any, Any]", workers: Workers) -> None:
    while True:
        try:
            task, arguments = pipe.recv()
        except EOFError:
            return
        try:
            answer = task(workers, *arguments)
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"
        pipe.send(answer)
