"""The `redraft` command and `python -m redraft`.

Handles Ctrl-C before it imports the commands, so that an interrupted import prints no traceback.
"""

import os
import signal
from types import FrameType


def main() -> None:
    """Run the command line and exit: 0 success, 1 findings, 2 error, 130 interrupted."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # otherwise ignored, as in a background job
        signal.signal(signal.SIGINT, _leave)
    from redraft.cli.app import main as run

    try:
        signal.signal(signal.SIGINT, handler)
        run()
    except KeyboardInterrupt:
        _leave()


def _leave(number: int = signal.SIGINT, frame: FrameType | None = None) -> None:  # noqa: ARG001
    """Exit immediately: no work has started, and an interrupted import cannot be resumed."""
    try:
        os.write(2, b"interrupted\n")
    finally:
        os._exit(130)


if __name__ == "__main__":
    main()
