"""Do answers tell what was read, and show something of every hit?"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from served import client, index_directory

from birchbark.index.index import Index
from birchbark.index.writer import IndexWriter
from birchbark.pipeline.answers.answer import Answer, Evidence, Hit, SearchStats
from birchbark.pipeline.search import search
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.settings.reading_plan import ReadingPlan
from birchbark.pipeline.stored.precompute import precompute_vectors
from birchbark.records import Document, Float32s, Ids, Segment
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.query_language import literal_query
from birchbark.score.load_scorer import load_scorer
from birchbark.segment.sentences import sentences
from birchbark.serve import answer_stream
from birchbark.serve.answer_stream import AnswerStream
from birchbark.serve.service import QUICK_THREADS
from conftest import WordScorer, write_bert

__all__ = ["client", "index_directory"]
QUERY = "birch river iron"
ASK = {"query": QUERY}


class _Unread(WordScorer):
    """Fails if it has to score."""

    def score(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
        raise AssertionError("read under load")


@pytest.fixture
def with_vectors(index_directory: Path, tmp_path: Path) -> Ranker:
    """A ranker with an embedding whose vectors are in the index."""
    embedding = load_scorer(write_bert(tmp_path / "vectors"))
    with IndexWriter(index_directory) as writer:
        precompute_vectors(embedding, sentences, "vectors").attach(writer)
    return Ranker(_Unread(), sentences, embedding=embedding, plan=ReadingPlan(2))


def test_counts_are_those_of_the_library(index_directory: Path, client: Any) -> None:
    """They come with the names of the models and the limit of the reading plan."""
    ranker = Ranker(WordScorer(), embedding=WordScorer(), plan=ReadingPlan(2, 3, embedded=1))
    answer = client(ranker).post("/search", json=ASK).json()
    stats = search(IndexEngine(Index(index_directory)), QUERY, ranker).stats
    for name in ("pairs", "embedded", "segments", "by_vectors", "unsplit_characters", "scored"):
        assert answer[name] == getattr(stats, name), name
    assert answer["planned"] == 6 >= answer["pairs"] - answer["embedded"] > 0
    assert (answer["models"], answer["embedding"]) == ([ranker.scorer.name], ranker.scorer.name)
    plain = client(Ranker(WordScorer())).post("/search", json=ASK).json()
    assert (plain["planned"], plain["embedding"]) == (None, None)
    first = client().post("/search", json={**ASK, "by": "first_stage"}).json()
    assert (first["models"], first["pairs"], first["planned"]) == ([], 0, None)


def test_hits_have_evidence_or_a_snippet(client: Any) -> None:
    """Both mark the query's terms, and have offsets in the contents."""
    service = client(Ranker(WordScorer(), plan=ReadingPlan(1, 2)))
    answer = service.post("/search", json=ASK).json()
    assert [hit["scored"] for hit in answer["hits"]] == [True, True, False, False]
    for hit in answer["hits"]:
        assert (hit["snippet"] is None) == bool(hit["segments"]) == hit["scored"]
        contents = service.get(f"/documents/{hit['doc_id']}").json()["contents"]
        shown = hit["snippet"] or hit["segments"][0]
        own = contents[shown["start"] : shown["end"]]
        assert shown["text"].endswith(own)  # after the title
        assert shown["before"] + own + shown["after"] in contents
        marked = [shown["text"][start:end].lower() for start, end in shown["marks"]]
        assert marked
        assert set(marked) <= set(QUERY.split())


def test_stored_vectors_rank_when_there_is_no_time(with_vectors: Ranker, client: Any) -> None:
    """Nothing is read under load or after the budget; the answer is not exact."""
    service = client(with_vectors)
    late = service.post("/search", json={**ASK, "budget_ms": 0.001}).json()
    inner = service.app.service
    inner.admission._mean_seconds = 60.0
    inner.admission._semaphore = asyncio.Semaphore(0)
    busy = service.post("/search", json=ASK).json()
    for answer in (late, busy):  # four documents contain a term of the query
        assert (answer["exact"], answer["pairs"], answer["by_vectors"]) == (False, 0, 4)
        scores = [hit["first_stage"] + hit["embedding"] for hit in answer["hits"]]
        assert scores == pytest.approx([hit["score"] for hit in answer["hits"]])
        assert scores == sorted(scores, reverse=True)
        assert all(hit["embedding"] and hit["snippet"] for hit in answer["hits"])
    unknown = service.post("/search", json={**ASK, "query": "zzzz"}).json()
    assert unknown["hits"] == []  # under load, only terms find candidates
    assert not unknown["exact"]


