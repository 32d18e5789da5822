"""A real Neovim, without a screen, that completes code through `redraft lsp` as its user would."""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.programs import program
from tests.server.functions import model_of
from tests.server.http.servers import running

DEADLINE = 60.0

FIRST_SUGGESTION = 15.0
"""Seconds from opening a file to the first suggestion, on a machine with a free core."""

SHAPES = '''def area(side):
    """Area of a square."""
    return side * side


def corners(count):
    """Names of the corners of a polygon."""
    names = [
        f"corner {at}" for at in range(count)
    ]
    return names
'''

SETTINGS = """
vim.opt.completeopt = { 'menuone', 'noinsert' }
vim.api.nvim_create_autocmd('FileType', {
  pattern = 'python',
  callback = function(args)
    local server = { name = 'redraft', cmd = COMMAND, root_dir = vim.fn.getcwd() }
    if vim.lsp.start then
      vim.lsp.start(server)
    else
      vim.lsp.buf_attach_client(args.buf, vim.lsp.start_client(server))
    end
    vim.bo[args.buf].omnifunc = 'v:lua.vim.lsp.omnifunc'
  end,
})
vim.api.nvim_create_autocmd('CompleteDone', {
  callback = function()
    local row, column = unpack(vim.api.nvim_win_get_cursor(0))
    local line = vim.fn.getline('.')
    local lines = vim.split(line, '\\n')
    if #lines > 1 then
      vim.api.nvim_buf_set_lines(0, row - 1, row, true, lines)
      local behind = #line - column
      vim.api.nvim_win_set_cursor(0, { row + #lines - 1, #lines[#lines] - behind })
    end
  end,
})
"""
"""As in docs/completion.md, but for the command."""

ASK = """luaeval("(function()
  local position = { line = vim.fn.line('$') - 1, character = 10 }
  local question = { textDocument = { uri = vim.uri_from_bufnr(0) }, position = position }
  local answers = vim.lsp.buf_request_sync(0, 'textDocument/completion', question, 1000)
  for _, answer in pairs(answers or {}) do
    return math.min(1, #(answer.result or { items = {} }).items)
  end
  return 0
end)()")"""


class Neovim:
    """A Neovim that is told what to type and asked what it sees."""

    def __init__(self, process: "subprocess.Popen[bytes]", remote: Sequence[str]) -> None:
        self.process = process
        self.opened = time.monotonic()
        self._remote_command = remote

    def _remote(self, *arguments: str) -> str:
        command = [*self._remote_command, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout.strip() or done.stderr.strip()

    def type(self, keys: str) -> None:
        """Press keys, named as Neovim names them."""
        self._remote("--remote-send", keys)

    def until(self, expression: str, value: str) -> None:
        """Wait until an expression has a value."""
        end = time.monotonic() + DEADLINE
        while (found := self._remote("--remote-expr", expression.replace("\n", " "))) != value:
            assert time.monotonic() < end, f"{expression} is still {found}"

    def complete(self) -> None:
        """Ask for suggestions and take the first."""
        self.type("<C-x><C-o>")
        self.until("pumvisible()", "1")
        self.type("<C-y>")
        self.until("pumvisible()", "0")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A project with a new file."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "shapes.py").write_text(SHAPES)
    (work / "new.py").write_text('def square(side):\n    """Area of a square."""\n    return\n')
    return work


@contextlib.contextmanager
def editing(work: Path, settings: Path) -> Iterator[Neovim]:
    """A Neovim with the new file of a project open."""
    nvim, tmp_path = program("nvim"), work.parent
    homes = {f"XDG_{kind}_HOME": str(tmp_path / kind) for kind in ("CACHE", "STATE", "DATA")}
    with tempfile.TemporaryDirectory() as folder:  # a socket's path must be short
        address = Path(folder) / "neovim"
        options = ["--headless", "--clean", "-n", "-u", str(settings)]
        process = subprocess.Popen(
            [nvim, *options, "--listen", str(address), "new.py"],
            cwd=work,
            env={**os.environ, **homes},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield Neovim(process, [nvim, "--server", str(address)])
        finally:
            process.kill()
            process.wait()


@pytest.fixture
def neovim(work: Path, tmp_path: Path) -> Iterator[Neovim]:
    """A Neovim that has started `redraft lsp`."""
    command = [sys.executable, "-m", "redraft", "lsp"]
    listed = ", ".join(f"'{part}'" for part in command)
    settings = tmp_path / "init.lua"
    settings.write_text(SETTINGS.replace("COMMAND", f"{{ {listed} }}"))
    with editing(work, settings) as neovim:
        yield neovim


def test_neovim_completes_a_line_and_a_statement_of_several_lines(
    neovim: Neovim, tmp_path: Path
) -> None:
    neovim.until("mode()", "n")
    neovim.until(ASK, "1")  # the project is indexed
    waiting = os.getloadavg()[0] / (os.cpu_count() or 1)
    assert time.monotonic() - neovim.opened < FIRST_SUGGESTION * max(1.0, waiting)
    neovim.type("GA")
    neovim.complete()
    neovim.type("<Esc>Go<Esc>ccdef all(count):<CR>")
    neovim.type('"""Names of the corners."""<CR>names =')
    neovim.complete()
    neovim.type("<Esc>:wq<CR>")
    assert neovim.process.wait(DEADLINE) == 0
    assert (tmp_path / "work" / "new.py").read_text() == (
        "def square(side):\n"
        '    """Area of a square."""\n'
        "    return side * side\n"
        "def all(count):\n"
        '    """Names of the corners."""\n'
        "    names = [\n"
        '        f"corner {at}" for at in range(count)\n'
        "    ]\n"
    )
    [log] = tmp_path.rglob("lsp.log")
    assert "ERROR" not in log.read_text()


def test_neovim_asks_infill_as_llama_vim_does(work: Path, tmp_path: Path) -> None:
    model_of(work).save(tmp_path / "mine")
    script = (Path(__file__).parent / "infill.vim").read_text()
    with running(tmp_path / "mine") as server:
        settings = tmp_path / "init.vim"
        settings.write_text(
            f"set autoindent shiftwidth=4\nlet g:endpoint = '{server.url}/infill'\n{script}"
        )
        with editing(work, settings) as neovim:
            neovim.until("mode()", "n")
            neovim.type("GA")  # the cursor has moved: the first request
            neovim.until("g:shown", "side * side")
            neovim.until(
                "g:answer['timings/predicted_n'] > 2 && g:answer['truncated'] == v:false", "1"
            )
            neovim.type("<Tab><Esc>Go<Esc>ccdef corners_of(count):<CR>")
            # a suggestion for a blank line begins at its start
            neovim.until("stridx(g:shown, '    names = [')", "0")
            neovim.type("names =")
            neovim.until("len(split(g:shown, '\\n'))", "3")
            neovim.type("<Tab>")
            neovim.until("trim(getline('$'))", "]")
            neovim.type("<Esc>:wq<CR>")
            assert neovim.process.wait(DEADLINE) == 0
    assert (work / "new.py").read_text() == (
        "def square(side):\n"
        '    """Area of a square."""\n'
        "    return side * side\n"
        "def corners_of(count):\n"
        "    names = [\n"
        '        f"corner {at}" for at in range(count)\n'
        "    ]\n"
    )
