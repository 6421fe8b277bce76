"""Can a person judge with the keyboard alone, and go on later? It is driven in Chromium."""

from __future__ import annotations

import signal
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
    """Press a key, and wait until the next document is shown."""
    place = page.inner_text("#place")
    page.keyboard.press(key)
    page.wait_for_function(
        "place => document.getElementById('place').textContent !== place || "
        "document.getElementById('judging').hidden",
        arg=place,
    )


def test_a_person_judges_by_keys_and_goes_on_later(browser: Any, folder: Path) -> None:
    judgments = folder / "notes.bench" / "judgments.qrels"
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
        assert [line.split()[3] for line in judgments.read_text().splitlines()] == ["3", "0"]
        page.keyboard.press("ArrowLeft")
        page.wait_for_selector("#grades button[aria-pressed='true']")
        assert page.inner_text("#grades button[aria-pressed='true']").startswith("0")
        page.keyboard.press("1")
        page.wait_for_function("() => document.getElementById('error').hidden")
        judge(page, "s")
        assert page.inner_text("#question") == "birch river"
    grades = [line.split()[3] for line in judgments.read_text().splitlines()]
    assert grades == ["3", "1"]
    with judging(folder) as address, opened(browser, address, PHONE) as page:
        assert page.inner_text("#question") == "iron bridge"
        assert page.inner_text("#done").startswith("2 of ")
        for _ in range(20):
            if page.is_hidden("#judging"):
                break
            judge(page, "2")
        assert "All documents are judged" in page.inner_text("#finished")
        page.goto(f"{address}report")
        assert "2 questions judged" in page.inner_text("body")


def test_quick_keys_are_for_different_documents(browser: Any, folder: Path) -> None:
    with (
        judging(folder, "--queries", "mine.tsv") as address,
        opened(browser, address, DESK) as page,
    ):
        page.evaluate(
            """() => { for (const key of "321")
                document.dispatchEvent(new KeyboardEvent("keydown", { key })); }"""
        )
        page.wait_for_selector("#done:text-matches('^3 of')")
        page.wait_for_load_state("networkidle")
        judged = (folder / "notes.bench" / "judgments.qrels").read_text().splitlines()
    assert sorted(line.split()[3] for line in judged) == ["1", "2", "3"]


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
