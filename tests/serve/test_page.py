"""Does the page do what people expect of it? Driven in Chromium, where both are installed.

`make test-page` installs Playwright; Chromium is the system's.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from served import running

from birchbark.index.build import build_index
from birchbark.records import Document
from birchbark.score.attention import attention
from birchbark.show.attention import attention_page
from birchbark.show.plot import Bars
from birchbark.show.table import Cell, Column, Group, Row, Style, Table
from birchbark.study.outcome import Outcome, Topic, TopicHit
from birchbark.study.recipe_file import read_recipe
from birchbark.study.report import report
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
    write_report(place / "studies" / "tiny", bert)
    words = ("index", "--model", bert, "--beside", embedding, "--key-file", "key")
    words = (*words, "--reports", "studies")
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


def write_report(folder: Path, model: Path) -> None:
    """A study's report as `birchbark study run` writes it, and a page that it leads to."""
    recipe = read_recipe(Path(__file__).parents[2] / "studies" / "birch-time.toml")
    hit = TopicHit("canoe", 1, 2, 1, ((0.9, "A birch canoe."),))
    topic = Topic("TIME", "BERT", "1", "birch", 0.5, 1.0, (hit,), "looked.html")
    plot = Bars("bars", "Bars", "place", "value", (1.0, 0.5))
    groups = (Group("TIME", (Row("BERT", (Cell(0.5),)),)),)
    table = Table("measures", "Measures", "model", (Column("AP", Style.MEASURE),), groups)
    outcome = Outcome((table,), (plot,), topics=(topic,))
    folder.mkdir(parents=True)
    (folder / "report.html").write_text(report(recipe, outcome, {}))
    seen = attention(str(model), "birch", "A birch canoe.")
    (folder / "looked.html").write_text(attention_page(seen, "bert", "birch", "A birch canoe."))


PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"}
DESK: dict[str, Any] = {"viewport": {"width": 1100, "height": 800}, "color_scheme": "light"}


@contextmanager
def opened(browser: Any, address: str, how: dict[str, Any]) -> Iterator[Any]:
    """A page whose service has been given its key; mistakes of its scripts fail the test."""
    context = browser.new_context(**how)
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


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    with opened(browser, address, PHONE) as made:
        yield made


@pytest.fixture
def desk(browser: Any, address: str) -> Iterator[Any]:
    with opened(browser, address, DESK) as made:
        yield made


def answered(page: Any, *changes: dict[str, Any], done: bool = True) -> None:
    """Have streams be answered by the service's last answer, changed so many times."""

    def changed(route: Any) -> None:
        told = route.fetch().text().replace("\r\n", "\n").split("\n\n")
        last = json.loads(told[-3].partition("data:")[2])
        events = [f"event: answer\ndata: {json.dumps({**last, **one})}" for one in changes]
        events += ["event: done\ndata: {}"] * done
        body = "".join(f"{event}\n\n" for event in events)
        route.fulfill(status=200, content_type="text/event-stream", body=body)

    page.route("**/search/stream", changed)


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


def test_sliders_and_views_are_moved_by_keyboard(page: Any) -> None:
    """To one sentence more, whose weight is then moved; and from the hits to both views."""
    ask(page, "birch river")
    page.wait_for_selector("#status:has-text('enough')")
    page.focus("#weights summary")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("End")
    page.wait_for_selector("#hits li:first-child .parts span:text-is('1.000')")
    page.keyboard.press("Home")
    page.wait_for_selector("#hits li:first-child .parts span:not(:text-is('1.000'))")
    page.keyboard.press("Tab")
    count = page.locator("#each input").count()
    page.keyboard.press("ArrowRight")
    assert page.locator("#each input").count() == count + 1
    page.focus(f"#each label:nth-child({count + 1}) input")
    page.keyboard.press("End")
    weights = page.eval_on_selector_all("#each input", "all => all.map(one => Number(one.value))")
    assert weights[-1] == 1
    with page.expect_request("**/search/stream") as sent:
        page.keyboard.press("Home")
    weights[-1] = 0
    assert json.loads(sent.value.post_data)["weights"] == weights
    page.focus("button[data-view=beside]")
    page.keyboard.press("Enter")
    page.wait_for_selector("#beside .lists > div:nth-child(3)")
    page.focus("#beside .title")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open] .segment")


