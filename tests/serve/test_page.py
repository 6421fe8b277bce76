"""Does the page behave as users expect? It is driven in Chromium, if that is installed.

`make slow` installs Playwright; Chromium is the system's.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from in_chromium import DESK, DONE, PHONE, ask, browser, open_page, replace_answers
from served import running

from birchbark.index.build_index import build_index
from birchbark.index.writer import IndexWriter
from birchbark.pipeline.stored.precompute import precompute_vectors
from birchbark.records import Document
from birchbark.score.attention import attention
from birchbark.score.load_scorer import load_scorer
from birchbark.segment.passages import Passages
from birchbark.show.attention_page import attention_page
from birchbark.show.plot import Bars
from birchbark.show.table import Cell, Column, Group, Row, Style, Table
from birchbark_studies.experiments.recipe_file import read_recipe
from birchbark_studies.outcome import Outcome, Topic, TopicHit
from birchbark_studies.recipe_folder import RECIPES
from birchbark_studies.report import render_report
from conftest import DOCUMENTS, write_bert

KEY = "secret"
HOSTILE = Document(
    "<img src=x onerror=alert(1)>",
    {
        "title": "<b>zebra</b> <script>document.title = 'broken'</script>",
        "text": "A 𝔸𝔹 zebra’s <i>stripes</i>. <img src=x onerror='document.title=1'> 𝔸𝔹 end.",
    },
)
__all__ = ["browser"]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("page")
    build_index([*DOCUMENTS, HOSTILE], directory / "index")
    bert = write_bert(directory / "bert", labels=1)
    embedding = write_bert(directory / "embedding")
    (directory / "key").write_text(KEY)
    write_report(directory / "studies" / "tiny", bert)
    words = ("index", "--model", bert, "--embedding", embedding, "--key-file", "key")
    words = (*words, "--reports", "studies", "--set", "first_stage.match=or")
    with running(*words, cwd=directory) as (port, _):
        yield f"http://127.0.0.1:{port}/"


def write_report(folder: Path, model: Path) -> None:
    """Write a study's report as `birchbark study run` does, and the attention page it links to."""
    recipe = replace(read_recipe(RECIPES / "birch-time.toml"), findings="")
    hit = TopicHit("canoe", 1, 2, 1, ((0.9, "A birch canoe."),))
    topic = Topic("TIME", "BERT", "1", "birch", 0.5, 1.0, (hit,), "looked.html")
    plot = Bars("bars", "Bars", "place", "value", (1.0, 0.5))
    groups = (Group("TIME", (Row("BERT", (Cell(0.5),)),)),)
    table = Table("measures", "Measures", "model", (Column("AP", Style.MEASURE),), groups)
    outcome = Outcome((table,), (plot,), topics=(topic,))
    folder.mkdir(parents=True)
    (folder / "report.html").write_text(render_report(recipe, outcome, {}, "cpu"))
    seen = attention(str(model), "birch", "A birch canoe.")
    (folder / "looked.html").write_text(attention_page(seen, "bert", "birch", "A birch canoe."))


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    with open_page(browser, address, PHONE, KEY) as made:
        yield made


@pytest.fixture
def desk(browser: Any, address: str) -> Iterator[Any]:
    with open_page(browser, address, DESK, KEY) as made:
        yield made


def wait_for_score(page: Any, text: str) -> None:
    """Wait until the explanation of the first hit's rank, which is closed, begins with `text`."""
    page.wait_for_function(
        "text => document.querySelector('#hits .parts p')?.textContent === text", arg=text
    )


def test_without_common_words_the_nearest_are_shown(browser: Any, tmp_path: Path) -> None:
    """They are shown if the index has vectors; the status says so."""
    build_index(DOCUMENTS, tmp_path / "index")
    embedding = write_bert(tmp_path / "embedding")
    with IndexWriter(tmp_path / "index") as writer:
        precompute_vectors(load_scorer(embedding), Passages(), "embedding").attach(writer)
    words = ("index", "--model", write_bert(tmp_path / "bert", labels=1), "--embedding", embedding)
    with running(*words, cwd=tmp_path) as (port, _):
        made = browser.new_context(**DESK).new_page()
        made.goto(f"http://127.0.0.1:{port}/")
        for query, nearest in (("zzzz qqqq", True), ("birch", False)):
            made.fill("#query", query)
            made.keyboard.press("Enter")
            made.wait_for_selector(DONE)
            shown = made.text_content("#notice")
            assert shown.startswith("None of these documents has the words of the query") == nearest
            assert made.locator("#hits li").count() == len(DOCUMENTS)
        made.context.close()


