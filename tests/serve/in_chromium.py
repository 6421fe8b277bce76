"""What do tests of the page share? A browser, windows of two sizes, and how to ask."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"}
DESK: dict[str, Any] = {"viewport": {"width": 1100, "height": 800}, "color_scheme": "light"}
DONE = r"#status:text-matches('^(Best )?[0-9]+ results? · [0-9.]+ m?s$')"  # all is read


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as api:
        chromium = api.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@contextmanager
def open_page(
    browser: Any, address: str, options: dict[str, Any], key: str | None = None
) -> Iterator[Any]:
    """Open the page and enter its key; an unexpected error of its scripts fails the test."""
    context = browser.new_context(**options)
    errors: list[str] = []
    made = context.new_page()
    made.on("pageerror", lambda error: errors.append(str(error)))
    made.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
    made.expected_errors = []
    made.goto(address)
    if key:
        made.expected_errors.append("401")  # the first request
        made.fill("#key", key)
        made.keyboard.press("Enter")
    made.wait_for_selector("#about:not(:empty)")
    yield made
    made.unroute_all(behavior="ignoreErrors")  # a request may still be on its way
    context.close()
    assert [e for e in errors if not any(expected in e for expected in made.expected_errors)] == []


def ask(page: Any, query: str) -> None:
    page.fill("#query", query)
    page.keyboard.press("Enter")


def replace_answers(
    page: Any, *changes: dict[str, Any], done: bool = True, times: int | None = None
) -> None:
    """Replace a stream's answers by variants of the final one, one per item of `changes`.

    times: of how many streams; None for all.
    """

    def changed(route: Any) -> None:
        events = route.fetch().text().replace("\r\n", "\n").split("\n\n")
        last = json.loads(events[-3].partition("data:")[2])
        events = [f"event: answer\ndata: {json.dumps({**last, **change})}" for change in changes]
        events += ["event: done\ndata: {}"] * done
        body = "".join(f"{event}\n\n" for event in events)
        route.fulfill(status=200, content_type="text/event-stream", body=body)

    page.route("**/search/stream", changed, times=times)