def test_the_first_stage_answers_what_waited_too_long(with_vectors: Ranker, client: Any) -> None:
    """Under load even stored vectors take too long; the answer is not exact."""
    service = client(with_vectors)
    inner, go = service.app.service, Event()
    inner.admission._mean_seconds = 60.0
    inner.admission._semaphore = asyncio.Semaphore(0)
    held = [inner._quick_pool.submit(go.wait, 20) for _ in range(QUICK_THREADS)]
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(service.post, "/search", json={**ASK, "budget_ms": 20})
        while not inner.admission.active:
            time.sleep(0.01)
        time.sleep(0.05)
        go.set()
        answer = waiting.result().json()
    assert all(future.result() for future in held)
    assert (answer["exact"], answer["by_vectors"], answer["scored"]) == (False, 0, 0)
    plain = service.post("/search", json={**ASK, "by": "first_stage"}).json()
    assert [hit["doc_id"] for hit in answer["hits"]] == [hit["doc_id"] for hit in plain["hits"]]
    assert not any(hit["scored"] for hit in answer["hits"])
    assert all(hit["snippet"] for hit in answer["hits"])


def test_the_embedding_alone_ranks_all_candidates(client: Any) -> None:
    """The reading plan of the ranker limits only how much of each document it reads."""
    service = client(Ranker(WordScorer(), plan=ReadingPlan(1, 2, pairs=2)))
    answer = service.post("/search", json={**ASK, "by": "embedding"}).json()
    assert (answer["pairs"], answer["planned"], answer["scored"]) == (4, 4, 4)
    assert answer["models"][0].startswith("cosine of")


def test_more_weights_read_more_segments(client: Any) -> None:
    """Each weight can have a segment."""
    service = client(Ranker(WordScorer(), plan=ReadingPlan(1)))
    few = service.post("/search", json=ASK).json()
    more = service.post("/search", json={**ASK, "weights": [1, 1, 1]}).json()
    assert (few["planned"], more["planned"]) == (4, 12)
    assert more["pairs"] > few["pairs"]


def test_the_first_answer_with_all_evidence_is_not_delayed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Later ones keep a distance in time; the first and the final answer always come."""
    monkeypatch.setattr(answer_stream, "MIN_INTERVAL", 1000)
    two_came = Event()
    document = Document("a", {"text": "A."})
    read = Hit(document, 1.0, 0.0, 1.0, (Evidence(Segment("a", 0, 2, "A."), 1.0, 1.0),))
    unread = Hit(document, 1.0, 1.0, 0.0, (), scored=False)
    built: list[int] = []

    def search(on_progress: Any) -> Answer:
        steps = [(read, unread), (unread, unread), (read, read), (read, read)]
        for number, hits in enumerate(steps, 1):

            def answer(number: int = number, hits: Any = hits) -> Answer:
                built.append(number)
                return Answer(hits, SearchStats(candidates=number, exact=False))

            on_progress(answer)
        assert two_came.wait(20)
        return Answer((read,), SearchStats(candidates=9))

    async def received() -> list[int]:
        stream = AnswerStream(literal_query("q"), time.monotonic(), intermediate=True)
        with ThreadPoolExecutor(1) as pool:
            running = asyncio.wrap_future(pool.submit(stream.run, search))
            candidates = []
            async for answer in stream.answers(running):
                candidates.append(answer.candidates)
                if len(candidates) == 2:
                    two_came.set()
            return candidates

    assert asyncio.run(received()) == [1, 3, 9]
    assert built == [1, 2, 3]