def test_the_best_hits_can_be_shown_newest_first(browser: Any, tmp_path: Path) -> None:
    """They need a date; the order is in the address, and no hit seems to have moved."""
    (tmp_path / "notes").mkdir()
    for number, name in enumerate(("old", "older", "new")):
        path = tmp_path / "notes" / f"{name}.txt"
        path.write_text(f"{name.title()} birch bark. " + "Birch. " * number)
        day = {"older": 1, "old": 2, "new": 3}[name]
        os.utime(path, (86_400 * day, 86_400 * day))
    with running("notes", "--model", write_bert(tmp_path / "b", labels=1), cwd=tmp_path) as (
        port,
        _,
    ):
        made = browser.new_context(**DESK).new_page()
        made.goto(f"http://127.0.0.1:{port}/")
        ask(made, "birch")
        order = made.get_by_label("Order")
        order.select_option("Newest first")
        made.wait_for_function("() => location.hash.includes('sort=-modified')")
        for names in (["new", "old", "older"], ["older", "old", "new"]):
            made.wait_for_function(
                """names => names.join() === [...document.querySelectorAll('#hits .title')]
                   .map(title => title.textContent.split(' ')[0].toLowerCase()).join()""",
                arg=names,
            )
            assert made.locator("#hits .moved").count() == 0
            order.select_option("Oldest first")
        made.context.close()


def test_operators_are_shown_and_can_be_taken_literally(page: Any) -> None:
    """A query's phrases and exclusions are chips; a button searches for the same text literally."""
    ask(page, 'river "birch bark" -iron')
    page.wait_for_selector("#chips .chip")
    assert page.locator("#chips .chip").all_inner_texts() == [
        "with “birch bark” ×",
        "without “iron” ×",
    ]
    page.wait_for_selector(DONE)
    assert page.locator("#hits li").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.focus("#chips button:text-is('Take literally')")
    page.keyboard.press("Enter")
    page.wait_for_selector("[aria-label='Remove: taken literally']:focus")
    page.wait_for_function("() => document.querySelectorAll('#hits li').length === 4")
    assert "literal=true" in page.evaluate("location.hash")
    assert page.locator("#chips button").all_inner_texts() == ["taken literally ×"]
    page.click("#chips button")
    page.wait_for_function("() => document.querySelectorAll('#hits li').length === 1")
    ask(page, "birch river")
    page.wait_for_function("() => document.querySelectorAll('#hits li').length === 3")
    assert page.locator("#chips button").count() == 0


def test_hits_have_evidence_in_context(page: Any) -> None:
    """Segments are marked and scores itemised; the page fits the width of a phone."""
    ask(page, "birch river")
    page.wait_for_selector("#hits mark")
    page.wait_for_selector(DONE)
    assert page.locator("#hits li").count() == 3
    assert page.locator("#hits .evidence p.best").count() == 3
    assert page.locator("#hits .parts >> nth=0").is_hidden()
    page.click("#hits .why summary >> nth=0")
    assert "= match" in page.inner_text("#hits .parts >> nth=0")
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_snippets_are_replaced_by_evidence(desk: Any) -> None:
    """Terms of the query are emphasised in both; a long sentence is cut around its first term."""
    ask(desk, "birch river")
    desk.wait_for_selector(DONE)
    hits = desk.evaluate("[...document.querySelectorAll('#hits li')].map(one => one.hit)")
    words = "moss " * 200 + "𝔸 birch " + "stone " * 200
    at = words.index("birch")
    snippet = {
        **dict.fromkeys(("before", "after"), ""),
        "start": 0,
        "end": 9,
        "marks": [[at, at + 5]],
    }
    unread = {"segments": [], "scored": False, "snippet": {**snippet, "text": words}}
    first = {"hits": [{**hit, **unread} for hit in hits], "scored": 0, "exact": False}
    replace_answers(desk, first)
    ask(desk, "birch  river")
    desk.wait_for_selector("#hits .unscored .evidence strong")
    assert desk.text_content("#hits .evidence strong >> nth=0") == "birch"
    assert len(desk.text_content("#hits .evidence >> nth=0")) < 450
    words = set(desk.text_content("#hits .evidence >> nth=0").split())
    assert words == {"moss", "𝔸", "birch", "stone", "…"}
    assert "Not read" in desk.inner_text("#hits .why >> nth=0")
    assert desk.locator("#hits mark").count() == 0
    replace_answers(desk, first, {"hits": hits})
    ask(desk, "birch river")
    desk.wait_for_selector("#hits mark strong")
    assert desk.locator("#hits li:not(:has(mark))").count() == 0


def test_the_details_tell_what_was_read(desk: Any) -> None:
    """They name the models, and note what the embedding scored and what was left out."""
    told = {"pairs": 1300, "embedded": 1210, "segments": 4512, "by_vectors": 7}
    replace_answers(
        desk, {**told, "unsplit_characters": 12_345, "models": ["m, int8 cross-encoder"]}
    )
    ask(desk, "birch river")
    desk.wait_for_selector(DONE)
    assert not desk.is_visible("#reading")
    desk.click("#details")
    assert desk.inner_text("#reading") == (
        "Read 90 of 4,512 passages with m (int8); ranked by BM25, embedding and cross-encoder."
    )
    assert desk.inner_text("#notes") == (
        "The embedding scored 1,210 passages and the stored vectors of 7 documents. Of very long "
        "documents, only the parts with most of the query’s words are read; 12,345 characters were "
        "left out."
    )
    replace_answers(desk, {"exact": False, "missing_shards": ["shard-02", "shard-05"]})
    ask(desk, "birch canoe")
    desk.wait_for_selector("#notice:has-text('shard-02 and shard-05 of the index did not answer')")
    assert "left out" not in desk.inner_text(
        "#notes"
    )  # what was not read for lack of time may follow


