"""Are the results what a person sees first, with and without a mouse, a screen, or much room?"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from in_chromium import DESK, DONE, ask, browser, open_page, replace_answers
from served import running

from conftest import write_bert

__all__ = ["browser"]
pytestmark = pytest.mark.slow
TEXTS = {
    "guides/bark.txt": "How bark is taken. A birch gives its bark in June. Cut it by the river.",
    "guides/river.txt": "The river is wide. A birch stands by the river.",
    "letters/ann.txt": "Dear Ann, the birch has fallen into the river.",
}
SIZES = [(1300, 900), (768, 1000), (390, 844)]
CONTRASTS = Path(__file__).with_name("contrasts.js").read_text()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("results")
    for name, text in TEXTS.items():
        path = directory / "notes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (1_700_000_000, 1_700_000_000))
    bert = write_bert(directory / "bert", labels=1)
    with running("notes", "--model", bert, "--max-concurrent", "1", cwd=directory) as (port, _):
        address = f"http://127.0.0.1:{port}/"
        while httpx.get(address + "about").json()["reading"] is not None:  # a line of the page
            time.sleep(0.05)
        yield address


@pytest.fixture
def desk(browser: Any, address: str) -> Iterator[Any]:
    with open_page(browser, address, DESK) as made:
        yield made


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_the_first_result_is_near_the_top(
    browser: Any, address: str, size: tuple[int, int], theme: Any
) -> None:
    """It is below a row of filters and a line.

    Nothing is wider than the window, and all text is legible.
    """
    width, height = size
    viewport = {"width": width, "height": height}
    with open_page(browser, address, {"viewport": viewport, "color_scheme": theme}) as page:
        ask(page, "birch river")
        page.wait_for_selector(DONE)
        page.wait_for_selector("#menus:not([hidden])")
        assert page.locator("#hits li").first.bounding_box()["y"] < 145
        for selector in (None, "#details", "summary:text-is('Folder')"):
            if selector:
                page.click(selector)
            assert page.evaluate("document.documentElement.scrollWidth") == width
            contrasts = page.evaluate(CONTRASTS)
            assert any(marked for _, marked, _ in contrasts)
            faint = [c for c in contrasts if c[0] < (7 if c[1] else 4.5)]
            assert faint == []


def test_a_likely_answer_stands_above_its_document(desk: Any) -> None:
    """Only the best hit's, and only if it is probable; then it is not repeated below."""
    for probability, shown in ((0.95, 1), (0.4, 0), (None, 0)):
        ask(desk, "birch river")
        desk.wait_for_selector(DONE)
        hits = desk.evaluate("[...document.querySelectorAll('#hits li')].map(one => one.hit)")
        likely = [{**hit, "probability": probability} for hit in hits]
        replace_answers(desk, {"hits": likely})
        ask(desk, f"birch river {probability}")
        desk.wait_for_selector(DONE)
        desk.unroute("**/search/stream")
        assert desk.locator("#hits .answer").count() == shown
        assert desk.locator("#hits p.best").count() == len(hits) - shown
        if shown:
            answer = desk.locator("#hits li:first-child .answer")
            title = desk.locator("#hits li:first-child .title")
            assert answer.bounding_box()["y"] < title.bounding_box()["y"]
            best = hits[0]["segments"][0]
            start, end = best["sentence"] or (0, len(best["text"]))
            assert best["text"][start:end] in answer.inner_text()
            assert answer.evaluate("node => parseFloat(getComputedStyle(node).fontSize)") > 20
    # The best hit's score need not be the highest, as of a duo model's; sorted, none is the best.
    replace_answers(desk, {"hits": [{**hits[0], "score": 0.01, "probability": 0.95}, *hits[1:]]})
    ask(desk, "birch")
    desk.wait_for_selector(DONE)
    assert desk.locator("#hits .answer").count() == 1
    desk.get_by_label("Order").select_option("Newest first")
    desk.wait_for_selector(DONE)
    assert desk.locator("#hits .answer").count() == 0


