"""Are questions ranked as a search ranks them, and is the time of a question measured?"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from birchbark.bench.rank_questions import RANKED, check_questions, rank_questions
from birchbark.combine.interpolate import Interpolation
from birchbark.index.build_index import build_index
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.settings.reading_plan import ReadingPlan
from birchbark.records import Document, Query
from conftest import DOCUMENTS, WordScorer


def test_a_run_has_the_hits_of_searches_in_their_order(tmp_path: Path) -> None:
    more = [Document(f"d{n}", {"text": f"The river number {n}."}) for n in range(2 * RANKED)]
    low = Ranker(WordScorer(), interpolation=Interpolation(0.9), plan=ReadingPlan(documents=3))
    searcher = Searcher(build_index([*DOCUMENTS, *more], tmp_path / "index"), low)
    questions = [Query("q1", "birch river"), Query("q2", "nothing of it")]
    asked = list[int]()
    started = time.perf_counter()
    found = rank_questions(searcher, questions, "words", {}, lambda: asked.append(1))
    assert all(0 < seconds < time.perf_counter() - started for seconds in found.seconds.values())
    assert found.asked == {"q1": "birch river", "q2": "nothing of it"}
    run = found.run
    assert (run.tag, len(asked)) == ("words", 2)
    hits = searcher.search("birch river", RANKED).hits
    assert run.rankings["q1"].doc_ids == tuple(hit.document.doc_id for hit in hits)
    assert len(run.rankings["q1"]) == RANKED
    assert len(run.rankings["q2"]) == 0


def test_questions_are_ranked_as_topics_are(tmp_path: Path) -> None:
    """A quotation mark or a minus is no operator, as for `birchbark retrieve`."""
    searcher = Searcher(build_index(DOCUMENTS, tmp_path / "index"), ())
    questions = [Query("q1", '"river birch" -canoe'), Query("q2", "river birch canoe")]
    check_questions([searcher], [Query("q3", "-canoe")])
    found = rank_questions(searcher, questions, "BM25", {}).run
    assert found.rankings["q1"] == found.rankings["q2"]


def test_a_copy_of_the_source_counts_as_the_source(tmp_path: Path) -> None:
    copies = [replace(DOCUMENTS[0], doc_id=name) for name in ("a", "b", "c")]
    searcher = Searcher(build_index(copies, tmp_path / "index"), ())
    for source in ("a", "b", "c"):
        found = rank_questions(searcher, [Query("q1", "birch")], "BM25", {"q1": source})
        assert found.run.rankings["q1"].doc_ids == (source,)