def test_hits_move_from_the_first_stages_places(desk: Any) -> None:
    """Each says by how many; what is new says so; who hears the page hears it, too."""
    ask(desk, "birch river")
    desk.wait_for_selector("#status:has-text('enough')")
    hits = desk.evaluate("[...document.querySelectorAll('#hits li')].map(one => one.hit)")
    first = {"hits": [{**h, "settled": False} for h in (hits[1], hits[0])], "settled": 0}
    answered(desk, first, {"hits": hits})
    ask(desk, "birch  river")
    desk.wait_for_selector("#hits li:nth-child(3) .moved")
    texts = desk.locator("#hits li .moved .unseen").all_text_contents()
    assert texts[:2] == [f"{way} 1 from the first stage's ranking" for way in ("up", "down")]
    assert texts[2] == "not among the first stage’s best"


def test_what_was_not_read_can_be_asked_for(desk: Any) -> None:
    """Where time was up, where the service was busy, and where it ends in the middle."""
    answered(desk, {"exact": False, "settled": 1})
    ask(desk, "birch river")
    desk.wait_for_selector("#status:has-text('Time was up: 1 of 3')")
    desk.unroute("**/search/stream")
    desk.click("#status button:text-is('Read on')")
    desk.wait_for_selector("#status:has-text('enough')")
    answered(desk, {"exact": False, "settled": 0, "candidates": 0})
    ask(desk, "birch  river")
    desk.wait_for_selector("#status:has-text('The service is busy')")
    desk.unroute("**/search/stream")
    desk.click("#status button:text-is('Read them')")
    desk.wait_for_selector("#status:has-text('enough')")
    answered(desk, {"settled": 0}, done=False)
    ask(desk, "birch river")
    desk.wait_for_selector("#trouble:has-text('stopped in the middle')")
    desk.unroute("**/search/stream")
    desk.meant.append("ERR_FAILED")
    desk.route("**/search/stream", lambda route: route.abort())
    ask(desk, "birch  river")
    desk.wait_for_selector("#trouble:has-text('Is it still running?')")


def test_the_front_page_waits_for_nothing(desk: Any) -> None:
    """However long it took to learn what the service is like."""

    def slowly(route: Any) -> None:
        time.sleep(1)
        route.continue_()

    desk.route("**/about", slowly)
    desk.reload()
    desk.wait_for_selector("#about:not(:empty)")
    assert desk.text_content("#status") == desk.text_content("#said") == ""
    assert desk.locator("#progress").is_hidden()


def test_everything_that_can_be_used_has_a_name(desk: Any) -> None:
    """For those who hear the page, whatever is open; and nothing is wider than the window."""
    session = desk.context.new_cdp_session(desk)

    def nameless() -> list[str]:
        tree = session.send("Accessibility.getFullAXTree")["nodes"]
        used = (
            "button",
            "link",
            "textbox",
            "searchbox",
            "slider",
            "dialog",
            "progressbar",
        )
        roles = [(one.get("role", {}).get("value"), one) for one in tree if not one["ignored"]]
        assert desk.evaluate("document.documentElement.scrollWidth") == 1100
        return [str(one) for role, one in roles if role in used and not one["name"].get("value")]

    assert nameless() == []
    ask(desk, "birch river")
    desk.wait_for_selector("#status:has-text('enough')")
    desk.click("#weights summary")
    assert nameless() == []
    desk.click("#hits .title")
    desk.wait_for_selector("dialog[open] .segment")
    desk.click("dialog .segment >> nth=0")
    desk.wait_for_selector("#attention:not([hidden]) .lines line", state="attached")
    assert nameless() == []
    desk.keyboard.press("Escape")
    desk.click("button[data-view=beside]")
    desk.wait_for_selector("#beside .lists > div:nth-child(3)")
    assert nameless() == []


def test_reports_are_opened_by_a_password(browser: Any, address: str) -> None:
    """As a study writes them, with plots; and what the model looked at, which has a script."""
    known = {"username": "", "password": "secret"}
    with opened(browser, address, {**DESK, "http_credentials": known}) as desk:
        desk.click("#reports")
        desk.click("a:text-is('tiny')")
        desk.wait_for_selector("h1")
        assert desk.locator("svg").count() == 1
        assert desk.evaluate("getComputedStyle(document.body).maxWidth") != "none"  # its own style
        desk.click("a:has-text('looked at')")
        desk.wait_for_selector(".lines line", state="attached")
        assert desk.locator(".map button").count() > 1


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
    page.click("#contents .segment >> nth=0")
    page.wait_for_selector("#attention:not([hidden]) .lines line", state="attached")
    page.keyboard.press("Escape")
    page.wait_for_function("document.activeElement.matches('.title')")
    assert page.title() == "zebra – Birchbark"
    page.click("button[data-view=beside]")
    page.wait_for_selector("#beside .lists > div:nth-child(3)")
    assert page.text_content("#beside .title").startswith("<b>zebra</b> <script>")
    assert page.locator("#beside b, #beside img, #beside script").count() == 0
    page.click("button[data-view=results]")
    page.wait_for_selector("#hits mark")
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
