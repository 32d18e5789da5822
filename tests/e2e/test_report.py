"""The report of an evaluation in a real browser: every example, filtered and searched."""

from pathlib import Path

from playwright.sync_api import expect, sync_playwright

from tests.programs import program
from tests.reports import evaluation_of, written

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def test_examples_are_filtered_by_verdict_and_searched(tmp_path: Path) -> None:
    written(evaluation_of(10), tmp_path)  # every fifth is right
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program(*BROWSERS), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 380, "height": 800})
        problems: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto((tmp_path / "report.html").as_uri())
        visible = page.locator(".example:visible")
        expect(visible).to_have_count(10)
        page.get_by_role("button", name="Right 2").click()
        expect(visible).to_have_count(2)
        expect(page.locator("#found")).to_have_text("2 of 10 shown")
        page.get_by_label("Search").fill("NUMBER 4")
        expect(visible).to_have_count(1)
        page.get_by_role("button", name="All 10").click()
        page.get_by_label("Search").fill("nothing like it")
        expect(visible).to_have_count(0)
        width = page.evaluate("document.documentElement.scrollWidth")
        browser.close()
    assert problems == []
    assert width <= 380