def test_sliders_change_the_ranking(page: Any) -> None:
    """At a = 1 scores are the first stage's; Reset restores the defaults."""
    ask(page, "birch river")
    page.wait_for_selector("#hits mark")
    page.click("#details")
    before = page.text_content("#hits .parts p >> nth=0")
    slide = "e => { e.value = 1; e.dispatchEvent(new Event('input')); }"
    page.eval_on_selector("#a", slide)
    wait_for_score(page, "Score 100 of 100 = match 100")
    page.click("#reset")
    wait_for_score(page, before)


def test_keyboard_control_of_sliders_and_views(page: Any) -> None:
    """Sliders, an added weight, the compare view and its hits work without a mouse."""
    ask(page, "birch river")
    page.wait_for_selector(DONE)
    page.focus("#details")
    page.keyboard.press("Enter")
    page.focus("#a")
    page.keyboard.press("End")
    wait_for_score(page, "Score 100 of 100 = match 100")
    page.keyboard.press("Home")
    page.wait_for_selector("#hits li:first-child .parts p:has-text('evidence')", state="attached")
    page.keyboard.press("Tab")
    count = page.locator("#segment-weights input").count()
    page.keyboard.press("ArrowRight")
    assert page.locator("#segment-weights input").count() == count + 1
    page.focus(f"#segment-weights label:nth-child({count + 1}) input")
    page.keyboard.press("End")
    weights = page.eval_on_selector_all(
        "#segment-weights input", "all => all.map(one => Number(one.value))"
    )
    assert weights[-1] == 1
    weights[-1] = 0

    def has_weights(request: Any) -> bool:
        return bool(request.post_data) and json.loads(request.post_data).get("weights") == weights

    with page.expect_request(has_weights):
        page.keyboard.press("Home")
    page.focus("button[data-view=compare]")
    page.keyboard.press("Enter")
    page.wait_for_selector("button[data-view=results]:focus")
    page.wait_for_selector("#compare path", state="attached")
    page.focus("#compare .title")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open] .segment")


def test_a_slider_sends_its_own_weight_alone(page: Any) -> None:
    """Weights that no slider can show, above 1 or between its steps, stay as the service's."""

    def with_weights(route: Any) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "weights": [2, 0.125]})

    page.route("**/about", lambda route: with_weights(route))
    page.reload()
    ask(page, "birch river")
    page.wait_for_selector(DONE)
    page.focus("#details")
    page.keyboard.press("Enter")

    def moved(slider: str, key: str) -> dict[str, Any]:
        page.focus(slider)
        with page.expect_request(lambda request: request.post_data) as sent:
            page.keyboard.press(key)
        return {n: v for n, v in json.loads(sent.value.post_data).items() if "weight" in n}

    assert moved("#a", "End") == {"first_stage_weight": 1}
    second = "#segment-weights label:nth-child(2) input"
    assert moved(second, "Home") == {"first_stage_weight": 1, "weights": [2, 0]}
    assert moved("#n", "ArrowRight")["weights"] == [2, 0, 0.25]
    assert moved("#n", "Home")["weights"] == [2]
    page.wait_for_selector(DONE)
    with page.expect_request(lambda request: request.post_data) as sent:
        page.click("#reset")
    assert "weights" not in json.loads(sent.value.post_data)


def test_no_word_is_cut(desk: Any) -> None:
    """Words stay whole where the service has cut the context, and at line breaks, too."""
    ask(desk, "birch river")
    desk.wait_for_selector(DONE)
    hit = desk.evaluate("document.querySelector('#hits li').hit")
    around = {"before": ("pebble\n" * 40)[-160:], "after": ("\nshingle" * 40)[:157]}
    segment = {**hit["segments"][0], "text": "A birch.", "marks": [], "sentence": None, **around}
    replace_answers(desk, {"hits": [{**hit, "segments": [segment]}]})
    ask(desk, "birch  river")
    desk.wait_for_selector("#hits .context:has-text('pebble')")
    shown = set(desk.text_content("#hits .evidence p").partition(" (relevance")[0].split())
    assert shown <= {"…", "pebble", "A", "birch."}
    assert set(desk.text_content("#hits .context >> nth=1").split()) == {"shingle", "…"}


def test_rank_changes_are_shown(desk: Any) -> None:
    """Each hit shows its change from the first stage, also to screen readers."""
    ask(desk, "birch river")
    desk.wait_for_selector(DONE)
    hits = desk.evaluate("[...document.querySelectorAll('#hits li')].map(one => one.hit)")
    first = {"hits": [{**h, "scored": False} for h in (hits[1], hits[0])], "scored": 0}
    replace_answers(desk, first, {"hits": [hits[2], hits[0], hits[1]]})
    ask(desk, "birch  river")
    desk.wait_for_selector("#hits li:nth-child(3) .moved")
    texts = desk.locator("#hits li .moved .visually-hidden").all_text_contents()
    assert texts == [
        "up from below place 2 by match alone",
        "down 2 from the place by match alone",
    ]


