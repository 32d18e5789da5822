"""Run a bulk job on a Ray cluster, through a driver in a separate process.

Ray terminates its driver process when the cluster goes away, with verbose logs. So the driver
(`ray_driver`) is a subprocess; this module reads its outcomes and reports its end in one line.
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
from dataclasses import astuple, dataclass
from typing import IO, Any

from redraft.bulk.job import Job, Outcome
from redraft.errors import BulkError, ConfigError, MissingExtraError

ANY = "auto"
LOCAL = "local"
ADDRESS = re.compile(rf"{ANY}|{LOCAL}|[^\s/:]+:\d+")
PATIENCE = 10
"""Timeout in seconds for connecting to a cluster."""

LEAVING = 30
"""Timeout in seconds for the driver to exit; it may still be starting its cluster."""

_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "20",
    "RAY_worker_niceness": "0",  # a local Ray gets the same priority as this process
}


@dataclass(frozen=True)
class RayCluster:
    """An executor: each shard is a Ray Data task, retried elsewhere if its machine dies."""

    address: str

    @classmethod
    def at(cls, address: str, environment: Mapping[str, str]) -> "RayCluster":
        """Return the cluster at `address`; `ANY` uses RAY_ADDRESS from `environment` if set."""
        return cls(environment.get("RAY_ADDRESS") or ANY if address == ANY else address)

    def check(self) -> None:
        """Raise an error if Ray is not installed, or the address is invalid or unreachable."""
        if importlib.util.find_spec("ray") is None:
            raise MissingExtraError("ray", extra="ray", purpose="--ray")
        if not ADDRESS.fullmatch(self.address):
            raise ConfigError(
                f"--ray {self.address}: expected an address, HOST:PORT; from a machine outside the "
                "cluster, run the command with `ray job submit`"
            )
        host, colon, port = self.address.rpartition(":")
        if colon:
            try:
                socket.create_connection((host, int(port)), timeout=PATIENCE).close()
            except (OSError, OverflowError, UnicodeError) as error:
                raise BulkError(_no_cluster(self.address)) from error

    def __call__(self, job: Job) -> Iterator[Outcome]:
        """Yield the shards as they are written."""
        self.check()
        with tempfile.TemporaryFile() as log:
            driver = subprocess.Popen(
                # -P: do not import modules from the user's working directory
                [sys.executable, "-P", "-m", "redraft.bulk.ray_driver"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **_SETTINGS},
                start_new_session=True,  # Ctrl-C reaches only this process, which stops the driver
            )
            try:
                yield from self._outcomes(driver, job, log)
            finally:
                _end(driver)

    def _outcomes(
        self, driver: "subprocess.Popen[bytes]", job: Job, log: IO[bytes]
    ) -> Iterator[Outcome]:
        assert driver.stdin is not None
        assert driver.stdout is not None
        request = {
            "address": self.address,
            "work": job.work,
            "ending": job.ending,
            "folder": job.folder,
            "shards": [astuple(shard) for shard in job.remaining],
        }
        is_connected = False
        with suppress(BrokenPipeError):
            driver.stdin.write(json.dumps(request).encode() + b"\n")
            driver.stdin.flush()
        for line in driver.stdout:
            message: dict[str, Any] = json.loads(line)
            if "error" in message:
                raise BulkError(message["error"])
            if "done" in message:
                return
            is_connected = True
            if "number" in message:
                yield Outcome(message["number"], message["rows"], tuple(message["skipped"]))
        if not is_connected:
            raise BulkError(f"{_no_cluster(self.address)} ({_last_line(log)})")
        raise BulkError(
            f"{self.address}: lost the Ray cluster; written shards are kept, run the same command "
            "to resume"
        )


def _no_cluster(address: str) -> str:
    return f"{address}: no Ray cluster answers there; check the address of --ray"


def _last_line(log: IO[bytes]) -> str:
    """Return the last line of the driver's log."""
    log.seek(0)
    lines = [line for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no output"


def _end(driver: "subprocess.Popen[bytes]") -> None:
    """Close the driver's stdin, upon which it leaves the cluster, and wait for its exit."""
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
