"""A bulk job on a Ray cluster: asked of a driver in a process of its own, told in one line.

Ray ends the process that drives it when its cluster goes away, and says much on the way. So the
driver (`driver`) is another process: here its outcomes are read, and its end is told.
"""

import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from redraft.bulk.job import Outcome, Task
from redraft.errors import BulkError, ConfigError, MissingExtraError

ANY = "auto"
LOCAL = "local"
ADDRESS = re.compile(rf"{ANY}|{LOCAL}|[^\s/:]+:\d+")
PATIENCE = 10
"""Seconds within which a cluster must take a connection."""

LEAVING = 30
"""Seconds within which a driver must leave; one that has just begun first gets its cluster up."""

_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "20",
    "RAY_worker_niceness": "0",  # where Ray is started here: as urgent as what starts it
}


@dataclass(frozen=True)
class RayCluster:
    """An executor: each shard is a task of Ray Data, done again elsewhere if its machine dies."""

    address: str

    @classmethod
    def at(cls, address: str, environment: Mapping[str, str]) -> "RayCluster":
        """The cluster that a user names, or that the environment of a Ray job does."""
        return cls(environment.get("RAY_ADDRESS") or ANY if address == ANY else address)

    def check(self) -> None:
        """Fail at once where nothing could be done: no Ray, no address, or nobody there."""
        if importlib.util.find_spec("ray") is None:
            raise MissingExtraError("ray", extra="ray", purpose="--ray")
        if not ADDRESS.fullmatch(self.address):
            raise ConfigError(
                f"--ray {self.address}: expected an address, HOST:PORT; to work from a machine "
                "outside the cluster, give the command to `ray job submit`"
            )
        host, colon, port = self.address.rpartition(":")
        if colon:
            try:
                socket.create_connection((host, int(port)), timeout=PATIENCE).close()
            except (OSError, OverflowError, UnicodeError) as error:
                raise BulkError(_nobody(self.address)) from error

    def __call__(self, task: Task) -> Iterator[Outcome]:
        """The shards as they are written."""
        self.check()
        with tempfile.TemporaryFile() as log:
            driver = subprocess.Popen(
                # -P: modules of the folder that a user stands in are none of its own
                [sys.executable, "-P", "-m", "redraft.bulk.driver"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **_SETTINGS},
                start_new_session=True,  # a Ctrl-C is for this process, which then ends the driver
            )
            try:
                yield from self._outcomes(driver, task, log)
            finally:
                _end(driver)

    def _outcomes(
        self, driver: "subprocess.Popen[bytes]", task: Task, log: IO[bytes]
    ) -> Iterator[Outcome]:
        assert driver.stdin is not None
        assert driver.stdout is not None
        asked = {
            "address": self.address,
            "work": task.work,
            "ending": task.ending,
            "folder": task.folder,
            "shards": [shard.to_json() for shard in task.shards],
        }
        is_connected = False
        with suppress(BrokenPipeError):
            driver.stdin.write(json.dumps(asked).encode() + b"\n")
            driver.stdin.flush()
        for line in driver.stdout:
            told: dict[str, Any] = json.loads(line)
            if "error" in told:
                raise BulkError(told["error"])
            if "done" in told:
                return
            is_connected = True
            if "number" in told:
                yield Outcome(told["number"], told["rows"], tuple(told["skipped"]))
        if not is_connected:
            raise BulkError(f"{_nobody(self.address)} ({_last_words(log)})")
        raise BulkError(
            f"{self.address}: the Ray cluster went away; shards that are written stay, and the "
            "same command goes on from them"
        )


def _nobody(address: str) -> str:
    return f"{address}: no Ray cluster answers there; check the address of --ray"


def _last_words(log: IO[bytes]) -> str:
    """The last line that a driver said."""
    log.seek(0)
    lines = [line for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it said nothing"


def _end(driver: "subprocess.Popen[bytes]") -> None:
    """Let the driver leave the cluster: it does when its input ends."""
    assert driver.stdin is not None
    with suppress(BrokenPipeError):
        driver.stdin.close()
    try:
        driver.wait(LEAVING)
    except subprocess.TimeoutExpired:
        driver.kill()
        driver.wait()
    assert driver.stdout is not None
    driver.stdout.close()