def test_incomplete_answers_are_completed(desk: Any) -> None:
    """The page searches again by itself while that reads more; the user can go on later."""
    early = {"exact": False, "pairs": 4, "embedded": 3, "planned": 9}
    replace_answers(desk, early)
    ask(desk, "birch river")  # nothing more is read the second time
    desk.wait_for_selector("#status:has-text('still reading')")
    desk.wait_for_selector("#status:has-text('not all read')")
    assert desk.text_content("#reading").startswith("Read 1 passages so far, of at most 9, with")
    assert desk.is_hidden("#stop")
    desk.unroute("**/search/stream")
    desk.click("#go-on")
    desk.wait_for_selector(DONE)
    assert desk.is_hidden("#go-on")
    replace_answers(desk, *({**early, "pairs": 4 + n} for n in range(3)), times=1)
    ask(desk, "birch  river")
    desk.wait_for_selector(DONE)


def test_reading_on_can_be_stopped(desk: Any) -> None:
    """Stop keeps what was read, and offers to go on."""
    ask(desk, "birch river")
    desk.wait_for_selector(DONE)
    read = []

    def more(route: Any) -> None:
        last = json.loads(route.fetch().text().split("\n\n")[-3].partition("data:")[2])
        read.append(1)
        answer = {**last, "exact": False, "pairs": 3 + len(read), "embedded": 3, "planned": 99}
        body = f"event: answer\ndata: {json.dumps(answer)}\n\nevent: done\ndata: {{}}\n\n"
        route.fulfill(status=200, content_type="text/event-stream", body=body)

    desk.route("**/search/stream", more)
    ask(desk, "birch  river")
    desk.wait_for_selector("#stop:not([hidden])")
    desk.click("#stop")
    desk.wait_for_selector("#go-on:focus")
    searches = len(read)
    desk.wait_for_timeout(300)
    assert len(read) <= searches + 1


def test_a_search_that_reads_nothing_keeps_the_results(desk: Any) -> None:
    """The page waits and goes on; what it shows is what was read before."""
    ask(desk, "birch river")
    desk.wait_for_selector(DONE)
    shown = desk.inner_text("#hits")
    answers = []

    def nothing_read(route: Any) -> None:
        events = route.fetch().text().replace("\r\n", "\n").split("\n\n")
        last = json.loads(events[-3].partition("data:")[2])
        unread = [{**hit, "segments": [], "scored": False} for hit in last["hits"]]
        answers.append({**last, "hits": unread, "exact": False, "scored": 0, "pairs": 0})
        body = f"event: answer\ndata: {json.dumps(answers[-1])}\n\nevent: done\ndata: {{}}\n\n"
        route.fulfill(status=200, content_type="text/event-stream", body=body)

    desk.route("**/search/stream", nothing_read)
    desk.click("#details")
    desk.eval_on_selector("#a", "e => { e.value = 1; e.dispatchEvent(new Event('input')); }")
    desk.wait_for_function("() => document.getElementById('status').textContent.includes('still')")
    while len(answers) < 3:
        desk.wait_for_timeout(100)
    assert desk.inner_text("#hits") == shown
    assert desk.is_hidden("#error")
    desk.unroute("**/search/stream")
    desk.wait_for_selector(DONE)
    wait_for_score(desk, "Score 100 of 100 = match 100")


def test_a_busy_service_is_asked_again(desk: Any) -> None:
    """The page waits for its turn, whether the search is refused before or after it began."""
    refusals = [
        {"status": 503, "json": {"message": "too many requests at once"}},
        {
            "status": 200,
            "content_type": "text/event-stream",
            "body": 'event: error\ndata: {"message": "too many requests", "status": 503}\n\n',
        },
    ]

    def refuse(route: Any) -> None:
        if refusals:
            route.fulfill(**refusals.pop())
        else:
            route.continue_()

    desk.expected_errors.append("503")
    desk.route("**/search/stream", refuse)
    ask(desk, "birch river")
    desk.wait_for_selector("#status:has-text('Waiting for other searches…')")
    desk.wait_for_selector(DONE)
    assert desk.is_hidden("#error")


def test_reading_on_waits_for_a_busy_service(desk: Any) -> None:
    """The search goes on: it is still known from where the results have moved."""
    ask(desk, "birch river")
    desk.wait_for_selector(DONE)
    hits = desk.evaluate("[...document.querySelectorAll('#hits li')].map(one => one.hit)")
    busy = {"status": 503, "json": {"message": "too many requests at once"}}
    first = {"hits": hits[::-1], "scored": 0}
    desk.expected_errors.append("503")
    replace_answers(desk, {"hits": hits}, times=1)  # the last of three
    desk.route("**/search/stream", lambda route: route.fulfill(**busy), times=1)
    replace_answers(desk, first, {"hits": hits, "exact": False}, times=1)
    ask(desk, "birch  river")
    desk.wait_for_selector("#status:has-text('Waiting for other searches…')")
    desk.wait_for_selector(DONE)
    assert desk.locator("#hits li:first-child .moved.up").count() == 1


def test_a_refused_ranking_stops_the_others(desk: Any) -> None:
    """All are asked for again; what came of an earlier stream would be drawn among them."""
    desk.evaluate(
        """() => {
          const send = window.fetch;
          window.signals = [];
          window.fetch = (path, options) => {
            if (path !== '/search/stream' || signals.length === 3) return send(path, options);
            signals.push(options.signal);
            return new Promise((resolve, reject) => {
              const refusal = new Response('{"message": "too many requests"}', { status: 503 });
              if (JSON.parse(options.body).by === 'first_stage') resolve(refusal);
              options.signal.addEventListener('abort', () => reject(options.signal.reason));
            });
          };
        }"""
    )
    desk.evaluate("location.hash = '#q=birch+river&view=compare'")
    desk.wait_for_selector("#status:has-text('3 rankings compared')")
    assert desk.evaluate("signals.map(signal => signal.aborted)") == [True] * 3


