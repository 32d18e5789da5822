"""The connection to an editor: standard input and output, or a TCP port.

The event loop is never closed: that would wait for threads, and the caller ends the process.
"""

import asyncio
import contextlib
import logging
import os
import re
import sys
import threading
from collections.abc import Coroutine
from typing import Any

from pygls.io_ import StdinAsyncReader, StdoutWriter, run_async

from redraft.errors import ConfigError
from redraft.server.lsp.server import EditorLog, RedraftServer

HOST = "127.0.0.1"

_HEADER = re.compile(rb"Content-(Length|Type):", re.IGNORECASE)
_TEXT = b"this port speaks the Language Server Protocol; connect an editor\n"
_REFUSAL = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nX-Content-Type-Options: nosniff\r\n"
    b"Content-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(_TEXT), _TEXT)
)


def serve_stdio(server: RedraftServer) -> int:
    """Serve on standard input and output until the editor disconnects; returns the exit code."""
    # stray prints must not corrupt the protocol's messages
    stdout, sys.stdout = sys.stdout.buffer, sys.stderr
    reader = StdinAsyncReader(sys.stdin.buffer, server.thread_pool)
    return _run(server, _serve(server, reader, StdoutWriter(stdout)))


def serve_tcp(server: RedraftServer, port: int) -> int:
    """Serve the first editor that connects to the local port; returns the exit code."""
    try:
        return _run(server, _wait_for_editor(server, port))
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise ConfigError(f"port {port}: {reason}; choose another with --tcp") from error


def _run(server: RedraftServer, work: Coroutine[Any, Any, None]) -> int:
    logging.getLogger("pygls").setLevel(logging.CRITICAL + 1)  # it would log the user's code
    library = logging.getLogger("redraft")
    library.addHandler(EditorLog(server))
    library.propagate = False
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    # pygls raises SystemExit on the editor's `exit`
    with contextlib.suppress(SystemExit, ConnectionError):
        loop.run_until_complete(work)
    return 0 if server.is_shut_down else 1


async def _serve(server: RedraftServer, reader: Any, writer: Any) -> None:
    server.protocol.set_writer(writer)
    await run_async(
        stop_event=threading.Event(),
        reader=reader,
        protocol=server.protocol,
        error_handler=server.report_server_error,
    )


async def _wait_for_editor(server: RedraftServer, port: int) -> None:
    has_editor, disconnected = False, asyncio.Event()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal has_editor
        try:
            line = await reader.readline()
        except (OSError, ValueError):  # the line is too long
            line = b""
        # a web page can send HTTP requests to this port, but cannot choose their first line
        if has_editor or not _HEADER.match(line):
            writer.write(_REFUSAL)
            writer.close()
            return
        has_editor = True
        try:
            await _serve(server, _FirstLineRead(line, reader), writer)
        finally:
            disconnected.set()

    listening = await asyncio.start_server(connect, HOST, port)
    await disconnected.wait()
    listening.close()


class _FirstLineRead:
    """A stream whose first line has already been read."""

    def __init__(self, line: bytes, reader: asyncio.StreamReader) -> None:
        self._lines = [line]
        self._reader = reader

    async def readline(self) -> bytes:
        """Return the next line."""
        return self._lines.pop() if self._lines else await self._reader.readline()

    async def readexactly(self, n: int) -> bytes:
        """Return the next n bytes, or b"" if the editor disconnects."""
        try:
            return await self._reader.readexactly(n)
        except asyncio.IncompleteReadError:
            return b""
