"""Can a search on the page be narrowed, and each restriction be taken back?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode

import pytest
from in_chromium import DESK, DONE, PHONE, ask, browser, open_page
from served import running

from conftest import write_bert

__all__ = ["browser"]
pytestmark = pytest.mark.slow
FILES = {
    "guides/paddling/canoe.txt": "2024-03-01",
    "guides/paddling/kayak.md": "2024-07-02",
    "guides/trees.txt": "2025-01-10",
    "letters/ann.txt": "2025-01-11",
    "top.txt": (datetime.now(UTC) - timedelta(days=2)).date().isoformat(),
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("filters")
    for name, day in FILES.items():
        path = directory / "notes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{Path(name).stem} and birch bark by the river")
        seconds = datetime.fromisoformat(f"{day}T12:00:00").timestamp()
        os.utime(path, (seconds, seconds))
    bert = write_bert(directory / "bert", labels=1)
    with running("notes", "--model", bert, cwd=directory) as (port, _):
        yield f"http://127.0.0.1:{port}/"


@pytest.fixture(params=[DESK, PHONE], ids=["desk", "phone"])
def page(browser: Any, address: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    with open_page(browser, address, request.param) as made:
        yield made


def wait_for(page: Any, *names: str) -> None:
    """Wait until exactly the files with these names are found."""
    page.wait_for_function(
        """names => [...document.querySelectorAll('#hits .source span:first-child')]
           .map(place => place.textContent.split(' › ').at(-1)).sort().join() === names""",
        arg=",".join(sorted(names)),
    )
    page.wait_for_selector(DONE)


def chips(page: Any) -> list[str]:
    return [text.removesuffix(" ×") for text in page.locator("#chips .chip").all_inner_texts()]


def wait_for_labels(page: Any, *expected: str) -> None:
    """Wait until these can be chosen in the open menu, which may be drawn after the hits."""
    page.wait_for_function(
        """expected => [...document.querySelectorAll('.panel label')]
           .filter(label => label.checkVisibility()).map(label => label.innerText.trim())
           .join() === expected""",
        arg=",".join(expected),
    )


def test_a_folder_is_taken_with_all_that_is_in_it(page: Any) -> None:
    """One of its subfolders can be taken instead; menu and focus stay as they were."""
    ask(page, "birch bark")
    page.click("summary:text-is('Folder')")
    wait_for_labels(page, "guides 3", "letters 1")
    page.click("button[aria-label='Folders in guides']")
    page.get_by_label("paddling 2").focus()
    page.keyboard.press("Space")
    wait_for(page, "canoe.txt", "kayak.md")
    assert page.evaluate("document.activeElement.dataset.key") == "guides/paddling/*"
    page.wait_for_selector("[data-key='guides/*']:indeterminate")
    page.get_by_label("letters 1").check()
    wait_for(page, "ann.txt", "canoe.txt", "kayak.md")
    assert chips(page) == ["Folder: guides/paddling", "Folder: letters"]
    page.get_by_label("guides 3").check()
    wait_for(page, "ann.txt", "canoe.txt", "kayak.md", "trees.txt")
    assert chips(page) == ["Folder: guides", "Folder: letters"]  # in the place of its subfolder
    page.wait_for_selector("[data-key='guides/paddling/*']:checked:disabled")
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    page.keyboard.press("Escape")
    assert page.locator("details[open]").count() == 0
    assert page.evaluate("document.activeElement.textContent") == "Folder"


def test_the_start_page_tells_of_operators(page: Any) -> None:
    """Those that fit what is searched, in a line that opens."""
    page.click("#syntax summary")
    shown = page.locator("#syntax dt:visible").all_inner_texts()
    assert shown[0] == '"top speed"'
    assert "after:2024-05, before:2024" in shown
    page.evaluate(
        "import('/page/welcome.js').then(m => m.welcome({name: '', examples: [], "
        "keywords: ['type'], documents: 0, changed: 0, unread_fields: []}, ''))"
    )
    page.wait_for_selector("#syntax dt:has-text('before')", state="hidden")
    assert page.is_visible("#syntax dt:has-text('type')")


def test_several_values_of_a_field(page: Any) -> None:
    """They are alternatives, and the others stay on offer with their numbers."""
    ask(page, "birch bark")
    page.click("summary:text-is('Type')")
    page.get_by_label("markdown 1").check()
    wait_for(page, "kayak.md")
    wait_for_labels(page, "text 4", "markdown 1")
    page.get_by_label("text 4").check()
    wait_for(page, *(Path(name).name for name in FILES))
    assert "filter=type=markdown|text" in unquote(page.evaluate("location.hash"))


def test_menus_do_not_need_the_search_to_go_on(page: Any) -> None:
    """They are asked for once a query: stopping, or other weights, must not end that."""
    waiting: list[Any] = []
    page.route("**/facets?*", lambda route: waiting.append(route))
    ask(page, "birch bark")
    page.wait_for_selector(DONE)
    page.click("#details")
    page.click("#reset")
    page.wait_for_selector(DONE)
    assert len(waiting) == 1
    waiting[0].continue_()
    page.wait_for_selector("summary:text-is('Type')")


def test_compared_rankings_have_menus_and_chips(page: Any) -> None:
    """Those of their own query, which the other view need not have shown before."""
    page.goto(page.url.split("#")[0] + "#q=birch+-kayak&view=compare")
    page.wait_for_selector("#compare .title")
    page.wait_for_selector("#chips .chip:has-text('kayak')")
    page.click("summary:text-is('Folder')")
    wait_for_labels(page, "guides 2", "letters 1")
    page.get_by_label("letters 1").check()
    page.wait_for_selector("#chips .chip:has-text('letters')")
    page.wait_for_function(
        "() => [...document.querySelectorAll('#compare .lists > div')]"
        ".every(column => column.querySelectorAll('.title').length === 1)"
    )


def test_compared_rankings_are_not_sorted(page: Any) -> None:
    """They have no order by date, which would be in one column only; the results still have it."""
    page.goto(page.url.split("#")[0] + "#q=birch&sort=-modified")
    page.wait_for_selector("#menus [aria-label=Order]")
    page.wait_for_selector(DONE)
    sent: list[Any] = []
    page.on("request", lambda request: sent.append(request.post_data_json))
    page.click("#details")
    page.click("button[data-view=compare]")
    page.wait_for_selector("#status:has-text('rankings compared')")
    page.wait_for_selector("#menus [aria-label=Order]", state="detached")
    asked = [one for one in sent if one and "by" in one]
    assert {one["by"] for one in asked} >= {"bert", "first_stage"}
    assert not any("sort" in one for one in asked)
    page.click("button[data-view=results]")
    page.wait_for_selector("#menus [aria-label=Order]")


def test_a_value_replaces_a_negated_filter(page: Any) -> None:
    """It would be negated as well otherwise."""
    page.goto(page.url.split("#")[0] + "#q=birch+bark&filter=type%3D!markdown")
    page.wait_for_selector(DONE)
    assert chips(page) == ["Type: not markdown"]
    page.click("summary:text-is('Type')")
    page.get_by_label("markdown").first.check()
    page.wait_for_function("() => location.hash.endsWith('filter=type%3Dmarkdown')")
    assert chips(page) == ["Type: markdown"]


def test_a_quick_second_choice_keeps_the_first(page: Any) -> None:
    """It may be made in menus, or of chips, that still show what was before."""
    ask(page, "birch bark")
    page.click("summary:text-is('Type')")
    page.route("**/facets?*", lambda route: None)  # never answered: the menus stay as they are
    page.get_by_label("markdown 1").check()
    wait_for(page, "kayak.md")
    page.get_by_label("text 4").check()
    wait_for(page, *(Path(name).name for name in FILES))
    assert chips(page) == ["Type: markdown", "Type: text"]
    page.evaluate("document.querySelectorAll('#chips .chip').forEach(chip => chip.click())")
    page.wait_for_function("() => !location.hash.includes('filter')")


def test_addresses_that_others_write(page: Any) -> None:
    """What is no filter in them is left out, and a blank may be %20 when the query is repeated."""
    start = page.url.split("#")[0]
    odd = "filter=%3Db&filter=abc&filter=type%3D&filter=type%3Dmarkdown"
    page.goto(f"{start}#q=birch%20bark&{odd}")
    wait_for(page, "kayak.md")
    assert chips(page) == ["Type: markdown"]
    page.goto(f"{start}#q=birch%20bark")
    wait_for(page, *(Path(name).name for name in FILES))
    with page.expect_request("**/search/stream"):
        page.click("#search-form button")


def test_menus_stay_in_their_places(page: Any) -> None:
    """Menus that divide nothing any more stay, too.

    The page says how many documents are counted.
    """
    ask(page, "birch bark")
    page.wait_for_selector("summary:text-is('Type')")
    names = page.locator(".menu summary").all_inner_texts()
    page.click("summary:text-is('Folder')")
    assert "among the 100 best matches" in page.inner_text(".panel .note:visible")
    page.get_by_label("letters 1").check()
    wait_for(page, "ann.txt")
    assert page.locator(".menu summary").all_inner_texts() == names
    page.click("summary:text-is('Type')")
    wait_for_labels(page, "text", "markdown")  # not counted, since all are alike
    page.get_by_label("markdown", exact=True).check()
    page.wait_for_selector("#notice:has-text('with these filters')")
    assert page.locator(".menu summary").all_inner_texts() == names
    assert chips(page) == ["Folder: letters", "Type: markdown"]


def test_filters_in_the_query_are_told_if_nothing_meets_them(page: Any) -> None:
    """Other words would not help."""
    for query, told in (
        ("birch type:pdf", "with these filters"),
        ("birch -bark", "different words"),
    ):
        page.goto(f"{page.url.split('#')[0]}#{urlencode({'q': query})}")
        page.wait_for_selector(f"#notice:has-text('{told}')")


def test_dates_are_chosen_by_period_year_and_range(page: Any) -> None:
    """A range may lack an end; its ends may be given in either order."""
    ask(page, "birch bark")
    page.click("summary:text-is('Date')")
    page.click(".periods button:text-is('Past week')")
    wait_for(page, "top.txt")
    page.click(".periods button:has-text('2024')")
    wait_for(page, "canoe.txt", "kayak.md")
    assert chips(page) == ["Date: 2024"]
    page.fill(".panel:visible [data-key=from]", "2025-01-10")
    page.fill(".panel:visible [data-key=to]", "2024-07-02")
    page.click(".range button")
    wait_for(page, "kayak.md", "trees.txt")
    assert chips(page) == ["Date: Jul 2, 2024 to Jan 10, 2025"]
    page.fill(".panel:visible [data-key=from]", "")
    page.click(".range button")
    wait_for(page, "canoe.txt", "kayak.md", "trees.txt")
    assert chips(page) == ["Date: until Jan 10, 2025"]
    page.click(".periods button:text-is('Any time')")
    wait_for(page, *(Path(name).name for name in FILES))
    assert chips(page) == []


def test_dates_that_are_typed_stay(page: Any) -> None:
    """The menus are drawn again when documents have been counted, which may be meanwhile."""
    held: list[Any] = []

    def count() -> None:
        while not held:
            page.wait_for_timeout(20)
        held.pop().continue_()

    page.route("**/facets?*", lambda route: held.append(route))
    ask(page, "birch bark")
    count()
    page.click("summary:text-is('Date')")
    page.click(".periods button:has-text('2024')")
    wait_for(page, "canoe.txt", "kayak.md")
    page.fill(".panel:visible [data-key=from]", "2024-07-02")
    count()
    page.wait_for_selector(".periods [aria-pressed=true]:has-text('2024')")
    assert page.input_value(".panel:visible [data-key=from]") == "2024-07-02"
    page.click(".range button")
    wait_for(page, "kayak.md", "trees.txt", "ann.txt", "top.txt")
    count()
    page.click(".periods button:text-is('Any time')")
    wait_for(page, *(Path(name).name for name in FILES))
    count()
    page.wait_for_selector(".periods [aria-pressed=true]:text-is('Any time')")
    assert page.input_value(".panel:visible [data-key=from]") == ""


def test_dates_are_changed_before_the_menus_know_them(page: Any) -> None:
    """An end that is taken away stays away, whether the menus are drawn again before or after."""
    held: list[Any] = []
    ask(page, "birch bark")
    page.click("summary:text-is('Date')")
    page.wait_for_selector(".periods button:has-text('2024')")
    page.route("**/facets?*", lambda route: held.append(route))
    page.fill(".panel:visible [data-key=from]", "2024-07-02")
    page.fill(".panel:visible [data-key=to]", "2025-01-10")
    page.click(".range button")
    wait_for(page, "kayak.md", "trees.txt")
    assert page.input_value(".panel:visible [data-key=from]") == "2024-07-02"
    page.fill(".panel:visible [data-key=from]", "")
    before = page.query_selector("details[open]")
    while not held:
        page.wait_for_timeout(20)
    held.pop().continue_()
    page.wait_for_function("menu => !menu.isConnected", arg=before)
    assert page.input_value(".panel:visible [data-key=from]") == ""
    page.click(".range button")
    wait_for(page, "canoe.txt", "kayak.md", "trees.txt")
    assert chips(page) == ["Date: until Jan 10, 2025"]


def test_each_chip_is_removed_on_its_own(page: Any) -> None:
    """No mouse is needed: the next chip gets the focus, and after the last one the query."""
    page.goto(page.url.partition("#")[0] + "#q=x&filter=type=text|markdown")
    ask(page, 'river "birch bark" -iron after:2024 path:guides/*')
    page.wait_for_selector("#chips .chip")
    assert chips(page) == [
        "with “birch bark”",
        "without “iron”",
        "Date: since 2024",
        "Folder: guides",
    ]
    page.click("summary:text-is('Type')")
    page.get_by_label("text 2").check()
    page.wait_for_selector("#chips .chip:has-text('Type: text')")
    page.keyboard.press("Escape")
    page.focus("#chips .chip:has-text('iron')")
    for query, focus in [
        ('river "birch bark" after:2024 path:guides/*', "Remove: Date: since 2024"),
        ('river "birch bark" path:guides/*', "Remove: Folder: guides"),
        ('river "birch bark"', "Remove: Type: text"),
        ('river "birch bark"', "Remove: with “birch bark”"),
    ]:
        page.keyboard.press("Enter")
        page.wait_for_selector(f"[aria-label='{focus}']:focus")
        assert page.input_value("#query") == query
    page.keyboard.press("Enter")
    page.wait_for_selector("#query:focus")
    assert page.input_value("#query") == "river"
    assert chips(page) == []


def test_menus_close_when_something_else_is_used(page: Any) -> None:
    """Only one is open at a time."""
    ask(page, "birch bark")
    page.click("summary:text-is('Folder')")
    page.click("summary:text-is('Type')")
    assert page.locator("details.menu[open] summary").all_inner_texts() == ["Type"]
    page.focus("#query")
    assert page.locator("details.menu[open]").count() == 0
    page.click("summary:text-is('Type')")
    page.mouse.click(5, 600)
    assert page.locator("details.menu[open]").count() == 0