def test_a_search_waits_for_the_first_documents(desk: Any) -> None:
    """Documents that are being read are counted until there are no more, and then found."""
    about: dict[str, Any] = {"reading": 7, "documents": 0}

    def describe(route: Any) -> None:
        route.fulfill(json={**route.fetch().json(), **about})

    def refuse(route: Any) -> None:
        if about:
            route.fulfill(status=503, json={"message": "the first documents are being read"})
        else:
            route.continue_()

    desk.expected_errors.append("503")
    desk.route("**/about", describe)
    desk.route("**/search/stream", refuse)
    desk.reload()
    desk.wait_for_selector("#reading-files:has-text('7 documents so far')")
    ask(desk, "birch river")
    desk.wait_for_selector("#status:has-text('Waiting for the first documents…')")
    about.clear()
    desk.wait_for_selector(DONE)
    desk.wait_for_selector("#reading-files", state="hidden")


def test_an_open_page_hears_of_what_changes(desk: Any) -> None:
    """With each new query: what fails in the background, and files that are being read."""
    about: dict[str, Any] = {"failing": ["files are not read: no such folder"], "reading": 7}

    def describe(route: Any) -> None:
        route.fulfill(json={**route.fetch().json(), **about})

    desk.route("**/about", describe)
    assert desk.is_hidden("#failing")
    ask(desk, "birch river")
    desk.wait_for_selector("#failing:has-text('no such folder')")
    desk.wait_for_selector("#reading-files:has-text('7 documents so far')")
    about.clear()
    desk.wait_for_selector("#failing", state="hidden")
    desk.wait_for_selector("#reading-files", state="hidden")


def test_errors_can_be_retried(desk: Any) -> None:
    """A button to search again appears after a broken connection."""
    replace_answers(desk, {"scored": 0}, done=False)
    ask(desk, "birch river")
    desk.wait_for_selector("#error:has-text('ended before the answer')")
    desk.unroute("**/search/stream")
    desk.expected_errors.append("ERR_FAILED")
    desk.route("**/search/stream", lambda route: route.abort())
    ask(desk, "birch  river")
    desk.wait_for_selector("#error:has-text('Is it running?')")
    desk.unroute("**/search/stream")
    desk.click("#error button")
    desk.wait_for_selector("#hits mark")
    assert desk.locator("#error").is_hidden()


def test_a_stream_that_breaks_is_told_in_words(desk: Any) -> None:
    """As of a service that dies; the browser's own words are "network error"."""
    desk.evaluate(
        """() => {
          const send = window.fetch, error = new TypeError('network error');
          window.fetch = (path, options) => path === '/search/stream'
            ? new Response(new ReadableStream({ pull: one => one.error(error) }))
            : send(path, options);
        }"""
    )
    ask(desk, "birch river")
    desk.wait_for_selector("#error:has-text('ended before the answer')")


def test_details_of_a_search_without_hits_are_hidden(desk: Any) -> None:
    """They are open again with the next hits, as the user left them."""
    ask(desk, "birch river")
    desk.wait_for_selector(DONE)
    desk.click("#details")
    assert desk.text_content("#reading")
    desk.expected_errors.append("422")
    ask(desk, "-car")
    desk.wait_for_selector("#error:not([hidden])")
    assert desk.is_hidden("#how")
    assert desk.text_content("#reading") == ""
    ask(desk, "birch")
    desk.wait_for_selector("#how:not([hidden])")
    desk.wait_for_selector(DONE)
    ask(desk, "qqqqq")
    desk.wait_for_selector("#notice:has-text('No document')")
    assert desk.is_hidden("#how")


def test_likely_misspellings_are_offered_corrected(desk: Any) -> None:
    ask(desk, "brich rivver")
    desk.wait_for_selector("#suggestion a:text-is('birch river')")
    desk.click("#suggestion a")
    desk.wait_for_selector("#hits mark")
    assert desk.input_value("#query") == "birch river"
    assert desk.locator("#suggestion").is_hidden()


def test_the_front_page_tells_what_is_searched(desk: Any) -> None:
    """Its examples are queries."""
    assert desk.text_content("#collection") == "index"
    assert "documents, last changed on" in desk.text_content("#about")

    def with_examples(route: Any) -> None:
        route.fulfill(json={**route.fetch().json(), "examples": ["birch river", "canoe"]})

    desk.route("**/about", with_examples)
    desk.reload()
    desk.click("#examples a:text-is('birch river')")
    desk.wait_for_selector("#hits li")


def test_the_api_is_described_on_a_page(desk: Any, address: str) -> None:
    """Each request has an example that can be run; the key is still known."""
    desk.goto(address + "docs")
    desk.wait_for_selector("#routes details")
    examples = desk.locator("#routes pre").all_text_contents()
    assert f"curl '{address}search?q=return+a+parcel'" in examples
    assert all(example.startswith("curl ") for example in examples)
    assert len(examples) > 10


