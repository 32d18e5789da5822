"""Take the screenshot of the README from the running product: `python -m docs.screenshot`.

Needs Chromium (`make system-deps`).
"""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import expect, sync_playwright

from redraft.cli.demo import ASKED, SEED, SUPPORT
from redraft.data.pairs import read_pairs
from redraft.model import RetrieveAndEdit
from redraft.training.fit import FitOptions
from tests.e2e.page_server import PageServer

IMAGE = Path(__file__).parent / "images" / "playground.png"
WIDTH, HEIGHT = 1200, 690


def main() -> None:
    """Ask a question of the demo in the playground and write the image."""
    with TemporaryDirectory() as folder:
        examples = read_pairs(SUPPORT / "pairs.jsonl")
        model = Path(folder) / "support"
        RetrieveAndEdit.fit(examples, options=FitOptions(seed=SEED)).save(model)
        server = PageServer(model).start()
        try:
            _write_image(server.url)
        finally:
            server.stop()


def _write_image(url: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(f"{url}/#/playground")
        page.get_by_label("Input", exact=True).fill(ASKED[-1])
        page.get_by_role("button", name="Predict").click()
        expect(page.locator(".prototype.chosen")).to_have_count(1)
        page.screenshot(path=IMAGE, animations="disabled")
        browser.close()


if __name__ == "__main__":
    main()