def test_all_works_without_a_mouse(desk: Any) -> None:
    """Tab reaches the filters, the details and the results in this order, and the focus is seen."""
    ask(desk, "birch river")
    desk.wait_for_selector(DONE)
    desk.wait_for_selector("#menus:not([hidden])")
    reached = []
    for _ in range(7):
        desk.keyboard.press("Tab")
        reached.append(
            desk.evaluate(
                "() => [document.activeElement.textContent.trim().split('\\n')[0], "
                "getComputedStyle(document.activeElement).outlineStyle]"
            )
        )
    assert [style for _, style in reached] == ["solid"] * 7
    names = [name for name, _ in reached]
    assert names[:3] == ["Search", "Folder", "Date"]
    assert names[4] == "Details"
    assert names[5] == desk.text_content("#hits .title")
    desk.focus("summary:text-is('Date')")
    desk.keyboard.press("Enter")
    desk.keyboard.press("ArrowDown")  # does not leave the menu
    assert desk.locator("details.menu[open]").count() == 1
    desk.keyboard.press("Escape")
    desk.keyboard.press("ArrowDown")
    assert desk.evaluate("document.activeElement.matches('#hits li:first-child .title')")
    desk.keyboard.press("ArrowUp")
    assert desk.evaluate("document.activeElement.id") == "query"
    for event in ("{ shiftKey: true }", "{ isComposing: true }"):  # selects text, or a character
        key = f"new KeyboardEvent('keydown', {{ key: 'ArrowDown', bubbles: true, ...{event} }})"
        desk.evaluate(f"document.activeElement.dispatchEvent({key})")
        assert desk.evaluate("document.activeElement.id") == "query"
    for key, place in (("ArrowDown", 3), ("ArrowUp", 1)):  # from within the second result
        desk.focus("#hits li:nth-child(2) .why summary")
        desk.keyboard.press(key)
        assert desk.evaluate(
            f"document.activeElement.matches('#hits li:nth-child({place}) .title')"
        )


def test_the_link_to_a_file_keeps_the_focus(desk: Any) -> None:
    """While answers become better, also if its address changes with the evidence."""
    ask(desk, "birch river")
    desk.wait_for_selector(DONE)
    desk.click("#details")
    desk.focus("#hits li:first-child .source a")
    before = desk.evaluate("document.activeElement.textContent")
    desk.eval_on_selector("#a", "e => { e.value = 1; e.dispatchEvent(new Event('input')); }")
    desk.wait_for_selector("#hits li:first-child .parts p:has-text('match 100')", state="attached")
    assert desk.evaluate("document.activeElement.textContent") == before
    desk.evaluate(
        """async () => {
          const { showSource } = await import("/page/source.js");
          const line = document.activeElement.closest("p"), { hit } = line.closest("li");
          const page = { ...hit, source: { ...hit.source, type: "html" } };
          showSource(line, page, { files: true });
        }"""
    )
    assert ":~:text=" in desk.evaluate("document.activeElement.href")


def test_what_a_screen_reader_reads(desk: Any) -> None:
    """The roles and names, in order, down to the first result."""
    ask(desk, "birch river -iron")
    desk.wait_for_selector(DONE)
    desk.wait_for_selector("#menus:not([hidden])")
    first = desk.text_content("#hits .title")
    tree = re.sub(r"[\d.]+ m?s\b", "TIME", desk.locator("body").aria_snapshot())
    lines = [line.strip() for line in tree.replace(f'"{first}"', "FIRST").splitlines()]
    assert lines[: lines.index("- heading FIRST [level=3]:") + 1] == EXPECTED.splitlines()
    assert sum("[level=3]" in line for line in lines) == len(TEXTS)
    assert any("(relevance ." in line for line in lines)