def test_the_front_page_shows_no_progress_when_loaded(desk: Any) -> None:
    """No message remains, however long the settings took to load."""

    def slowly(route: Any) -> None:
        time.sleep(1)
        route.continue_()

    desk.route("**/about", slowly)
    desk.reload()
    desk.wait_for_selector("#about:not(:empty)")
    assert desk.text_content("#status") == desk.text_content("#announcement") == ""
    assert desk.locator("#progress").is_hidden()


def test_controls_have_accessible_names(desk: Any) -> None:
    """This holds in every view and dialog; nothing is wider than the window."""
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
    desk.wait_for_selector(DONE)
    desk.click("#details")
    assert nameless() == []
    desk.click("#hits .title")
    desk.wait_for_selector("dialog[open] .segment")
    desk.click("#advanced summary")
    desk.wait_for_selector("#attention .lines line", state="attached")
    assert nameless() == []
    desk.keyboard.press("Escape")
    desk.click("button[data-view=compare]")
    desk.wait_for_selector("#compare .lists > div:nth-child(3)")
    assert nameless() == []


def test_reports_open_with_a_password(browser: Any, address: str) -> None:
    """A report shows its plots and style, and the attention page runs its script."""
    known = {"username": "", "password": KEY}
    with open_page(browser, address, {**DESK, "http_credentials": known}, KEY) as desk:
        desk.click("#reports a")
        desk.click("a:text-is('tiny')")
        desk.wait_for_selector("h1")
        assert desk.locator("svg").count() == 1
        assert desk.evaluate("getComputedStyle(document.body).maxWidth") != "none"  # its own style
        desk.click("a:has-text('attention')")
        desk.wait_for_selector(".lines line", state="attached")
        assert desk.locator(".map button").count() > 1


def test_keyboard_control_of_a_document(page: Any) -> None:
    """Keys lead from the query to a hit, its document, the attention of a segment, and back."""
    page.keyboard.type("j / birch river k")  # into the query field; no letter is a shortcut
    page.keyboard.press("Enter")
    page.wait_for_selector("#hits mark")
    page.keyboard.press("ArrowDown")
    opened = page.evaluate("document.activeElement.textContent")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open] .segment")
    assert page.text_content("#reader-title") == opened
    page.wait_for_selector("#advanced:not([hidden])")
    page.focus("#advanced summary")
    page.keyboard.press("Enter")
    page.wait_for_selector("#attention .lines line", state="attached")
    assert page.locator("#attention .map button").count() > 1
    page.focus("#contents .segment:last-of-type")
    page.keyboard.press("Enter")
    page.wait_for_selector("#contents .segment:last-of-type[aria-pressed=true]")
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0
    assert page.evaluate("document.activeElement.textContent") == opened


def test_attention_is_for_the_words_that_were_read(desk: Any) -> None:
    """Operators of the query are not among the tokens, as in the ranking."""
    ask(desk, "birch -iron")
    desk.wait_for_selector(DONE)
    desk.click("#hits .title >> nth=0")
    desk.wait_for_selector("#advanced:not([hidden])")
    with desk.expect_request("**/attention") as sent:
        desk.click("#advanced summary")
    assert sent.value.post_data_json["query"] == "birch"
    desk.wait_for_selector("#attention .lines line", state="attached")


def test_the_attention_is_that_of_the_selected_passage(page: Any) -> None:
    """A slower answer for one that was selected before does not replace it."""
    ask(page, "zebra")
    page.wait_for_selector(DONE)
    page.click("#hits .title")
    page.wait_for_selector("#advanced:not([hidden])")
    page.click("#advanced summary")
    page.wait_for_selector("#attention .lines line", state="attached")
    waiting: list[Any] = []
    page.route("**/attention", lambda route: waiting.append(route), times=1)
    first, last = (page.locator("#contents .segment").nth(n) for n in (0, -1))
    assert first.text_content() != last.text_content()
    first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#reader-note:has-text('Computing attention…')")
    last.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#reader-note:has-text('Probability of relevance')")
    shown = page.text_content("#attention blockquote")
    assert waiting
    waiting[0].continue_()
    page.wait_for_timeout(500)
    assert page.text_content("#attention blockquote") == shown
    assert shown.startswith(last.evaluate("one => one.firstChild.textContent")[:9])


def test_a_document_opens_at_its_best_segment(desk: Any) -> None:
    """Next and Previous lead through the best segments, in document order."""
    ask(desk, "birch river")
    desk.wait_for_selector(DONE)
    scored = {"scores": [0.2, 0.9, 0.0, 0.5]}
    sentence = "A birch stands by the river and does not move. " * 40

    def document(route: Any) -> None:
        plain = {"doc_id": "d", "title": "", "fields": {}, "contents": sentence * 4}
        evidence = [
            {"start": n * len(sentence), "end": (n + 1) * len(sentence), "text": sentence}
            | {"before": "", "after": "", "marks": [], "score": score, "weight": 1.0}
            for n, score in enumerate(scored["scores"])
        ]
        segments = evidence if "query=" in route.request.url else None
        route.fulfill(status=200, json={**plain, "segments": segments})

    desk.route("**/documents/*", document)
    desk.click("#hits .title >> nth=0")
    desk.wait_for_selector("#steps:not([hidden])")
    current = "Number(document.querySelector('.segment.current').dataset.score)"
    assert desk.inner_text("#steps output") == "Passage 2 of 3"  # a score of 0 is no stop
    assert desk.evaluate(current) == 0.9
    assert desk.evaluate("document.getElementById('reader').scrollTop") > 100
    desk.click("#steps .next")
    assert desk.evaluate(current) == 0.5
    desk.click("#steps .next")
    assert desk.evaluate(current) == 0.2
    desk.click("#steps .previous")
    assert desk.evaluate(current) == 0.5


