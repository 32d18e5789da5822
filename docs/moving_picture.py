"""Record the README's moving picture from the running product: `python -m docs.moving_picture`.

A function is typed into the completion editor of a served index of Redraft's own code; suggestions
appear as ghost text beside the function that they are borrowed from, and Tab accepts them. Every
frame is a screenshot. Needs Chromium (`make system-deps`) and the extra `docs`.
"""

import io
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import FloatRect, Page, expect, sync_playwright

from redraft.completion.project import Project, empty_model, index_project
from tests.e2e.page_server import PageServer

SOURCES = Path(__file__).parents[1] / "src" / "redraft"
IMAGE = Path(__file__).parent / "images" / "completion.gif"
WIDTH, HEIGHT = 1120, 800
SHOWN: FloatRect = {"x": 24, "y": 186, "width": 1072, "height": 562}
"""The part of the page that is recorded: the editor and the borrowed function."""

COLOURS = 64
KEY, READ, LAST, ACCEPTED = 70, 2000, 3500, 900
"""Milliseconds that a frame is shown: a typed key, a suggestion, the last one, an acceptance."""

BEFORE = '''"""`redraft export`: write the examples of a model to a file."""

from pathlib import Path

from redraft.cli._console import emit, working
from redraft.cli._options import ModelArgument, StoreOption


def command(
    model: ModelArgument, out: Path, store: StoreOption = None
) -> None:
    """Write the examples of a model to a file of pairs."""
    '''

TYPED = {
    "from redraft.m": "odel import RetrieveAndEdit",
    '\n\n    with working("load': 'ing the model"):',
    "\n        load": "ed = RetrieveAndEdit",
    ".": "load(model, store=store)",
}
"""What is typed, each part with the suggestion at its end, which is accepted."""

Frame = tuple[Image.Image, int]


def main() -> None:
    """Record the picture and write it."""
    with TemporaryDirectory() as folder:
        model, _ = index_project(empty_model(), Project.read([SOURCES]))
        model.save(Path(folder) / "redraft")
        server = PageServer(Path(folder) / "redraft").start()
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(
                    executable_path=shutil.which("chromium"), args=["--no-sandbox"]
                )
                page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
                page.goto(f"{server.url}/#/completion")
                frames = list(record(page))
        finally:
            server.stop()
    write(frames, IMAGE)


def record(page: Page) -> Iterator[Frame]:
    """Type the function; yields a frame for each key, suggestion and acceptance."""
    code = page.get_by_label("Python code")
    code.fill(BEFORE)
    for part, suggested in TYPED.items():
        for key in part:
            page.keyboard.insert_text(key)
            yield screenshot(page), KEY
        expect(page.locator(".ghost")).to_have_text(suggested)
        expect(page.locator(".side [aria-pressed=true]")).to_contain_text(suggested)
        expect(page.locator(".borrowed mark")).to_be_in_viewport()
        yield screenshot(page), LAST if part == list(TYPED)[-1] else READ
        code.press("Tab")
        expect(code).to_have_value(re.compile(re.escape(part + suggested) + "$"))
        yield screenshot(page), ACCEPTED


def screenshot(page: Page) -> Image.Image:
    """Return the visible part of the page."""
    data = page.screenshot(animations="disabled", clip=SHOWN)
    return Image.open(io.BytesIO(data)).convert("RGB")


def write(frames: list[Frame], path: Path) -> None:
    """Write an animated GIF; its frames share a palette, so that each stores its changes only."""
    images = [image for image, _ in frames]
    richest = max(images, key=lambda image: len(image.getcolors(1 << 24) or ()))
    palette = richest.quantize(COLOURS, dither=Image.Dither.NONE)
    pictures = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    times = [milliseconds for _, milliseconds in frames]
    first, *rest = pictures
    first.save(path, save_all=True, append_images=rest, duration=times, loop=0, optimize=False)


if __name__ == "__main__":
    main()
