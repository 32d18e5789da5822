"""`redraft lsp` as a process: start, shutdown and files on disk."""

import asyncio
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lsprotocol import types
from pytest_lsp import LanguageClient, make_test_lsp_client

from redraft import Example, RetrieveAndEdit
from tests.baskets import write_project
from tests.conftest import Run
from tests.server.functions import model_of
from tests.server.lsp.editor import COMMAND, DEADLINE, FULL, POOR, Editor, running, stop

NOUNS = ("zinnia", "yucca", "xenia", "wisteria")
BUFFER = 'def add_rose(self, rose):\n    """Add the zinnia."""\n    '


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("learned")
    model_of(write_project(folder / "shop", NOUNS)).save(folder / "model")
    return folder / "model"


def exit_code(client: LanguageClient) -> int | None:
    assert client._server is not None
    return client._server.returncode


async def leave(editor: Editor) -> int | None:
    """Wait for the server's end."""
    assert editor.client._server is not None
    await asyncio.wait_for(editor.client._server.wait(), DEADLINE)
    return exit_code(editor.client)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", "missing: not a model (no manifest.json); name a folder `redraft fit` wrote"),
        ("damaged", "manifest.json: damaged; copy or fit the model again"),
    ],
)
def test_an_invalid_model_is_an_error_before_the_protocol_starts(
    name: str, message: str, tmp_path: Path, redraft: Run
) -> None:
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "manifest.json").write_text("{")
    done = redraft("lsp", tmp_path / name)
    assert done.returncode == 2
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert line.endswith(message)


def test_without_its_extra_it_says_how_to_install_it(model: Path) -> None:
    code = "import sys; sys.modules['pygls'] = None; from redraft.cli.app import main; main()"
    command = [sys.executable, "-c", code, "lsp", str(model)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        "error: `redraft lsp` needs pygls, which is not installed; "
        "install it with: pip install 'redraft[lsp]'\n"
    )


@pytest.mark.asyncio
@pytest.mark.parametrize("is_shut_down", [True, False])
async def test_the_exit_code_says_whether_it_was_shut_down(model: Path, is_shut_down: bool) -> None:
    async with running(model, "--stdio") as editor:  # many clients pass it
        await editor.initialize()
        if is_shut_down:
            await editor.client.shutdown_async(None)
        editor.client.exit(None)
        assert await leave(editor) == (0 if is_shut_down else 1)


@pytest.mark.asyncio
async def test_it_leaves_when_its_editor_is_gone(model: Path) -> None:
    async with running(model) as editor:
        await editor.initialize()
        assert editor.client._server is not None
        assert editor.client._server.stdin is not None
        editor.client._server.stdin.close()
        assert await leave(editor) == 1


@pytest.mark.asyncio
async def test_killed_at_any_moment_the_model_on_disk_is_what_it_was(
    model: Path, tmp_path: Path
) -> None:
    def digests() -> dict[str, str]:
        files = sorted(path for path in model.rglob("*") if path.is_file())
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

    before = digests()
    folder = write_project(tmp_path / "other", ("rose", "sage"))
    for is_read in (False, True):
        async with running(model) as editor:
            await editor.initialize(folder=folder)
            if is_read:
                await editor.ready()
                assert (await editor.complete_end(BUFFER)).items[0].detail != ""
            assert editor.client._server is not None
            editor.client._server.send_signal(signal.SIGKILL)
            assert await leave(editor) == -signal.SIGKILL
        assert digests() == before


@pytest.mark.asyncio
async def test_settings_that_are_not_understood_are_shown_and_ignored(model: Path) -> None:
    options = {"k": 2, "idnex": True, "without": "tests", "index": "no", "debounceMs": -1}
    async with running(model) as editor:
        await editor.initialize(options=options)
        await editor.until(lambda: len(editor.shown) == 4)
        known = (
            "the settings are: model, index, without, k, accept, leastProbability, "
            "leastKeystrokes, off, debounceMs, acceptCommand, lmWaitMs"
        )
        assert editor.shown == [
            f"redraft: unknown setting 'idnex' is ignored; {known}",
            "redraft: setting 'index' is ignored: input should be a valid boolean",
            "redraft: setting 'without' is ignored: input should be a valid tuple",
            "redraft: setting 'debounceMs' is ignored: input should be greater than or equal to 0",
        ]
        found = await editor.answered(lambda: editor.complete_end(BUFFER))
        assert 1 <= len(found) <= 2  # k, without what no statement begins with