def test_more_results_are_asked_for(desk: Any) -> None:
    """Ten more each time, as long as an answer is full."""
    ask(desk, "birch river")
    desk.wait_for_selector(DONE)
    assert not desk.is_visible("#more")
    hit = desk.evaluate("document.querySelector('#hits li').hit")
    full = [{**hit, "doc_id": str(n)} for n in range(10)]
    replace_answers(desk, {"hits": full})
    ask(desk, "birch  river")
    desk.wait_for_selector("#more:not([hidden])")
    with desk.expect_request(
        lambda request: json.loads(request.post_data or "{}").get("top") == 20
    ):
        desk.click("#more button")
    desk.wait_for_selector("#more", state="hidden")


def test_more_results_after_a_search_that_broke_off(desk: Any) -> None:
    """What was found before is told, and more of it can be asked for."""
    ask(desk, "birch river")
    desk.wait_for_selector(DONE)
    hit = desk.evaluate("document.querySelector('#hits li').hit")
    full = [{**hit, "doc_id": str(n)} for n in range(10)]
    replace_answers(desk, {"hits": full, "exact": False}, done=False)
    ask(desk, "birch  river")
    desk.wait_for_selector("#error:has-text('ended before the answer')")
    assert desk.is_visible("#more")
    assert desk.inner_text("#status").startswith("Best 10 results")
    assert desk.is_visible("#go-on")
    desk.unroute("**/search/stream")
    desk.expected_errors.append("ERR_FAILED")
    desk.route("**/search/stream", lambda route: route.abort())
    for _ in range(2):  # what fails is more of the same
        with desk.expect_request(lambda one: '"top":20' in (one.post_data or "")):
            desk.click("#more button")
        desk.wait_for_selector("#error:has-text('Is it running?')")
        assert desk.inner_text("#status").startswith("Best 10 results")
        assert desk.is_visible("#more")


def test_more_results_without_a_model_are_shown(desk: Any) -> None:
    """Answers of the first stage alone have read nothing, and are complete."""
    ask(desk, "birch river")
    desk.wait_for_selector(DONE)
    hit = desk.evaluate("document.querySelector('#hits li').hit")
    for count, press in (
        (10, lambda: ask(desk, "birch  river")),
        (20, lambda: desk.click("#more button")),
    ):
        hits = [{**hit, "doc_id": str(n), "scored": False} for n in range(count)]
        replace_answers(desk, {"hits": hits, "scored": 0, "models": []})
        press()
        desk.wait_for_function(
            "n => document.querySelectorAll('#hits > li').length === n", arg=count
        )


def test_what_was_not_searched_is_not_said_to_lack(desk: Any) -> None:
    """Without a hit, an answer that is not complete is no answer; the page goes on."""
    ask(desk, "birch river")
    desk.wait_for_selector(DONE)
    replace_answers(desk, {"hits": [], "exact": False, "missing_shards": ["shard-2"]}, times=2)
    ask(desk, "birch  river")
    desk.wait_for_selector("#notice:has-text('Nothing found yet')")
    assert "shard-2 of the index did not answer" in desk.inner_text("#notice")
    desk.wait_for_selector("#hits li")


def test_rankings_are_compared(page: Any) -> None:
    """Three rankings are connected by lines, and the changes told; the URL holds the view."""
    ask(page, "birch river")
    page.wait_for_selector("#hits mark")
    page.click("#details")
    page.click("button[data-view=compare]")
    page.wait_for_selector("#compare .lists > div:nth-child(3)")
    page.wait_for_selector("#changes:has-text('3 of 3 documents are in both')")
    assert page.locator("#compare path").count() == 6
    assert "view=compare" in page.url
    page.go_back()
    page.wait_for_selector("#results:not([hidden])")


def test_back_does_not_open_a_closed_document(page: Any) -> None:
    """Its address leaves the history when it is closed."""
    ask(page, "birch river")
    page.wait_for_selector("#hits mark")
    page.click("#hits .title >> nth=0")
    page.wait_for_selector("dialog[open]")
    assert "doc=" in page.url
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="hidden")
    page.wait_for_function("() => !location.hash.includes('doc=')")
    page.go_back()
    page.wait_for_timeout(300)
    assert "doc=" not in page.url
    assert page.locator("dialog[open]").count() == 0
    assert page.input_value("#query") == "birch river"


