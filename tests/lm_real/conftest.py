"""SmolLM2-135M behind `redraft lm start`, for all tests of a run."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from redraft.lm.address import LmAddress
from redraft.lm.client import LmClient


@contextmanager
def smollm2() -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Start the server as a user does; yields its address and its process."""
    command = [sys.executable, "-m", "redraft", "lm", "start", "smollm2", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("serving smollm2 at http://127.0.0.1:"), line
            yield line.split()[3], process
        finally:
            process.kill()


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """The address of the server."""
    with smollm2() as (url, _):
        yield url


@pytest.fixture
def client(address: str) -> Iterator[LmClient]:
    """A client of the server."""
    with LmClient(LmAddress.parse(address)) as connected:
        yield connected
