"""How long a user waits before anything happens."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator

from benchmarks.measurement import Measurement, best_seconds


def start(code: str) -> Callable[[], object]:
    """A task that runs the code in a fresh interpreter."""
    return lambda: subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def initialize() -> None:
    """Start `redraft lsp` and wait for its first response, as an editor does."""
    question: dict[str, object] = {"processId": None, "rootUri": None, "capabilities": {}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": question}
    body = json.dumps(message).encode()
    command = [sys.executable, "-m", "redraft", "lsp"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        process.stdin.flush()
        assert process.stdout.readline().startswith(b"Content-")
        process.kill()


def run() -> Iterator[Measurement]:
    """Import, help and language server, beside an interpreter that does nothing."""
    help_code = (
        "import sys; sys.argv = ['redraft', '--help']; import redraft.cli.app as a; a.main()"
    )
    tasks = {
        "bare": start("pass"),
        "import": start("import redraft"),
        "help": start(help_code),
        "lsp": initialize,
    }
    seconds = best_seconds(tasks, rounds=7)
    labels = {
        "import": "import redraft",
        "help": "redraft --help",
        "lsp": "redraft lsp, to its first response",
    }
    for name, label in labels.items():
        ratio = seconds[name] / seconds["bare"]
        yield Measurement(label, 1000 * seconds[name], "ms", ratio, "bare interpreter")