def test_texts_are_never_html(page: Any) -> None:
    """Markup in ids, titles, texts and queries is shown as text; offsets count code points."""
    ask(page, "zebra")
    page.wait_for_selector("#hits mark")
    assert page.text_content("#hits .title").startswith("<b>zebra</b> <script>")
    assert page.locator("#hits b, #hits i:not(.bar i), #hits img, #hits script").count() == 0
    page.click("#hits .title")
    page.wait_for_selector("dialog[open] .segment")
    last = page.locator("#contents .segment").last.text_content()
    assert last.startswith("<img src=x onerror='document.title=1'> 𝔸𝔹 end.")
    assert page.locator("#contents img, #contents i").count() == 0
    page.click("#advanced summary")
    page.wait_for_selector("#attention .lines line", state="attached")
    page.keyboard.press("Escape")
    page.wait_for_function("() => document.activeElement.matches('.title')")
    assert page.title() == "zebra – Birchbark"
    page.click("#details")
    page.click("button[data-view=compare]")
    page.wait_for_selector("#compare .lists > div:nth-child(3) .title")
    assert page.text_content("#compare .title").startswith("<b>zebra</b> <script>")
    assert page.locator("#compare b, #compare img, #compare script").count() == 0
    page.click("button[data-view=results]")
    page.wait_for_selector("#hits mark")
    ask(page, "<em>qqq</em>")
    page.wait_for_selector("#notice:has-text('No document')")
    assert page.title().startswith("<em>qqq")


def test_errors_are_shown(page: Any, address: str) -> None:
    """The message of a query that is too long disappears with the next query."""
    ask(page, "birch " * 300)
    page.wait_for_selector("#error:not([hidden])")
    assert "query is too long" in page.text_content("#error")
    ask(page, "birch")
    page.wait_for_selector("#hits mark")
    assert page.locator("#error:not([hidden])").count() == 0


def test_hits_do_not_move_while_pressed(page: Any) -> None:
    """New hits wait for the end of a click; the focused hit keeps the focus."""
    ask(page, "birch river")
    page.wait_for_selector(DONE)
    order = "[...document.querySelectorAll('#hits li')].map(one => one.dataset.id)"
    before = page.evaluate(order)
    draw = """async () => {
      const { showHits } = await import("/page/hits.js");
      const hits = [...document.querySelectorAll("#hits li")].map(one => one.hit).reverse();
      showHits(document.getElementById("hits"), { hits, models: [] }, {}, new Map(), () => {});
    }"""
    page.hover("#hits .title >> nth=0")
    page.mouse.down()
    page.evaluate(draw)
    assert page.evaluate(order) == before
    page.mouse.up()
    page.wait_for_selector("dialog[open]")
    page.wait_for_function(f"ids => `${{ids}}` === `${{{order}}}`", arg=before[::-1])
    page.keyboard.press("Escape")
    page.focus("#hits .title >> nth=2")
    focused = page.evaluate("document.activeElement.closest('li').dataset.id")
    page.evaluate(draw)
    assert page.evaluate(order) == before
    assert page.evaluate("document.activeElement.closest('li').dataset.id") == focused


def test_compared_rankings_do_not_move_while_pressed(page: Any) -> None:
    """An answer that comes during a click waits for its end; the focused title keeps the focus."""
    ask(page, "birch river")
    page.wait_for_selector(DONE)
    page.click("#details")
    page.click("button[data-view=compare]")
    page.wait_for_selector("#status:has-text('rankings compared')")
    column = "#compare .lists > div:first-child"
    order = f"[...document.querySelectorAll('{column} li')].map(one => one.dataset.id)"
    before = page.evaluate(order)
    assert len(before) == 3
    draw = """async ids => {
      const { showRanking } = await import("/page/compare.js");
      const hits = ids.map(doc_id => ({ doc_id, title: doc_id, lead: "", segments: [] }));
      const answer = { hits, exact: true, pairs: 0, embedded: 0 };
      showRanking(document.getElementById("compare"), 0, "A", answer, () => {}, "");
    }"""
    page.hover(f"{column} .title >> nth=0")
    page.mouse.down()
    page.evaluate(draw, before[::-1])
    assert page.evaluate(order) == before
    page.mouse.up()
    page.wait_for_selector("dialog[open]")
    page.wait_for_function(f"ids => `${{ids}}` === `${{{order}}}`", arg=before[::-1])
    page.keyboard.press("Escape")
    page.focus(f"{column} .title >> nth=2")
    page.evaluate(draw, before)
    assert page.evaluate(order) == before
    assert page.evaluate("document.activeElement.closest('li').dataset.id") == before[0]


def test_settings_are_loaded_again_after_an_error(page: Any, address: str) -> None:
    """A failed first request does not disable the page."""
    refused = []

    def once(route: Any) -> None:
        if refused:
            route.continue_()
        else:
            refused.append(True)
            route.fulfill(status=500, content_type="application/json", body='{"message": "broken"}')

    page.expected_errors.append("500")
    page.route("**/about", once)
    page.goto(address + "#")
    page.reload()
    page.wait_for_selector("#error:has-text('broken')")
    ask(page, "birch river")
    page.wait_for_selector("#hits mark")
    assert page.locator("#error").is_hidden()
    page.click("#details")
    page.eval_on_selector("#a", "e => { e.value = 1; e.dispatchEvent(new Event('input')); }")
    wait_for_score(page, "Score 100 of 100 = match 100")
