"""Can a person judge with the keyboard alone, and go on later? It is driven in Chromium."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from in_chromium import DESK, PHONE, browser
from served import running

from birchbark.index.build_index import build_index
from birchbark.records import Document
from conftest import DOCUMENTS, write_bert

HOSTILE = Document("x", {"text": "An iron <img src=x onerror='document.title=1'> bridge. " * 40})
__all__ = ["browser"]
pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    build_index([*DOCUMENTS, HOSTILE], tmp_path / "notes.index")
    write_bert(tmp_path / "model", labels=1)
    (tmp_path / "mine.tsv").write_text("q1\tiron bridge\nq2\tbirch river\n")
    return tmp_path


@contextmanager
def judging(folder: Path, *options: str) -> Iterator[str]:
    """Yield the address of the page; at the end, interrupt the command, which must report."""
    words = ("notes.index", "--model", "model", "--judge", *options)
    with running(*words, cwd=folder, verb=("bench",)) as (port, process):
        yield f"http://127.0.0.1:{port}/"
        process.send_signal(signal.SIGINT)
        assert process.stderr
        assert "report: " in process.stderr.read()
        assert process.wait() == 0


@contextmanager
def opened(browser: Any, address: str, options: dict[str, Any]) -> Iterator[Any]:
    """Open the page at its first document; an error of its scripts fails the test."""
    context, errors = browser.new_context(**options), list[str]()
    page = context.new_page()
    page.expected = ""
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
    page.goto(address)
    page.wait_for_selector("#judging:not([hidden]), #finished:not([hidden])")
    yield page
    context.close()
    assert [error for error in errors if not (page.expected and page.expected in error)] == []


def judge(page: Any, key: str) -> None:
    """Press a key when a document is shown, and wait until the next one has its place."""
    place = page.inner_text("#place")
    page.wait_for_selector("#contents:not(:text('Opening…'))")
    page.keyboard.press(key)
    page.wait_for_function(
        "place => document.getElementById('place').textContent !== place || "
        "document.getElementById('judging').hidden",
        arg=place,
    )


def wait_for_grades(folder: Path, *expected: str) -> None:
    """Wait until these grades are on disk, in this order: the page does not wait for them."""
    file, end, found = folder / "notes.bench" / "judgments.qrels", time.monotonic() + 10, [""]
    while time.monotonic() < end and found != list(expected):
        lines = file.read_text().splitlines() if file.exists() else []
        found = [line.split()[3] for line in lines]
        time.sleep(0.05)
    assert found == list(expected)


def test_a_person_judges_by_keys_and_goes_on_later(browser: Any, folder: Path) -> None:
    with (
        judging(folder, "--queries", "mine.tsv") as address,
        opened(browser, address, DESK) as page,
    ):
        assert page.inner_text("#question") == "iron bridge"
        page.wait_for_selector("#contents mark")
        assert page.title() == "Judge"
        assert "BM25" not in page.content()
        judge(page, "3")
        judge(page, "0")
        wait_for_grades(folder, "3", "0")
        page.keyboard.press("ArrowLeft")
        page.wait_for_selector("#grades button[aria-pressed='true']")
        assert page.inner_text("#grades button[aria-pressed='true']").startswith("0")
        judge(page, "1")
        wait_for_grades(folder, "3", "1")
        judge(page, "s")
        assert page.inner_text("#question") == "birch river"
    with judging(folder) as address, opened(browser, address, PHONE) as page:
        assert page.inner_text("#question") == "iron bridge"
        assert page.inner_text("#done").startswith("2 of ")
        for _ in range(20):
            if page.is_hidden("#judging"):
                break
            judge(page, "2")
        assert "All documents are judged" in page.inner_text("#finished")
        left = int(page.inner_text("#done").split()[2]) - 2
        wait_for_grades(folder, "3", "1", *["2"] * left)
        page.goto(f"{address}report")
        assert "2 questions judged" in page.inner_text("body")


def test_a_key_counts_once_a_document_is_shown(browser: Any, folder: Path) -> None:
    """Further keys, before the next document is there, are not for it."""
    with (
        judging(folder, "--queries", "mine.tsv") as address,
        opened(browser, address, DESK) as page,
    ):
        page.wait_for_selector("#contents mark")
        page.evaluate(
            """() => { for (const key of "321")
                document.dispatchEvent(new KeyboardEvent("keydown", { key })); }"""
        )
        page.wait_for_selector("#contents mark")
        assert page.inner_text("#done").startswith("1 of ")
        wait_for_grades(folder, "3")


def test_a_document_that_is_gone_cannot_be_judged(browser: Any, folder: Path) -> None:
    with (
        judging(folder, "--queries", "mine.tsv") as address,
        opened(browser, address, DESK) as page,
    ):
        page.wait_for_selector("#contents mark")
        page.expected = "404"
        gone = {"status": 404, "json": {"message": "no such document"}}
        page.route("**/documents/*", lambda route: route.fulfill(**gone))
        page.keyboard.press("ArrowRight")
        page.wait_for_selector("#error:text-matches('no such document')")
        assert "run the command again" in page.inner_text("#contents")
        page.keyboard.press("3")
        page.unroute("**/documents/*")
        page.keyboard.press("ArrowLeft")
        page.wait_for_selector("#contents mark")
        assert page.is_hidden("#error")
        assert page.inner_text("#done").startswith("0 of ")


def test_a_question_is_asked_in_other_words(browser: Any, folder: Path) -> None:
    """The documents that are found for it are judged instead; keys are letters meanwhile."""
    with (
        judging(folder, "--queries", "mine.tsv") as address,
        opened(browser, address, DESK) as page,
    ):
        page.keyboard.press("r")
        assert page.input_value("#words") == "iron bridge"
        page.keyboard.type("steam 3s")
        assert page.inner_text("#done").startswith("0 of ")
        page.keyboard.press("Escape")
        assert page.inner_text("#question") == "iron bridge"
        page.keyboard.press("r")
        page.keyboard.type("steam engine")
        page.keyboard.press("Enter")
        page.wait_for_selector("#question:text-is('steam engine')")
        page.wait_for_selector("#contents mark")
        judge(page, "3")
        page.wait_for_load_state("networkidle")
    assert (
        (folder / "notes.bench" / "questions.tsv").read_text().startswith("own-1\tsteam engine\n")
    )
    assert (folder / "notes.bench" / "judgments.qrels").read_text().startswith("own-1 0 ")


def test_who_has_gone_on_stays_at_another_question(browser: Any, folder: Path) -> None:
    """The documents of the earlier question in its new words stand before it."""
    with (
        judging(folder, "--queries", "mine.tsv") as address,
        opened(browser, address, DESK) as page,
    ):
        waiting = list[Any]()
        page.route("**/questions", lambda route: waiting.append(route))
        page.keyboard.press("r")
        page.keyboard.type("steam engine")
        page.keyboard.press("Enter")
        page.wait_for_selector("#rewording button:text-is('Ranking…')")
        page.click("[data-skip]")
        page.wait_for_selector("#question:text-is('birch river')")
        waiting[0].continue_()
        page.wait_for_selector("#rewording button:text-is('Ask')", state="attached")
        assert page.inner_text("#question") == "birch river"
        assert page.inner_text("#place").startswith("Question 2 of 2, document 1 of")
        page.keyboard.press("ArrowLeft")
        page.wait_for_selector("#question:text-is('steam engine')")


def test_a_grade_that_is_not_stored_is_told(browser: Any, folder: Path) -> None:
    with (
        judging(folder, "--queries", "mine.tsv") as address,
        opened(browser, address, DESK) as page,
    ):
        page.route(
            "**/judgments", lambda route: route.fulfill(status=507, json={"message": "full"})
        )
        page.expected = "507"
        page.keyboard.press("3")
        page.wait_for_selector("#error:text-matches('full')")
        assert page.inner_text("#place").startswith("Question 1 of 2, document 1 of")
        assert page.inner_text("#done").startswith("0 of ")


def test_the_page_fits_on_a_phone(browser: Any, folder: Path) -> None:
    with (
        judging(folder, "--queries", "mine.tsv") as address,
        opened(browser, address, PHONE) as page,
    ):
        page.wait_for_selector("#contents mark")
        width = page.evaluate("() => document.documentElement.scrollWidth")
        assert width <= PHONE["viewport"]["width"]
        page.click("#grades button[value='2']")
        page.wait_for_selector("#done:text-matches('^1 of')")
