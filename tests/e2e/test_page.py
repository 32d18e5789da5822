"""The web page in a real browser, against a real server in its own process."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from redraft import Example, RetrieveAndEdit
from redraft.completion.project import Project
from redraft.text.marks import value_spans
from tests.e2e.page_server import PageServer
from tests.greetings import greeter
from tests.programs import program
from tests.shop import MAPPED, UNKNOWN, WITHOUT_VALUE, shopkeeper

SOURCE = '''
def area(side):
    """The area of a square."""
    return side * side


def read_lines(path):
    """Read the lines of a file."""
    with open(path) as file:
        return file.read().splitlines()


def read_words(path):
    """Read the words of a text."""
    words = path.read_text().split()
    return sorted(words)
'''
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
VIEWS = ("playground", "completion", "map")
NARROW = {"width": 380, "height": 800}
LEAST_CONTRAST = 4.5
MOST_MILLISECONDS = 20_000
NETWORK = "Failed to load resource"
"""A browser says so of every refused request, also where the page handles it."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = program(*BROWSERS)
    expect.set_options(timeout=MOST_MILLISECONDS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


def plain(examples: list[Example], folder: Path) -> Path:
    """A folder with a model that needs no training."""
    RetrieveAndEdit.fit(examples, retriever="lexical", editor="verbatim").save(folder)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model that edits, one of functions, one with several fields, one without a map, one that
    marks values.
    """
    root = tmp_path_factory.mktemp("models")
    greeter().save(root / "greetings")
    shopkeeper().save(root / "shop")
    (root / "source").mkdir()
    (root / "source" / "shapes.py").write_text(SOURCE)
    mined = Project.read([root / "source"]).files.values()
    cards = [
        Example({"title": f"card {at}", "effect": f"draw {at}"}, f"draw({at})") for at in range(3)
    ]
    return {
        "greetings": root / "greetings",
        "functions": plain([each for found in mined for each in found], root / "functions"),
        "cards": plain(cards, root / "cards"),
        "lonely": plain(cards[:1], root / "lonely"),
        "shop": root / "shop",
    }


@pytest.fixture(scope="module")
def server(folders: dict[str, Path]) -> Iterator[PageServer]:
    served = PageServer(*folders.values()).start()
    yield served
    served.stop()


Open = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser, server: PageServer) -> Iterator[Open]:
    """Opens a view; afterwards nothing was wrong in the console or asked of anyone else."""
    said: list[str] = []
    asked: list[str] = []
    contexts = []

    def hear(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and NETWORK not in message.text:
            said.append(message.text)

    def open_view(view: str = "playground", *, model: str = "", **options: Any) -> Page:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(MOST_MILLISECONDS)
        page.on("console", hear)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{server.url}/#/{view}")
        if model:
            page.get_by_label("Model").select_option(model)
        return page

    yield open_view
    for context in contexts:
        context.close()
    assert said == []
    assert [url for url in asked if not url.startswith((f"{server.url}/", "data:"))] == []


def predict(page: Page, text: str) -> None:
    """Ask the playground, and wait for the answer and its prototypes."""
    page.get_by_label("Input", exact=True).fill(text)
    page.get_by_role("button", name="Predict").click()
    expect(page.locator(".prototype.chosen")).to_have_count(1)


def test_an_answer_shows_where_each_token_came_from(open_page: Open) -> None:
    page = open_page()
    predict(page, "greet Kepler")
    tokens = page.get_by_label("Answer by origin")
    expect(tokens).to_contain_text("print(")
    expect(page.locator(".answer .legend")).to_contain_text("copied from the prototype")
    tokens.get_by_text("print").hover()
    expect(page.get_by_role("tooltip")).to_have_text(
        re.compile("^(copied from the (prototype|input)|generated)$")
    )
    expect(page.locator(".prototype")).to_have_count(10)
    expect(page.locator(".answer-choice")).to_have_count(3)
    second = page.locator(".answer-choice").nth(1)
    second.click()
    expect(second).to_have_attribute("aria-pressed", "true")
    expect(tokens).to_have_text(second.locator("code").inner_text())


def test_a_value_from_nowhere_is_named_above_the_answer_and_marked_in_it(open_page: Open) -> None:
    page = open_page(model="shop")
    predict(page, WITHOUT_VALUE)
    warnings = page.get_by_role("list", name="Warnings")
    expect(warnings).to_contain_text("Value from nowhere: 'BR'")
    expect(page.locator(".tokens .invented")).to_have_text("BR")
    expect(page.locator(".answer .legend")).to_contain_text("value from nowhere")
    page.locator(".tokens .invented").hover()
    expect(page.get_by_role("tooltip")).to_contain_text("value from nowhere: neither your input")
    expect(page.locator("#announcer")).to_contain_text("Warning: Value from nowhere: 'BR'.")
    expect(page.locator(".warning-sign").first).to_be_visible()
    page.get_by_text("Diff", exact=True).click()
    expect(warnings).to_be_visible()


def test_an_input_like_no_example_is_said_to_be_so(open_page: Open) -> None:
    page = open_page(model="shop")
    predict(page, UNKNOWN)
    warnings = page.get_by_role("list", name="Warnings")
    expect(warnings).to_contain_text("Nothing similar in the index")
    predict(page, "how many customers in Oslo")
    expect(warnings).to_have_count(0)


def test_a_mapped_value_has_its_own_colour_and_legend_entry(open_page: Open) -> None:
    page = open_page(model="shop")
    expect(page.locator(".legend .from-mapped")).to_be_visible()
    predict(page, MAPPED)
    expect(page.locator(".tokens .from-mapped")).to_have_text("PL")
    expect(page.locator(".legend .from-mapped")).to_have_text(
        "mapped from the input as in other examples"
    )
    colour = "element => getComputedStyle(element).color"
    others = page.locator(".tokens .from-prototype").first.evaluate(colour)
    assert page.locator(".tokens .from-mapped").evaluate(colour) != others
    expect(page.get_by_role("list", name="Warnings")).to_have_count(0)


FIND_VALUES = """async ([text, values]) => {
  const { findValues } = await import(new URL("warnings.js", document.baseURI));
  return findValues(text, values);
}"""


@pytest.mark.parametrize("values", [["2024-07-03"], ["a@b.io", "São"], ["C", "C++"]])
def test_the_page_finds_the_values_that_the_library_finds(
    open_page: Open, values: list[str]
) -> None:
    text = "on 2024-07-03, mail a@b.io in São or Sãos, C++ or C"
    found = open_page().evaluate(FIND_VALUES, [text, values])
    assert [tuple(span) for span in found] == value_spans(text, values)


def test_another_prototype_can_be_edited_and_the_diff_follows(open_page: Open) -> None:
    page = open_page()
    predict(page, "greet Kepler")
    page.get_by_text("Diff", exact=True).click()
    diff = page.get_by_label("Changes from the prototype to the answer")
    before = diff.inner_text()
    third = page.locator(".prototype").nth(2)
    third.click()
    expect(third).to_have_class(re.compile("chosen"))
    expect(third.get_by_role("button", pressed=True)).to_have_text("Edited into the answer")
    expect(page.locator(".made-from")).to_contain_text("prototype 3")
    expect(diff).not_to_have_text(before)
    kept = "".join(
        diff.evaluate("e => [...e.childNodes].map(n => n.nodeName == 'INS' ? '' : n.textContent)")
    )
    assert kept == third.locator(".y").inner_text()


def test_the_playground_needs_no_mouse(open_page: Open) -> None:
    page = open_page()
    expect(page.locator(".starter").first).to_be_visible()
    keys = page.keyboard
    keys.press("Tab")
    expect(page.get_by_text("Skip to the content")).to_be_focused()
    keys.press("Enter")
    keys.press("Tab")
    expect(page.get_by_label("Input", exact=True)).to_be_focused()
    keys.type("greet Noether")
    keys.press("Control+Enter")
    expect(page.locator(".prototype.chosen")).to_have_count(1)
    focused = page.locator(":focus")
    for _ in range(40):
        keys.press("Tab")
        if "pick" in (focused.get_attribute("class") or ""):
            break
    first = page.locator(".pick").first
    expect(first).to_be_focused()
    keys.press("ArrowDown")
    keys.press("Enter")
    expect(page.locator(".prototype").nth(1)).to_have_class(re.compile("chosen"))
    expect(page.locator(".pick").nth(1)).to_be_focused()
    keys.press("Shift+Tab")
    for _ in range(20):
        if "from-" in (focused.get_attribute("class") or ""):
            break
        keys.press("Shift+Tab")
    told = page.get_by_role("tooltip")
    expect(told).to_be_visible()
    keys.press("ArrowRight")
    expect(told).to_be_visible()


def test_an_answer_is_corrected_and_saved_as_an_example(open_page: Open) -> None:
    page = open_page(model="cards")
    page.get_by_label("Title").fill("a new card")
    page.get_by_label("Effect").fill("draw 9")
    page.get_by_role("button", name="Predict").click()
    page.get_by_role("button", name="Correct this answer").click()
    right = page.get_by_label("The right answer")
    right.fill(" ")
    page.get_by_role("button", name="Save as an example").click()
    expect(page.get_by_text("Write the right answer first.")).to_be_visible()
    right.fill("draw(9, 'cards')")
    page.get_by_role("button", name="Save as an example").click()
    expect(page.locator(".answer .tokens")).to_have_text("draw(9, 'cards')")
    expect(page.locator(".prototype.chosen .why")).to_have_text("the same input")
    expect(page.locator(".prototype .why").nth(1)).to_contain_text("shares ")


def test_a_model_that_is_not_sure_abstains(open_page: Open) -> None:
    page = open_page(model="shop")
    predict(page, UNKNOWN)
    expect(page.get_by_role("heading", name="No sure answer")).to_be_visible()
    expect(page.locator(".abstained")).to_contain_text("The model abstains")
    predict(page, MAPPED)
    expect(page.get_by_role("heading", name="Answer", exact=True)).to_be_visible()
    expect(page.locator(".abstained")).to_have_count(0)
    expect(page.locator(".answer")).not_to_contain_text("false")


def test_the_completion_editor_scrolls_on_a_narrow_screen(open_page: Open) -> None:
    page = open_page("completion", model="functions", viewport=NARROW)
    page.locator(".buffer").press("Control+End")
    page.keyboard.type("value = " + "a_name + " * 12)
    places = page.locator(".editor").evaluate("(it) => [it.scrollLeft, it.scrollWidth]")
    assert 0 < places[0] < places[1]
    page.locator(".editor").evaluate("(it) => it.scrollTo(0, 0)")
    expect(page.locator(".line-numbers")).to_be_in_viewport()


def test_fields_are_those_of_the_model_and_a_problem_stands_beside_its_own(open_page: Open) -> None:
    page = open_page(model="cards")
    page.get_by_role("button", name="Predict").click()
    expect(page.locator("#input-0-problem")).to_have_text("Write an input first.")
    page.get_by_label("Title").fill("card 1")
    page.get_by_label("Effect").fill("x" * 20_001)
    page.get_by_role("button", name="Predict").click()
    expect(page.locator("#input-1-problem")).to_contain_text("at most 20000 characters")
    expect(page.get_by_label("Effect")).to_be_focused()
    expect(page.get_by_label("Effect")).to_have_attribute("aria-invalid", "true")
    page.get_by_label("Effect").fill("draw 1")
    page.get_by_role("button", name="Predict").click()
    expect(page.locator(".answer .code")).to_have_text("draw(1)")
    expect(page.locator("#input-1-problem")).to_be_empty()


def test_a_suggestion_is_accepted_by_tab_and_shows_what_it_borrows(open_page: Open) -> None:
    page = open_page("completion", model="functions")
    code = page.get_by_label("Python code")
    ghost = page.locator(".ghost")
    text = '# 🙂\ndef surface(side):\n    """The area of a square."""\n    '
    with page.expect_request(lambda request: "🙂" in (request.post_data or "")) as asked:
        code.fill(text)
    assert json.loads(asked.value.post_data or "")["offset"] == len(text)
    expect(ghost).to_have_text("return side * side")
    panel = page.get_by_label("Where the suggestion is from")
    expect(panel).to_contain_text("shapes.py:2")
    expect(panel.locator("mark")).to_have_text("return side * side")
    code.press("Alt+]")
    expect(ghost).not_to_have_text("return side * side")
    code.press("Alt+[")
    expect(ghost).to_have_text("return side * side")
    code.press("Tab")
    expect(code).to_have_value(f"{text}return side * side")
    expect(code).to_be_focused()


def test_the_completion_editor_starts_with_a_typical_function_of_the_model(
    open_page: Open,
) -> None:
    page = open_page("completion", model="functions")
    code = page.get_by_label("Python code")
    expect(code).to_have_value(re.compile(r'^def \w+\(.*\):\n    (""".+"""\n    )?$'))
    expect(page.locator(".ghost")).to_be_visible()
    expect(page.get_by_label("Where the suggestion is from")).to_contain_text("Borrowed from")


def test_what_is_typed_of_a_suggestion_leaves_its_rest_and_escape_dismisses_it(
    open_page: Open,
) -> None:
    page = open_page("completion", model="functions")
    code = page.get_by_label("Python code")
    ghost = page.locator(".ghost")
    code.fill('def surface(side):\n    """The area of a square."""\n    ')
    expect(ghost).to_have_text("return side * side")
    code.press_sequentially("return ")
    expect(ghost).to_have_text("side * side")
    code.press("Escape")
    expect(ghost).to_have_count(0)
    code.press("Tab")
    expect(code).to_have_value(re.compile("return     $"))
    code.press("Escape")
    code.press("Escape")
    code.press("Tab")
    expect(code).not_to_be_focused()


def test_a_model_of_other_things_completes_its_outputs(open_page: Open) -> None:
    page = open_page("completion", model="greetings")
    expect(page.get_by_role("heading", name="This model completes outputs")).to_be_visible()
    page.locator("#completion").get_by_label("Input", exact=True).fill("greet Ada")
    page.get_by_label("Output so far").fill("print(")
    page.get_by_role("button", name="Complete").click()
    first = page.locator(".suggestion-list button").first
    text = first.locator("code").inner_text()
    first.click()
    expect(page.get_by_label("Output so far")).to_have_value(re.compile(re.escape(f"print({text}")))


def test_the_map_is_searched_and_an_example_opened(open_page: Open) -> None:
    page = open_page("map")
    expect(page.get_by_label("Map of 10 examples")).to_be_visible()
    query = page.get_by_label("Search")
    count = page.locator("#map-count")
    matches = page.locator(".match")
    query.fill("greet")
    expect(count).to_have_text("10 of 10 match")
    query.press("Enter")
    query.press("Enter")
    expect(count).to_have_text("2 of 10 matches")
    expect(page.locator(".match[aria-current]")).to_have_count(1)
    query.fill("greet ada")
    expect(count).to_have_text("1 of 10 match")
    matches.first.press("Enter")
    panel = page.get_by_label("Example", exact=True)
    expect(panel).to_contain_text('print("hello Ada")')
    panel.get_by_role("button", name="Use this input").click()
    expect(page.get_by_label("Input", exact=True)).to_have_value("greet Ada")


def test_the_map_is_moved_and_zoomed_by_keys_and_a_point_is_clicked(open_page: Open) -> None:
    page = open_page("map")
    canvas = page.get_by_label("Map of 10 examples")
    picture = "canvas => canvas.toDataURL()"
    canvas.focus()
    seen = {canvas.evaluate(picture)}
    for key in ("+", "ArrowLeft", "ArrowUp", "-", "0"):
        canvas.press(key)
        canvas.evaluate("() => new Promise(requestAnimationFrame)")
        seen.add(canvas.evaluate(picture))
    assert len(seen) == 5  # the last shows all, as the first did
    page.get_by_label("Search").fill("Ada")
    page.get_by_label("Search").press("Enter")
    box = canvas.bounding_box()
    assert box is not None
    canvas.evaluate("() => new Promise(requestAnimationFrame)")
    ring = canvas.evaluate(RINGED)
    page.mouse.click(box["x"] + ring[0], box["y"] + ring[1])
    expect(page.get_by_label("Example", exact=True)).to_contain_text('print("hello Ada")')


RINGED = """canvas => {
  const { data, width } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let [count, x, y] = [0, 0, 0];
  for (let at = 0; at < data.length; at += 4) {
    if (data[at + 3] < 250 || data[at] > 40 || data[at + 1] > 40 || data[at + 2] > 45) continue;
    count += 1;
    x += (at / 4) % width;
    y += Math.floor(at / 4 / width);
  }
  return [x / count / devicePixelRatio, y / count / devicePixelRatio];
}"""


def test_a_model_without_a_space_says_so(open_page: Open) -> None:
    page = open_page("map", model="lonely")
    expect(page.get_by_role("heading", name="This model has no map")).to_be_visible()


@pytest.fixture(scope="module")
def locked(folders: dict[str, Path]) -> Iterator[PageServer]:
    """A server that asks for a token, and may be stopped by a test that starts it again."""
    served = PageServer(folders["cards"], token="open sesame").start()
    yield served
    served.stop()


@pytest.fixture
def unlocked(browser: Browser, locked: PageServer) -> Iterator[Page]:
    """A page whose user has given the token, after a wrong one."""
    page = browser.new_page()
    page.goto(locked.url)
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Token").fill("open barley")
    dialog.get_by_label("Token").press("Enter")
    expect(dialog).to_contain_text("The server did not accept that token.")
    dialog.get_by_label("Token").fill("open sesame")
    dialog.get_by_label("Token").press("Enter")
    expect(page.locator(".starter").first).to_be_visible()
    yield page
    page.close()


def test_a_token_is_asked_for_and_kept_in_the_tab(unlocked: Page) -> None:
    unlocked.reload()
    expect(unlocked.locator(".starter").first).to_be_visible()
    expect(unlocked.get_by_role("dialog")).to_be_hidden()


def test_the_page_goes_on_by_itself_when_the_server_is_back(
    unlocked: Page, locked: PageServer
) -> None:
    page = unlocked
    page.get_by_label("Title").fill("card 2")
    locked.stop()
    page.get_by_role("button", name="Predict").click()
    banner = page.get_by_label("Connection")
    expect(banner).to_contain_text("The server does not answer.")
    expect(page.get_by_label("Title")).to_have_value("card 2")
    locked.start()
    expect(banner).to_be_hidden()
    expect(page.locator(".answer .code")).to_have_text("draw(2)")


def test_the_theme_is_chosen_and_remembered(open_page: Open) -> None:
    page = open_page(color_scheme="light")
    paper = "() => getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.get_by_label("Dark").check(force=True)
    dark = page.evaluate(paper)
    assert dark != light
    page.reload()
    assert page.evaluate(paper) == dark
    page.get_by_label("As the system").check(force=True)
    assert page.evaluate(paper) == light


def shown(page: Page, view: str) -> None:
    """Lets a view be full of what it can show."""
    page.evaluate("view => location.hash = `#/${view}`", view)
    if view == "playground":
        predict(page, "greet Kepler")
    elif view == "completion":
        page.get_by_label("Model").select_option("functions")
        expect(page.locator(".editor-bar")).to_be_visible()
        expect(page.locator(".side h2").first).to_be_visible()
    else:
        expect(page.locator(".group").first.or_(page.locator(".map-list p"))).to_be_visible()


NAMELESS = """() => [...document.querySelectorAll("button, a, input, select, textarea, canvas")]
  .filter((control) => control.checkVisibility())
  .filter((control) => !(control.getAttribute("aria-label")
    || [...(control.labels ?? [])].map((label) => label.textContent.trim()).join("")
    || control.textContent.trim()))
  .map((control) => control.outerHTML)"""

TEXTS = """() => {
  const background = (element) => {
    const own = getComputedStyle(element).backgroundColor;
    return own.endsWith(", 0)") ? background(element.parentElement) : own;
  };
  const isText = (element) => [...element.childNodes]
    .some((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim());
  return [...document.querySelectorAll("body *")]
    .filter((element) => isText(element) && element.checkVisibility() && !element.disabled)
    .filter((element) => !element.closest(".visually-hidden, .buffer, option"))
    .map((element) => [element.className, getComputedStyle(element).color, background(element)]);
}"""


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """How well a text can be read: from 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def assert_legible(page: Page) -> None:
    """Every control has a name, and every text enough contrast."""
    assert page.evaluate(NAMELESS) == []
    texts = page.evaluate(TEXTS)
    assert len(texts) > 10
    faint = [text for text in texts if contrast(*text[1:]) < LEAST_CONTRAST]
    assert faint == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_control_has_a_name_and_every_text_can_be_read(open_page: Open, scheme: str) -> None:
    page = open_page(color_scheme=scheme)
    for view in VIEWS:
        shown(page, view)
        assert_legible(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("text", [MAPPED, WITHOUT_VALUE, UNKNOWN])
def test_marks_can_be_read_and_fit_a_narrow_screen(open_page: Open, scheme: str, text: str) -> None:
    page = open_page(model="shop", color_scheme=scheme, viewport=NARROW)
    predict(page, text)
    assert_legible(page)
    assert page.evaluate(WIDER) == []


WIDER = """() => [...document.querySelectorAll("html, main *")]
  .filter((element) => element.checkVisibility() && !element.closest(".editor"))
  .filter((element) => element.getBoundingClientRect().right > innerWidth + 1)
  .map((element) => element.outerHTML.slice(0, 80))"""


def test_nothing_is_wider_than_a_narrow_screen(open_page: Open) -> None:
    page = open_page(viewport=NARROW)
    for view in VIEWS:
        shown(page, view)
        assert page.evaluate(WIDER) == []
        width = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(width) <= 0