EXPECTED = """\
- banner:
- heading "Birchbark, start" [level=1]:
- link "Birchbark, start":
- /url: /
- text: Birchbark
- search:
- text: Query
- searchbox "Query": birch river -iron
- button "Search"
- main:
- group "Narrow and sort":
- group: Folder
- group: Date
- combobox "Order":
- option "Best first" [selected]
- option "Newest first"
- option "Oldest first"
- group "This search is narrowed to":
- 'button "Remove: without “iron”"': without “iron”
- button "Take literally"
- paragraph:
- text: 3 results · TIME
- button "Details"
- status: 3 results, TIME.
- region "Results":
- list:
- listitem:
- text: "1"
- heading FIRST [level=3]:
"""


def test_one_person_is_never_told_to_come_back(desk: Any, address: str) -> None:
    """Searches that follow each other cancel those before; with one slot, the last one is read."""
    statuses = []
    desk.on("response", lambda response: statuses.append(response.status))
    desk.evaluate(
        """() => {
          window.lines = [];
          const seen = () => window.lines.push(document.getElementById('line').textContent);
          const changes = { childList: true, subtree: true };
          new MutationObserver(seen).observe(document.getElementById('line'), changes);
        }"""
    )
    for number in range(12):
        ask(desk, f"birch river bark {number}")
        desk.wait_for_timeout(30)
    desk.wait_for_selector(DONE)
    assert desk.is_hidden("#error")
    assert set(statuses) == {200}
    lines = desk.evaluate("window.lines")
    assert not any("Waiting" in line or "not read" in line for line in lines)
    assert desk.locator("#hits li.unscored").count() == 0


def test_marks_of_markdown_are_not_shown(desk: Any) -> None:
    """Words are emphasised where they are; texts of other types stay as they are."""
    text = "## A 🌲 `birch` in [the forest](../a.md)\n```sh\nls __init__ [1] (2)\n```"
    drawn = """async ([type, text]) => {
      const { snippet } = await import("/page/passages.js"), start = text.indexOf("forest") - 1;
      const shown = { text, marks: [[start, start + 6]], before: "`a` ", after: " ## b" };
      const [line] = snippet({ source: { type }, snippet: shown });
      return [line.textContent, line.querySelector("strong").textContent];
    }"""
    shown, strong = desk.evaluate(drawn, ["markdown", text])
    assert " ".join(shown.split()) == "a A 🌲 birch in the forest ls __init__ [1] (2) ## b"
    assert strong == "forest"
    assert desk.evaluate(drawn, ["text", text])[0] == f"`a` {text} ## b "


@pytest.mark.parametrize("before", ["樹" * 900, "a b" + "x" * 900, "moss " * 200, "x" * 900 + " "])
def test_a_long_snippet_shows_its_match(desk: Any, before: str) -> None:
    """Also where a text has few blanks, as Chinese and minified JSON; otherwise words are whole."""
    drawn = """([text, start]) => import("/page/passages.js").then(({ snippet }) => {
      const shown = { text, marks: [[start, start + 5]], before: "", after: "" };
      const [line] = snippet({ source: {}, snippet: shown });
      return [line.textContent, line.querySelector("strong")?.textContent];
    })"""
    after = before[::-1].replace("ssom", "moss")
    shown, strong = desk.evaluate(drawn, [f"{before}birch{after}", len(before)])
    assert strong == "birch"
    assert len(shown) == 404 or set(shown.split()) == {"…", "moss", "birch"}
    assert len(shown.partition("birch")[0]) <= 122


def test_results_are_saved_as_files(desk: Any) -> None:
    """Each form has the results that are shown."""
    ask(desk, "birch river")
    desk.wait_for_selector(DONE)
    titles = [link.text_content() for link in desk.locator("#hits .title").all()]
    desk.click("#details")
    for kind, ending in (
        ("text/csv", ".csv"),
        ("text/markdown", ".md"),
        ("application/json", ".json"),
    ):
        with desk.expect_download() as saved:
            desk.click(f"#save button[data-type='{kind}']")
        assert saved.value.suggested_filename == f"results{ending}"
        text = saved.value.path().read_text()
        assert len(titles) == 3
        assert all(name in text for name in TEXTS)