@pytest.mark.asyncio
async def test_the_editor_may_name_another_model(model: Path, tmp_path: Path) -> None:
    pairs = [Example({"text": f"card {at}"}, f"draw({at})") for at in range(3)]
    cards = tmp_path / "cards"
    RetrieveAndEdit.fit(pairs, retriever="lexical", editor="verbatim").save(cards)
    for folder, message in (
        (
            cards,
            f"{cards}: cannot complete Python, since its examples are not functions; fit a model",
        ),
        (tmp_path / "none", f"{tmp_path / 'none'}: not a model (no manifest.json); name a folder"),
    ):
        async with running(model, "--trust", tmp_path) as editor:
            await editor.initialize(options={"model": str(folder)})
            await editor.until(lambda: bool(editor.shown))
            assert editor.shown[0].startswith(f"redraft: {message}")
            assert await editor.complete_end(BUFFER) == types.CompletionList(True, ())


@pytest.mark.asyncio
async def test_a_model_that_a_project_names_is_ignored_unless_its_folder_is_trusted(
    model: Path, tmp_path: Path
) -> None:
    trusted, other = tmp_path / "trusted", tmp_path / "other"
    for folder in (trusted, other):
        folder.mkdir()
    link = trusted / "link"
    link.symlink_to(other)  # a folder that only seems to be inside
    for named in (other, link, trusted / ".." / "other", Path("~nobody-of-this-name/model")):
        async with running(model, "--trust", trusted) as editor:
            await editor.initialize(options={"model": str(named)})
            await editor.until(lambda: bool(editor.shown))
            assert editor.shown == [
                f"redraft: setting 'model' is ignored, since {str(named)!r} is not in a trusted "
                "folder; to load it, start the server with `--trust FOLDER`"
            ]
            found = await editor.answered(lambda: editor.complete_end(BUFFER))
            assert found[0].label == "if rose in self.all:", "the command's model answers"


async def posted(port: int) -> str:
    """What a page in a browser is answered that posts messages of the protocol as text."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "shutdown"})
    message = f"Content-Length: {len(body)}\r\n\r\n{body}"
    request = f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(message)}\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{request}{message}".encode())
    answer = await asyncio.wait_for(reader.read(), DEADLINE)
    writer.close()
    assert b"this port speaks the Language Server Protocol" in answer
    return answer.decode()


@pytest.mark.asyncio
@pytest.mark.parametrize("capabilities", [FULL, POOR])
@pytest.mark.parametrize("says_exit", [True, False])
async def test_it_leaves_at_once_whatever_it_works_on(
    model: Path, tmp_path: Path, capabilities: types.ClientCapabilities, says_exit: bool
) -> None:
    folder = write_project(tmp_path / "shop", NOUNS)
    async with running(model) as editor:
        await editor.initialize(capabilities, folder=folder, options={"debounceMs": 1})
        await editor.ready()
        process = editor.client._server
        assert process is not None
        before = processor_seconds(process.pid)
        (folder / "many").mkdir()  # together they are read for many seconds
        lines = "".join(f"def f{at}(a):\n    return a + {at}\n" for at in range(40))
        for at in range(3_000):
            (folder / "many" / f"file_{at}.py").write_text(lines)
        editor.save(folder / "many" / "file_0.py")
        await editor.until(lambda: processor_seconds(process.pid) > before + 0.5)
        started = time.monotonic()
        if says_exit:
            await editor.client.shutdown_async(None)
            editor.client.exit(None)
        else:
            assert process.stdin is not None
            process.stdin.close()
        assert await leave(editor) == (0 if says_exit else 1)
        assert time.monotonic() - started < 5


def processor_seconds(process: int) -> float:
    """The processor time that a process has used."""
    numbers = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.asyncio
async def test_an_editor_can_come_by_a_port(model: Path, redraft: Run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        taken.listen()
        done = redraft("lsp", model, "--tcp", port)
        assert done.returncode == 2
        assert done.stderr.splitlines()[-1] == (
            f"error: port {port}: Address already in use; choose another with --tcp"
        )
    with subprocess.Popen([*COMMAND, model, "--tcp", str(port)], stderr=subprocess.PIPE) as process:
        client = make_test_lsp_client()
        while True:
            try:
                await client.start_tcp("127.0.0.1", port)
                break
            except ConnectionRefusedError:
                assert process.poll() is None
                await asyncio.sleep(0.02)
        assert "400 Bad Request" in await posted(port)  # before any editor has connected
        editor = Editor(client)
        await editor.initialize(POOR)
        found = await editor.answered(lambda: editor.complete_end(BUFFER))
        assert found[0].label == "if rose in self.all:"
        assert "400 Bad Request" in await posted(port)
        await client.shutdown_session()
        assert process.wait(DEADLINE) == 0
        await stop(client)
