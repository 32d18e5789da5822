"""Real processes, connected as workers, that run the functions of a test."""

import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from redraft.training.process_group import ProcessGroup, connected

WAIT = 120.0
Task = Callable[..., Any]


def environment(store: TCPStore, *, rank: int, size: int) -> dict[str, str]:
    """Return the variables that `torchrun` would set, with the store of a test."""
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(rank),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(store.port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }


def rendezvous_store() -> TCPStore:
    """Return a store on a free port."""
    return TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)


class Team:
    """Several workers that run the same task at once."""

    def __init__(self, pipes: list["Connection[Any, Any]"]) -> None:
        self.pipes = pipes

    def run(self, task: Task, *arguments: object) -> list[Any]:
        """Return the result of `task(workers, *arguments)` in each worker, or its error message."""
        for pipe in self.pipes:
            pipe.send((task, arguments))
        return [pipe.recv() if pipe.poll(WAIT) else "no answer" for pipe in self.pipes]


@contextmanager
def team(size: int) -> Iterator[Team]:
    """Run `size` workers within the context."""
    context = multiprocessing.get_context("spawn")
    store = rendezvous_store()
    pipes, processes = [], []
    for rank in range(size):
        pipe, other = context.Pipe()
        variables = environment(store, rank=rank, size=size)
        process = context.Process(target=_work, args=(other, variables), daemon=True)
        process.start()
        other.close()
        pipes.append(pipe)
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
        with connected(os.environ, "cpu", timeout=timedelta(seconds=WAIT)) as workers:
            _answer(pipe, workers)
    except Exception:
        os._exit(1)  # the test already has its result, and the others may be gone


def _answer(pipe: "Connection[Any, Any]", workers: ProcessGroup) -> None:
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
