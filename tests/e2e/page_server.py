"""`redraft serve` in a real process that a test can stop and start again at the same address."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import httpx

SECONDS = 60.0


class PageServer:
    """A server of the models in these folders; with a token it asks for it."""

    def __init__(self, *folders: Path, token: str = "") -> None:
        self._folders = folders
        self._environment = {**os.environ, "PYTHONUNBUFFERED": "1", "REDRAFT_TOKEN": token}
        self._process: subprocess.Popen[str] | None = None
        self._port = "0"
        self.url = ""

    def start(self) -> "PageServer":
        """Serve; again at the same port, if it did before. Returns when every model is loaded."""
        code = "from redraft.cli.app import main; main()"
        arguments = ["serve", *map(str, self._folders), "--port", self._port]
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self._environment,
            text=True,
        )
        assert self._process.stdout is not None
        found = re.search(r"http://[\d.]+:(\d+)", self._process.stdout.readline())
        assert found is not None, f"the server ended with {self._process.poll()}"
        self.url, self._port = found[0], found[1]
        deadline = time.monotonic() + SECONDS
        while httpx.get(f"{self.url}/readyz").status_code != 200:
            assert time.monotonic() < deadline, "the models were not loaded in time"
            time.sleep(0.02)
        return self

    def stop(self) -> None:
        """Stop, and wait until nobody answers."""
        if self._process is None:
            return
        self._process.terminate()
        self._process.communicate(timeout=SECONDS)
        self._process = None
