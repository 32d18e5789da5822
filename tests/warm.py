"""Commands in processes that are forked from a warm one, which has imported torch already.

Importing torch takes most of the time of a small command. A forked process has its own streams,
folder, environment and exit code, and imports redraft itself, as a fresh one does.
"""

import atexit
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent
MAIN = "from redraft.cli.app import main; main()"
# `serve_forks` returns in each forked process
WARM_MAIN = f"""
import socket, sys
sys.path.insert(0, {str(ROOT)!r})
from tests.warm import leave, serve_forks
sys.path.pop(0)
import faiss, scipy.sparse, torch
serve_forks(socket.socket(fileno=int(sys.argv[1])))
try:
    {MAIN}
finally:
    leave()
"""
# read when an interpreter starts or a library is loaded: a fork would not notice a change
STARTUP = ("PYTHON", "LC_", "LANG", "LD_", "OMP_", "MKL_")


class WarmProcess:
    """A process that forks itself for each command."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._startup = startup_variables(os.environ)

    def run(
        self, arguments: Sequence[str], *, cwd: Path, stdin: str | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run `redraft` with `arguments` in the folder `cwd`; returns its output and exit code."""
        command = [sys.executable, "-c", MAIN, *arguments]
        if startup_variables(os.environ) != self._startup:
            return subprocess.run(
                command, capture_output=True, input=stdin, text=True, cwd=cwd, check=False
            )
        with ExitStack() as stack:
            request = stack.enter_context(tempfile.TemporaryFile("w+"))
            json.dump([["-c", *arguments], str(cwd), dict(os.environ)], request)
            request.seek(0)
            given = stack.enter_context(tempfile.TemporaryFile("w+"))
            given.write(stdin or "")
            given.seek(0)
            readers = [Reader(), Reader()]
            descriptors = [request.fileno(), given.fileno(), *(each.write for each in readers)]
            socket.send_fds(self._connection, [b"run"], descriptors)
            for reader in readers:
                os.close(reader.write)
            out, err = (reader.finish() for reader in readers)
        code: int = json.loads(self._connection.recv(100))
        return subprocess.CompletedProcess(command, code, out, err)


class Reader:
    """A pipe that is read to its end by a thread, so that its writer never waits."""

    def __init__(self) -> None:
        read, self.write = os.pipe()
        self._stream = os.fdopen(read, encoding="utf-8")
        self._text = ""
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        self._text = self._stream.read()

    def finish(self) -> str:
        """Return all that was written, once no process holds the other end."""
        self._thread.join()
        self._stream.close()
        return self._text


def startup_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of `environment` that only a fresh interpreter reads."""
    return {name: value for name, value in environment.items() if name.startswith(STARTUP)}


@contextmanager
def warm_process() -> Iterator[WarmProcess]:
    """Start a warm process; it ends with the context."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [sys.executable, "-c", WARM_MAIN, str(theirs.fileno())]
        with subprocess.Popen(command, pass_fds=[theirs.fileno()]) as process:
            theirs.close()
            yield WarmProcess(ours)
            ours.close()
            assert process.wait(60) == 0


def serve_forks(connection: socket.socket) -> None:
    """Fork for each request of `connection`; returns in the forked processes only."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(connection, 100, 4)
        if not message:
            sys.exit()
        pid = os.fork()
        if pid == 0:
            connection.close()
            become(descriptors)
            return
        for descriptor in descriptors:
            os.close(descriptor)
        _, status = os.waitpid(pid, 0)
        connection.sendall(json.dumps(os.waitstatus_to_exitcode(status)).encode())


def become(descriptors: Sequence[int]) -> None:
    """Take the arguments, folder, environment and streams of a request."""
    request, *streams = descriptors
    with os.fdopen(request) as stream:
        sys.argv, folder, environment = json.load(stream)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    # made anew: a stream remembers whether its file can seek
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, errors="backslashreplace")  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)


def leave() -> None:
    """End this process as Python ends after the exception that is being handled, if any.

    Python would also tear down every module that the warm process has imported, which takes as
    long as many a command.
    """
    error = sys.exc_info()[1]
    if error is None or isinstance(error, SystemExit):
        code = getattr(error, "code", 0)
    else:
        sys.excepthook(type(error), error, error.__traceback__)
        code = 1
    if not isinstance(code, int | None):
        print(code, file=sys.stderr)
        code = 1
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)
