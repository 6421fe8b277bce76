"""Does the reader show documents as people know them, with evidence in the right places?

It is driven in Chromium, if that is installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode

import matplotlib.pyplot as plt
import pytest
from in_chromium import DESK, DONE, ask, browser, open_page
from matplotlib.backends.backend_pdf import PdfPages
from served import running
from test_sanitised_html import HOSTILE

from birchbark.collection.files.folder_state import FolderSource
from birchbark.pipeline.upkeep.folder_index import build_folder_index
from conftest import write_bert

__all__ = ["browser"]
MANUAL = (
    """# Canoes

A **birch** canoe rides the [river](sub/barge.html). See the [end](#the-end), [moss](moss.md)
and [a site](https://example.org/).

| boat | bark |
|------|------|
| canoe | a *birch* tree |

## The end

"""
    + "Moss grows on stones. " * 200
)
BARGE = "<title>Barge</title><nav>Home</nav><p>An iron <i>barge</i> on the canal.</p>"
SLABS = "".join(f"<p>Slab {number} lies there.</p>" for number in range(300))
MAIL = """From: Ann <ann@example.org>
To: Bob <bob@example.org>
Subject: Reeds
Date: Tue, 24 Nov 2026 10:00:00 +0000

Reeds grow by the pond at https://example.org/pond?a=1.

> Where do reeds grow?
"""
COMMENT = "A heron fishes in the lake.\n\n<!-- A pelican fishes in the bay. -->\n"
HOSTILE_TITLE = "<img src=x onerror=alert(1)><script>alert(1)</script>"
PAGES = ["An oak stands on page one.", "A willow stands on page two."]
# The letters and digits of each marked segment, by rank.
MARKED = """
() => {
  const texts = {};
  for (const one of document.querySelectorAll("#contents .segment"))
    texts[one.dataset.rank] = (texts[one.dataset.rank] ?? "") + one.textContent;
  return Object.fromEntries(Object.entries(texts).map(([rank, text]) => [rank,
    text.replace(/ \\(relevance [^)]*\\) /g, "").replace(/[^\\p{L}\\p{N}]/gu, "")]));
}
"""
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("reader")
    files = {
        "canoes.md": MANUAL,
        "sub/barge.html": BARGE,
        "quarry.html": f"{SLABS}<p>A well-known <b>quarry</b>, of slate, is old.</p>{SLABS}",
        "reeds.eml": MAIL,
        "heron.md": COMMENT,
        "long.md": "A sloth sleeps. " * 20_000,
        "hostile.html": f"<h1>{HOSTILE_TITLE}</h1>A zebra. {HOSTILE}",
        "hostile.eml": f"From: {HOSTILE_TITLE}\nSubject: {HOSTILE_TITLE}\n\nA zebra. {HOSTILE}",
        "hostile.md": f"# {HOSTILE_TITLE}\n\nA zebra.\n\n{HOSTILE}\n\n[x](javascript:alert(1))",
    }
    for name, text in files.items():
        path = directory / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    write_pdf(directory / "files" / "willow.pdf")
    build_folder_index(FolderSource((str(directory / "files"),)), directory / "index")
    bert = write_bert(directory / "bert", labels=1)
    with running("index", "--model", bert, "--set", "first_stage.match=or", cwd=directory) as (
        port,
        _,
    ):
        yield f"http://127.0.0.1:{port}/"


def write_pdf(path: Path) -> None:
    with PdfPages(path) as pdf:
        for text in PAGES:
            figure = plt.figure()
            figure.text(0.1, 0.5, text)
            pdf.savefig(figure)
            plt.close(figure)


@contextmanager
def reader(browser: Any, address: str, doc_id: str, query: str) -> Iterator[Any]:
    """Open a document for a query; a message of the browser or a request elsewhere fails."""
    context = browser.new_context(**DESK)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda line: wrong.append(line.text))
    page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda one: None if one.url.startswith(address) else wrong.append(one.url))
    page.goto(f"{address}#{urlencode({'q': query, 'doc': doc_id})}")
    page.wait_for_selector("#reader-note:has-text('highest score')")
    yield page
    context.close()
    assert wrong == []


def without_scores(text: str) -> str:
    """Return a text without what is said of its segments to screen readers."""
    return re.sub(r" \(relevance [^)]*\) ", "", text)


def letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def test_a_manual_is_rendered_with_its_evidence(browser: Any, address: str) -> None:
    """Structure and links are kept; segments, one of them across markup, and terms are marked."""
    with reader(browser, address, "canoes.md", "birch river") as page:
        assert page.get_attribute("#contents", "class") == "rendered"
        marked = page.evaluate(MARKED)
        given = page.evaluate("fetch('/documents/canoes.md?query=birch+river').then(r => r.json())")
        ranked = sorted(given["segments"], key=lambda segment: -segment["score"])
        for rank, text in marked.items():
            start, end = ranked[int(rank)]["start"], ranked[int(rank)]["end"]
            own = given["contents"][max(len("Canoes\n"), start) : end]
            rest = iter(letters(own))
            assert all(letter in rest for letter in text), own  # in order
            assert text == letters(own) or {"(", ")", "/"} & set(own)  # targets are not shown
        assert len(marked) > 200
        assert page.inner_text("#contents em .term") == "birch"
        assert page.locator("#contents td").count() == 2
        links = page.locator("#contents a")
        hrefs = [one.get_attribute("href") for one in links.all()]
        assert hrefs[2:] == [None, "https://example.org/"]  # moss.md is no document
        assert links.nth(3).get_attribute("target") == "_blank"
        before = page.evaluate("location.hash")
        links.nth(1).click()  # a place in the document
        page.wait_for_function("() => document.getElementById('reader').scrollTop > 100")
        assert page.evaluate("location.hash") == before
        page.click("#view-choice button[value=plain]")
        assert "A **birch** canoe" in page.inner_text("#contents")
        assert page.locator("#contents .segment").count() > len(marked)  # with the title
        page.click("#view-choice button[value=formatted]")
        links.nth(0).click()
        page.wait_for_selector("#reader-title:text-is('Barge')")


def test_a_mail_has_a_head(browser: Any, address: str) -> None:
    with reader(browser, address, "reeds.eml", "reeds pond") as page:
        head = without_scores(page.text_content("#contents dl"))
        for text in ("Ann <ann@example.org>", "Bob <bob@example.org>", "2026", "Reeds"):
            assert text in head
        quoted = without_scores(page.text_content("#contents .quoted"))
        assert quoted == "> Where do reeds grow?"
        link = page.locator("#contents a")
        assert link.get_attribute("href") == "https://example.org/pond?a=1"
        assert any("reedsgrow" in text for text in page.evaluate(MARKED).values())


def test_a_pdf_has_pages_that_open_the_file(browser: Any, address: str) -> None:
    """A page's link opens that page, and the file's link opens the page of the best segment."""
    with reader(browser, address, "willow.pdf", "willow") as page:
        pages = page.locator("#contents section")
        assert pages.locator("h3").all_text_contents() == ["Page 1", "Page 2"]
        assert letters(PAGES[1]) in page.evaluate(MARKED).values()
        link = pages.nth(1).locator("a")
        assert link.get_attribute("href") == "/files/willow.pdf#page=2"
        best = page.locator("#contents .segment[data-rank='0']")
        number = best.locator("xpath=ancestor::section/h3").inner_text().split()[1]
        href = page.get_attribute("#reader-source a", "href")
        assert href == f"/files/willow.pdf#page={number}"


def test_a_web_page_opens_at_its_evidence(browser: Any, address: str) -> None:
    """Also where the sentence has a hyphen and a comma, which have meanings in such a link."""
    with reader(browser, address, "quarry.html", "quarry slate") as page:
        best = letters(page.evaluate(MARKED)["0"])
        href = page.get_attribute("#reader-source a", "href")
        assert href.startswith("/files/quarry.html#:~:text=")
        words = unquote(href.partition("text=")[2])
        assert "-" not in href.partition("text=")[2]
        assert letters(words) in best
        with page.context.expect_page() as opening:
            page.click("#reader-source a")
        opened = opening.value
        opened.wait_for_load_state()
        found = opened.get_by_text(words.split(",")[0], exact=False).first
        assert found.bounding_box()["y"] < DESK["viewport"]["height"]


def test_evidence_that_is_not_shown_opens_the_plain_text(browser: Any, address: str) -> None:
    """A comment in Markdown is not shown; the formatted document can be had, with no wrong mark."""
    with reader(browser, address, "heron.md", "pelican bay") as page:
        assert page.get_attribute("#contents", "class") == "plain"
        assert "evidence could not be found" in page.inner_text("#reader-note")
        assert any("pelican" in text for text in page.evaluate(MARKED).values())
        page.click("#view-choice button[value=formatted]")
        assert list(page.evaluate(MARKED).values()) == [letters("A heron fishes in the lake.")]


def test_a_very_long_document_is_plain_text(browser: Any, address: str) -> None:
    with reader(browser, address, "long.md", "sloth") as page:
        assert page.get_attribute("#contents", "class") == "plain"
        assert "more than 200,000 characters" in page.inner_text("#reader-note")
        assert page.is_hidden("#view-choice")
        assert page.locator("#contents .segment").count() == 256


@pytest.mark.parametrize("doc_id", ["hostile.html", "hostile.md", "hostile.eml"])
def test_nothing_runs(browser: Any, address: str, doc_id: str) -> None:
    """No script, handler, style or request of a document or its title runs; see `reader`."""
    with reader(browser, address, doc_id, "zebra") as page:
        assert page.get_attribute("#contents", "class") in ("rendered", "mail", "plain")
        for view in ("plain", "formatted"):
            if page.is_visible("#view-choice"):
                page.click(f"#view-choice button[value={view}]")
            found = (
                "#contents :is(script, style, img, svg, form, input, iframe, object, link, video)"
            )
            assert page.locator(found).count() == 0
            assert page.locator("#contents [onclick], #contents [style]:not(.segment)").count() == 0
            for link in page.locator("#contents a[href]").all():
                assert str(link.get_attribute("href")).startswith(("https:", "#"))
                link.dispatch_event("click")
        page.wait_for_timeout(200)
        assert page.locator("#reader h2 *").count() == 0
        assert page.locator("dialog[open]").count() == 1


def test_a_document_that_cannot_be_scored(browser: Any, address: str) -> None:
    """What the search has found is marked and shown all the same, and it can be tried again."""
    late = {"status": 503, "json": {"message": "time does not suffice for the document"}}
    with open_page(browser, address, DESK) as page:
        page.expected_errors.append("503")
        page.route(re.compile(r"/documents/.*query="), lambda route: route.fulfill(**late))
        unrendered = {"markup": "", "runs": [], "links": [], "reason": "it takes too long"}
        page.route("**/rendered/*", lambda route: route.fulfill(json=unrendered))
        ask(page, "stones")
        page.wait_for_selector(DONE)
        title = page.inner_text("#hits .title >> nth=0")
        page.click("#hits .title >> nth=0")
        page.wait_for_selector("#reader-again:visible")
        assert page.inner_text("#reader-note") == (
            "Only what the search found is marked: time does not suffice for the document. "
            "Shown as plain text: it takes too long."
        )
        assert page.inner_text("#reader-title") == title
        assert page.inner_text("#contents .segment.current >> nth=0")
        assert page.inner_text("#contents strong.term >> nth=0") == "stones"
        page.unroute(re.compile(r"/documents/.*query="))
        page.click("#reader-again")
        page.wait_for_selector("#reader-note:has-text('highest score')")
        assert page.is_hidden("#reader-again")


def test_a_document_that_changes_while_it_opens(browser: Any, address: str) -> None:
    """Only what is in the text that is shown is marked, and it can be tried again."""

    def longer(route: Any) -> None:
        found, more = route.fetch().json(), "Lichen. "
        moved = [
            {**one, "start": one["start"] + len(more), "end": one["end"] + len(more)}
            for one in found["segments"] or []
        ]
        text = more + found["contents"]
        route.fulfill(json={**found, "contents": text, "segments": moved or None})

    changed = "Only what the search found is marked: the document has changed meanwhile."
    for pattern, told, marked in (
        (r"/documents/.*query=", changed, [letters("".join(PAGES))]),
        (r"/documents/[^?]*$", "Nothing is marked: the document has changed meanwhile.", []),
    ):
        with open_page(browser, address, DESK) as page:
            page.route(re.compile(pattern), longer)
            ask(page, "willow type:pdf")
            page.wait_for_selector(DONE)
            page.click("#hits .title")
            page.wait_for_selector("#reader-again:visible")
            assert page.inner_text("#reader-note") == told
            assert list(page.evaluate(MARKED).values()) == marked
            page.unroute(re.compile(pattern))
            page.click("#reader-again")
            page.wait_for_selector("#reader-note:has-text('highest score')")


def test_a_title_is_that_of_the_list(browser: Any, address: str) -> None:
    """A PDF file without one has its first line, or the file's name."""
    with open_page(browser, address, DESK) as page:
        ask(page, "willow type:pdf")
        page.wait_for_selector(DONE)
        listed = page.inner_text("#hits .title")
        page.click("#hits .title")
        page.wait_for_selector("#reader-note:has-text('highest score')")
        assert page.inner_text("#reader-title") == listed
        page.reload()  # by a link, without the list
        page.wait_for_selector("#reader-note:has-text('highest score')")
        assert page.inner_text("#reader-title") == listed
