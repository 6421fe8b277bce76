"""Are documents of strangers rendered harmlessly, within limits, and is their text found again?"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from subprocess import Popen
from threading import Event, Semaphore
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

from birchbark.collection.files.folder_state import FolderSource
from birchbark.collection.parsing.markup import page_markup, page_text
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.upkeep.folder_index import build_folder_index
from birchbark.process_limits import start_limited
from birchbark.records import Document
from birchbark.serve import render_document
from birchbark.serve.admission import BusyError
from birchbark.serve.app import application
from birchbark.serve.original_files import OriginalFiles
from birchbark.serve.render_document import MOST_WAITING, DocumentRenderer, Rendered
from birchbark.serve.sanitised_html import ATTRIBUTES, TAGS, markdown_markup, sanitised
from birchbark.serve.service import QUICK_THREADS, RENDERING_THREADS, Service
from birchbark.serve.shown_text import WHITE, aligned_runs, shown_text
from conftest import WordScorer

HOSTILE = """
<script>alert(1)</script><style>* { display: none }</style><link rel=stylesheet href=//e.org/x>
<img src=x onerror=alert(1)><img src=https://e.org/pixel.png><svg onload=alert(1)><a>x</a></svg>
<form action=/documents method=post><input name=q><button formaction=javascript:alert(1)>Go</button>
</form><a href="javascript:alert(1)">one</a> <a href="java&#10;script:alert(1)">two</a>
<a href="data:text/html,<script>alert(1)</script>">three</a> <a href=vbscript:x>four</a>
<a href=" &#1;javascript:alert(1)">five</a> <p onclick=alert(1) style="position:fixed">six</p>
<iframe src=//e.org></iframe><object data=x></object><embed src=x><base href=//e.org/>
<meta http-equiv=refresh content="0;url=//e.org"><div id=reader class=segment>seven</div>
<math><mtext><table><mglyph><style><img src=x onerror=alert(1)></style></table></mtext></math>
<noscript><p title="</noscript><img src=x onerror=alert(1)>"></noscript><video src=x></video>
<a href="//e.org/x">eight</a> <a href="\\\\e.org">nine</a> <a href='"><img src=x>'>ten</a>
"""


class Tags(HTMLParser):
    """Collects the tags of markup, with their attributes."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def assert_harmless(markup: str) -> None:
    """Only known tags and attributes, and links to web sites, places and files of the folder."""
    for tag, attributes in Tags(markup).found:
        assert tag in TAGS
        known = {*ATTRIBUTES["*"], *ATTRIBUTES.get(tag, ()), *({"rel"} if tag == "a" else ())}
        assert attributes.keys() <= known, (tag, attributes)
        link = attributes.get("href")
        assert link is None or re.match(r"https?:|mailto:|#text-|#link-\d+\Z", link), link
        assert (attributes.get("id") or "text-").startswith("text-")


@pytest.mark.parametrize("render", [markdown_markup, page_markup, lambda text: text])
def test_nothing_hostile_survives(render: Any) -> None:
    """No script, style, image, form, event handler, nor a link that runs or loads anything."""
    markup, links = sanitised(render(HOSTILE), "sub/page.html")
    assert_harmless(markup)
    assert "six" in markup
    assert "//e.org" not in markup
    assert not any(link.startswith((".", "/")) for link in links)


PIECES = ["<", ">", '"', "'", "=", " ", "\n", "&lt;", "`", "*", "[x](", ")", "javascript:", "a"]
TAG_PIECES = ["<img src=x onerror=alert(1)>", "<a href=", "<script>", "</script>", "<svg>", "<p>"]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES + TAG_PIECES)).map("".join))
def test_any_markup_becomes_harmless(text: str) -> None:
    for markup in (text, markdown_markup(text)):
        assert_harmless(sanitised(markup, "a.md")[0])


def test_markdown_keeps_its_structure_and_links() -> None:
    """Headings can be linked to; images are their descriptions; unknown bare tags stay as text."""
    text = "## A *b*!\n\n[w](https://e.org) [s](#a-b) [f](../b%20c.md#x) ![pic](p.png) <name>\n\n"
    markup, links = sanitised(markdown_markup(text + "|a|\n|-:|\n|1|"), "sub/a.md")
    assert '<h2 id="text-a-b">A <em>b</em>!</h2>' in markup
    for link in ("https://e.org", "#text-a-b", f"#link-{links.index('b c.md')}"):
        assert f'href="{link}"' in markup
    assert "<i>pic</i> &lt;name&gt;" in markup
    assert '<td align="right">1</td>' in markup


