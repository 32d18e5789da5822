"""The packaged extension in a real editor: code-server in Chromium, driven as its user would.

Run by hand, since code-server compiles its native modules when it is installed:

    npm install code-server@4.100.3    # needs Node.js 20, a C++ compiler and libkrb5-dev
    npx code-server --install-extension editors/vscode/redraft.vsix
    npx code-server --auth none --bind-addr 127.0.0.1:8977 --disable-workspace-trust
    python editors/vscode/test/real_editor.py http://127.0.0.1:8977 docs/images/vscode.png

Set `redraft.command` in the editor's settings if `redraft` is not on its path.
"""

import re
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Locator, Page, expect, sync_playwright

ORDERS = '''"""Orders of customers."""

import json


def read_orders(path):
    """Read the orders of a file, one JSON object per line."""
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
'''
INVOICES = '''"""Invoices."""

import json


def read_invoices(path):
    """Read the invoices of a file."""
    '''
SECONDS = 60_000


def main(url: str, image: Path) -> None:
    """Complete a line, look at its source, and write a screenshot."""
    with TemporaryDirectory() as parent, sync_playwright() as playwright:
        folder = Path(parent) / "shop"  # the editor shows its name
        folder.mkdir()
        (folder / "orders.py").write_text(ORDERS)
        (folder / "invoices.py").write_text(INVOICES)
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1200, "height": 700})
        page.goto(f"{url}/?folder={folder}", timeout=2 * SECONDS)
        check(page, image)
        browser.close()


def check(page: Page, image: Path) -> None:
    """Assert what the user sees."""
    page.get_by_role("treeitem", name="invoices.py").dblclick(timeout=SECONDS)
    status = page.locator(".statusbar-item", has_text=re.compile(r"^\W*Redraft [\d,]+$"))
    expect(status).to_be_visible(timeout=SECONDS)
    print("status bar:", status.inner_text().strip())
    page.locator(".view-lines").first.click()
    page.keyboard.press("Control+End")
    page.keyboard.type("with ", delay=60)
    ghost = page.locator("[class*=ghost-text-decoration]")
    expect(ghost.first).to_be_visible(timeout=SECONDS)
    print("ghost text:", text_of(ghost))
    page.keyboard.press("Tab")
    expect(page.locator(".view-lines").first).to_contain_text("with\xa0open(path,")
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Control+k")
    page.keyboard.press("Control+i")
    hover = page.locator(".monaco-hover", has_text="read_orders")
    expect(hover).to_be_visible(timeout=SECONDS)
    print("hover:", hover.inner_text().split("\n")[0])
    page.screenshot(path=image)
    page.keyboard.press("Escape")
    page.keyboard.press("F1")
    page.keyboard.type("Redraft: Show the Function", delay=30)
    page.get_by_role("option", name=re.compile("Redraft: Show the Function")).first.click()
    expect(page.locator(".tab", has_text="orders.py")).to_be_visible(timeout=SECONDS)
    print("command: opened orders.py")


def text_of(parts: Locator) -> str:
    """Return the text of the parts of a suggestion."""
    return "".join(parts.all_inner_texts())


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
