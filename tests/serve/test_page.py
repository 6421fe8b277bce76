"""Does the page do what people expect of it? Driven in Chromium, where both are installed.

`make test-page` installs Playwright; Chromium is the system's.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from served import running

from birchbark.index.build import build_index
from birchbark.records import Document
from conftest import DOCUMENTS, write_bert

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
HOSTILE = Document(
    "<img src=x onerror=alert(1)>",
    {
        "title": "<b>zebra</b> <script>document.title = 'broken'</script>",
        "text": "A zebra’s <i>stripes</i>. <img src=x onerror='document.title=1'> 𝔸𝔹 end.",
    },
)
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    place = tmp_path_factory.mktemp("page")
    build_index([*DOCUMENTS, HOSTILE], place / "index")
    bert = write_bert(place / "bert", labels=1)
    embedding = write_bert(place / "embedding")
    (place / "key").write_text("secret")
    words = ("index", "--model", bert, "--beside", embedding, "--key-file", "key")
    with running(*words, cwd=place) as (port, _):
        yield f"http://127.0.0.1:{port}/"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as begun:
        opened = begun.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """A page whose service has been given its key; mistakes of its scripts fail the test."""
    context = browser.new_context(viewport={"width": 360, "height": 740}, color_scheme="dark")
    mistakes: list[str] = []
    made = context.new_page()
    made.on("pageerror", lambda error: mistakes.append(str(error)))
    made.on("console", lambda said: mistakes.append(said.text) if said.type == "error" else None)
    made.meant = ["401"]  # the one that asks for the key; tests add what they mean
    made.goto(address)
    made.fill("#key", "secret")
    made.keyboard.press("Enter")
    made.wait_for_selector("#about:not(:empty)")
    yield made
    context.close()
    assert [one for one in mistakes if not any(status in one for status in made.meant)] == []


def ask(page: Any, query: str) -> None:
    page.fill("#query", query)
    page.keyboard.press("Enter")


def test_hits_stream_in_with_evidence(page: Any) -> None:
    """Marked in context, with the parts of the score; the page does not grow wider than a phone."""
    ask(page, "birch river")
    page.wait_for_selector("#hits mark")
    page.wait_for_selector("#status:has-text('enough')")
    assert page.locator("#hits li").count() == 3
    assert "= first stage" in page.text_content("#hits .parts >> nth=0")
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_sliders_rank_anew(page: Any) -> None:
    """At a = 1 the scores are the first stage's alone; another button brings all back."""
    ask(page, "birch river")
    page.wait_for_selector("#hits mark")
    page.click("#weights summary")
    before = page.text_content("#hits .parts >> nth=0")
    slide = "e => { e.value = 1; e.dispatchEvent(new Event('input')); }"
    page.eval_on_selector("#a", slide)
    page.wait_for_selector("#hits li:first-child .parts span:text-is('1.000')")
    page.click("#usual")
    page.wait_for_selector(f"#hits li:first-child .parts span:text-is('{before}')")


def test_a_document_is_read_by_keyboard_alone(page: Any) -> None:
    """Down to a hit, open it, on to a sentence, look at its attention, and back."""
    page.keyboard.type("j / birch river k")  # the query has the focus; no letter is a command
    page.keyboard.press("Enter")
    page.wait_for_selector("#hits mark")
    page.keyboard.press("ArrowDown")
    opened = page.evaluate("document.activeElement.textContent")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open] .segment")
    assert page.text_content("#reader-title") == opened
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#attention:not([hidden]) .lines line", state="attached")
    assert page.locator("#attention .map button").count() > 1
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0
    assert page.evaluate("document.activeElement.textContent") == opened


def test_rankings_stand_side_by_side(page: Any) -> None:
    """Three of them, with lines between; the address holds the view, and going back leaves it."""
    ask(page, "birch river")
    page.wait_for_selector("#hits mark")
    page.click("button[data-view=beside]")
    page.wait_for_selector("#beside .lists > div:nth-child(3)")
    assert page.locator("#beside path").count() == 6
    assert "view=beside" in page.url
    page.go_back()
    page.wait_for_selector("#results:not([hidden])")


def test_texts_stay_texts(page: Any) -> None:
    """In ids, titles, texts and queries; an offset counts a character as one, whichever it is."""
    ask(page, "zebra")
    page.wait_for_selector("#hits mark")
    assert page.text_content("#hits .title").startswith("<b>zebra</b> <script>")
    assert page.locator("#hits b, #hits i:not(.bar i), #hits img, #hits script").count() == 0
    page.click("#hits .title")
    page.wait_for_selector("dialog[open] .segment")
    assert page.locator("#contents .segment").last.text_content().startswith("𝔸𝔹 end.")
    assert page.locator("#contents img, #contents i").count() == 0
    page.keyboard.press("Escape")
    page.wait_for_function("document.activeElement.matches('.title')")
    assert page.title() == "zebra – Birchbark"
    ask(page, "<em>qqq</em>")
    page.wait_for_selector("#status:has-text('No document')")
    assert page.title().startswith("<em>qqq")


def test_what_is_wrong_is_told(page: Any, address: str) -> None:
    """A query that the model cannot read; then another that it can."""
    ask(page, "birch " * 300)
    page.wait_for_selector("#trouble:not([hidden])")
    assert "query is too long" in page.text_content("#trouble")
    ask(page, "birch")
    page.wait_for_selector("#hits mark")
    assert page.locator("#trouble:not([hidden])").count() == 0


def test_nothing_moves_from_under_a_finger(page: Any) -> None:
    """Hits that come while one is pressed wait for the click; who has the focus keeps it."""
    ask(page, "birch river")
    page.wait_for_selector("#status:has-text('enough')")
    order = "[...document.querySelectorAll('#hits li')].map(one => one.dataset.id)"
    before = page.evaluate(order)
    draw = """async () => {
      const { showHits } = await import("/page/hits.js");
      const hits = [...document.querySelectorAll("#hits li")].map(one => one.hit).reverse();
      showHits(document.getElementById("hits"), { hits }, new Map(), () => {});
    }"""
    page.hover("#hits .title >> nth=0")
    page.mouse.down()
    page.evaluate(draw)
    assert page.evaluate(order) == before
    page.mouse.up()
    page.wait_for_selector("dialog[open]")
    assert page.evaluate(order) == before[::-1]
    page.keyboard.press("Escape")
    page.focus("#hits .title >> nth=2")
    focused = page.evaluate("document.activeElement.closest('li').dataset.id")
    page.evaluate(draw)
    assert page.evaluate(order) == before
    assert page.evaluate("document.activeElement.closest('li').dataset.id") == focused


def test_a_service_that_was_busy_at_first_is_asked_again(page: Any, address: str) -> None:
    """What the page must know of it is not lost with the first answer."""
    refused = []

    def once(route: Any) -> None:
        if refused:
            route.continue_()
        else:
            refused.append(True)
            route.fulfill(status=503, content_type="application/json", body='{"message": "busy"}')

    page.meant.append("503")
    page.route("**/about", once)
    page.goto(address + "#")
    page.reload()
    page.wait_for_selector("#trouble:has-text('busy')")
    ask(page, "birch river")
    page.wait_for_selector("#hits mark")
    assert page.locator("#trouble").is_hidden()
    page.click("#weights summary")
    page.eval_on_selector("#a", "e => { e.value = 1; e.dispatchEvent(new Event('input')); }")
    page.wait_for_selector("#hits li:first-child .parts span:text-is('1.000')")