def test_links_out_of_the_folder_are_text() -> None:
    markup, links = sanitised('<a href="../../x.md">a</a><a href="/y">b</a>', "sub/a.md")
    assert links == []
    assert "href" not in markup
    assert "href" not in sanitised('<a href="x.md">a</a>', None)[0]


def shown_parts(shown: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield what each run has in both texts."""
    bare, wanted = WHITE.sub("", shown), WHITE.sub("", text)
    for at, start, length in aligned_runs(shown, text):
        yield bare[at : at + length], wanted[start : start + length]


def test_text_is_aligned_where_markup_divides_words() -> None:
    text = "See **bold**face and [the guide](the/guide.html) for 这是**重要**的 tabs."
    shown = shown_text(sanitised(markdown_markup(text), "a.md")[0])
    parts = list(shown_parts(shown, text))
    assert all(ours == theirs for ours, theirs in parts)
    assert "".join(ours for ours, _ in parts) == "Seeboldfaceandtheguidefor这是重要的tabs"


WORDS = st.lists(st.sampled_from("birch bark canoe the a 树 𝔸𝔹 . , ** \n".split(" "))).map(" ".join)


@given(WORDS, WORDS)
def test_runs_are_equal_and_in_order(shown: str, text: str) -> None:
    """They are so in both texts, without overlap; equal texts are one run."""
    assert all(ours == theirs for ours, theirs in shown_parts(shown, text))
    runs = aligned_runs(shown, text)
    for (at, start, length), after in pairwise(runs):
        assert at + length <= after[0]
        assert start + length <= after[1]
    if bare := WHITE.sub("", text):
        assert aligned_runs(text.replace(" ", "\n"), text) == [(0, 0, len(bare))]


PAGE = (
    """<title>Boats</title><body><nav><a href=x>Home</a></nav><header>Top</header>
<main><h1>Boats</h1><p>A birch <b>canoe</b> &amp; a <a href="barge.html">barge</a>&nbsp;float.</p>
<button>Copy</button><ruby>漢<rt>kan</rt></ruby><script>x</script>"""
    + "<p>It rows.</p>" * 20
    + ("<footer>Imprint</footer></main><p>Other</p>")
)


def test_the_markup_of_a_page_has_the_text_of_its_document() -> None:
    """It has no navigation, no buttons and nothing from beside the main element."""
    markup = sanitised(page_markup(PAGE), "boats.html")[0]
    assert WHITE.sub("", shown_text(markup)) == WHITE.sub("", page_text(PAGE)[1])
    assert "Home" not in markup
    assert "Other" not in markup


@pytest.fixture
def service(tmp_path: Path) -> Iterator[TestClient]:
    files = {
        "boats.html": PAGE,
        "barge.html": "<p>A barge.</p>",
        "sub/a.md": "# Title\n\nSee [boats](../boats.html) and [none](none.md).",
        "long.md": "word " * 50_000,
        "plain.txt": "<b>A birch.</b>",
        "in.mbox": "From a Tue\nSubject: s\nContent-Type: text/html; name=x.html\n"
        "Content-Disposition: attachment; filename=x.html\n\n<p>A reed.</p>",
    }
    for name, text in files.items():
        (tmp_path / "files" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "files" / name).write_text(text)
    build_folder_index(FolderSource((str(tmp_path / "files"),)), tmp_path / "index")
    searcher = Searcher(tmp_path / "index", Ranker(WordScorer()))
    with TestClient(application(Service(searcher), "secret")) as client:
        client.headers["authorization"] = "Bearer secret"
        yield client


def test_documents_are_rendered(service: TestClient) -> None:
    """Links lead to documents of the index; text files and attached pages are not rendered."""
    page = service.get("/rendered/boats.html").json()
    assert "<b>canoe</b>" in page["markup"]
    assert page["links"] == ["barge.html"]
    assert len(page["runs"]) == 1
    markdown = service.get("/rendered/sub/a.md").json()
    assert markdown["links"] == ["boats.html", None]
    assert service.get("/rendered/plain.txt").json()["markup"] == ""
    long = service.get("/rendered/long.md").json()
    assert (long["markup"], long["reason"]) == ("", "it has more than 200,000 characters")
    hits = service.post("/search", json={"query": "reed"}).json()["hits"]
    attached = service.get(f"/rendered/{hits[0]['doc_id']}").json()
    assert hits[0]["doc_id"].endswith("x.html")
    assert (attached["markup"], attached["reason"]) == ("", "")


def test_rendering_needs_the_key_and_a_document(service: TestClient) -> None:
    assert service.get("/rendered/nothing").status_code == 404
    assert service.get("/rendered/../index/folder.json").status_code == 404
    del service.headers["authorization"]
    assert service.get("/rendered/boats.html").status_code == 401


def test_time_and_memory_are_bounded(service: TestClient, tmp_path: Path) -> None:
    """The page would need many gigabytes, since each paragraph repeats the open elements."""
    bomb = "".join(f"<p><b title={n}>x" for n in range(8_000))
    (tmp_path / "files" / "barge.html").write_text(bomb)
    start = time.monotonic()
    found = service.get("/rendered/barge.html").json()
    assert (found["markup"], found["reason"]) == ("", "it cannot be rendered within 5 s")
    assert time.monotonic() - start < 2 * MOST_WAITING


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Popen[bytes]]:
    """The processes that render."""
    processes: list[Popen[bytes]] = []

    def start(*arguments: Any) -> Popen[bytes]:
        processes.append(start_limited(*arguments))
        return processes[-1]

    monkeypatch.setattr(render_document, "start_limited", start)
    return processes


TEXT = Document("a", {"type": "markdown", "text": "# A canoe"})


def test_rendering_ends_when_nobody_waits(tmp_path: Path, started: list[Popen[bytes]]) -> None:
    """It does not begin then, or it ends if it has begun."""
    renderer = DocumentRenderer(OriginalFiles(tmp_path), lambda _: True)
    for looks in (1, 2):
        seen = []

        def leave(looks: int = looks, seen: list[int] = seen) -> None:
            seen.append(1)
            if len(seen) == looks:
                raise BusyError("the client has left")

        with pytest.raises(BusyError):
            renderer.render(TEXT, leave)
        assert len(started) == looks - 1
    assert started[0].returncode == -signal.SIGKILL


def test_a_failure_is_remembered(
    tmp_path: Path, started: list[Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A document that cannot be rendered costs its time once; another one is tried."""
    monkeypatch.setattr(render_document, "MODULE", "json.tool")  # fails
    renderer = DocumentRenderer(OriginalFiles(tmp_path), lambda _: True)
    for _ in range(3):
        assert "cannot be rendered" in renderer.render(TEXT, lambda: None).reason
    assert len(started) == 1
    other = replace(TEXT, fields={**TEXT.fields, "text": "# Another"})
    assert "cannot be rendered" in renderer.render(other, lambda: None).reason
    assert len(started) == 2


def test_searches_do_not_wait_for_renderings(
    service: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that render have threads of their own."""
    begun, go_on = Semaphore(0), Event()

    def wait(*_: Any) -> Rendered:
        begun.release()
        assert go_on.wait(20)
        return Rendered()

    monkeypatch.setattr(DocumentRenderer, "render", wait)
    with ThreadPoolExecutor(QUICK_THREADS + 1) as pool:
        waiting = [
            pool.submit(service.get, "/rendered/boats.html") for _ in range(QUICK_THREADS + 1)
        ]
        for _ in range(RENDERING_THREADS):
            assert begun.acquire(timeout=20)
        assert service.get("/facets", params={"query": "canoe"}).status_code == 200
        assert not any(answer.done() for answer in waiting)
        go_on.set()
        assert [answer.result().status_code for answer in waiting] == [200] * len(waiting)


def test_a_long_document_is_given_as_a_whole(tmp_path: Path) -> None:
    """Its text is longer than what a pipe holds, and is read after the process has started."""
    text = "A canoe of bark.\n\n" * 11_000
    long = replace(TEXT, fields={**TEXT.fields, "text": text})
    seen: list[int] = []
    renderer = DocumentRenderer(OriginalFiles(tmp_path), lambda _: True)
    rendered = renderer.render(long, lambda: seen.append(1))
    assert rendered.markup.count("<p") == 11_000
    assert len(seen) > 1
