"""Can a person judge what systems found, blind, and see the report of it?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from birchbark.bench.bench import Bench
from birchbark.bench.bench_folder import BenchFolder
from birchbark.bench.judge_routes import judge_routes
from birchbark.errors import InputError
from birchbark.index.build_index import build_index
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.records import Query
from birchbark.serve.app import application
from birchbark.serve.service import Service
from conftest import DOCUMENTS, WordScorer

QUESTIONS = [Query("drafted-1", "birch river"), Query("mine", "iron bridge")]


class _ShortQueries(WordScorer):
    """Refuses queries of more than a thousand words."""

    def token_budget(self, query: str) -> int:
        if len(query.split()) > 1000:
            raise InputError("the query is too long")
        return super().token_budget(query)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    index = build_index(DOCUMENTS, tmp_path / "index")
    with closing(BenchFolder(tmp_path / "notes.bench")) as folder:
        folder.write_questions(QUESTIONS)
        words = Ranker(_ShortQueries())
        searchers = {"BM25": Searcher(index, ()), "words": Searcher(index, words)}
        made = Bench("notes", folder, searchers)
        for tag in searchers:
            made.rank(tag)
        yield made


@pytest.fixture
def client(bench: Bench, tmp_path: Path) -> Iterator[TestClient]:
    service = Service(Searcher(tmp_path / "index", Ranker(WordScorer())))
    with TestClient(application(service, front=judge_routes(service, bench))) as client:
        yield client


def test_documents_to_judge_tell_nothing_of_the_systems(client: TestClient, bench: Bench) -> None:
    first, second = client.get("/judgments").json()["questions"]
    assert (first["query_id"], first["text"], first["drafted"]) == (
        "drafted-1",
        "birch river",
        True,
    )
    assert not second["drafted"]
    for question in (first, second):
        assert set(question) == {"query_id", "text", "drafted", "documents"}
        assert all(set(document) == {"doc_id", "grade"} for document in question["documents"])
    assert [document["doc_id"] for document in first["documents"]] == bench.pooled["drafted-1"]
    assert len(first["documents"]) > 1


def test_a_grade_is_on_disk_when_the_answer_comes(client: TestClient, bench: Bench) -> None:
    graded = {"query_id": "mine", "doc_id": "bridge", "grade": 3}
    assert client.post("/judgments", json=graded).json() == {"grade": 3}
    assert (bench.folder.path / "judgments.qrels").read_text() == "mine 0 bridge 3\n"
    second = client.get("/judgments").json()["questions"][1]
    assert {"doc_id": "bridge", "grade": 3} in second["documents"]
    client.post("/judgments", json={**graded, "grade": None})
    assert bench.folder.judgments.grades == {}


def test_grades_that_were_written_into_the_file_meanwhile_stay(
    client: TestClient, bench: Bench
) -> None:
    """They are shown, too; those that are out of range are refused, and nothing is lost."""
    file = bench.folder.path / "judgments.qrels"
    file.write_text("mine 0 bridge 2\n")
    other = next(d for d in bench.pooled["mine"] if d != "bridge")
    client.post("/judgments", json={"query_id": "mine", "doc_id": other, "grade": 1})
    second = client.get("/judgments").json()["questions"][1]
    assert {"doc_id": "bridge", "grade": 2} in second["documents"]
    file.write_text(file.read_text() + "drafted-1 0 bridge 9\n")
    before = file.read_text()
    refused = client.post("/judgments", json={"query_id": "mine", "doc_id": other, "grade": 3})
    assert "wanted 0 to 3" in refused.text or "expected 0 to 3" in refused.text
    assert file.read_text() == before


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"query_id": "unknown"}, 404),
        ({"doc_id": "bees"}, 404),  # no system found it
        ({"doc_id": "x\ny"}, 404),
        ({"grade": 4}, 422),
        ({"grade": -1}, 422),
        ({"grade": "3; rm"}, 422),
        ({"system": "BM25"}, 422),
    ],
)
def test_other_judgments_are_refused(
    client: TestClient, bench: Bench, change: dict[str, object], status: int
) -> None:
    graded = {"query_id": "mine", "doc_id": "bridge", "grade": 3}
    assert client.post("/judgments", json=graded | change).status_code == status
    assert bench.folder.judgments.grades == {}


def test_documents_are_shown_with_their_best_sentences(client: TestClient) -> None:
    shown = client.get("/documents/bridge", params={"query": "iron bridge"}).json()
    assert shown["contents"].startswith("An iron bridge")
    assert len(shown["segments"]) == 2


def test_the_search_page_with_its_rankings_is_not_there(client: TestClient) -> None:
    assert "Judge" in client.get("/").text
    assert client.get("/judge/judge.js").headers["content-type"].startswith("text/javascript")
    assert client.get("/judge/other.js").status_code == 404
    assert client.get("/about").status_code == 404


def test_the_report_follows_the_judgments(client: TestClient, bench: Bench) -> None:
    assert "0 questions judged" in client.get("/report").text
    for question in client.get("/judgments").json()["questions"]:
        for document in question["documents"]:
            graded = {"query_id": question["query_id"], "doc_id": document["doc_id"], "grade": 1}
            client.post("/judgments", json=graded)
    page = client.get("/report")
    assert "2 questions judged" in page.text
    assert "iron bridge" in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert bench.unjudged == 0


def test_a_question_in_other_words_is_ranked_and_judged_anew(
    client: TestClient, bench: Bench
) -> None:
    for doc_id in bench.pooled["drafted-1"]:
        bench.folder.judge(QUESTIONS[0], doc_id, 1)
    before = bench.folder.judgments.grades
    asked = client.post("/questions", json={"query_id": "drafted-1", "text": " steam  engine "})
    new = asked.json()
    assert (new["query_id"], new["text"], new["drafted"]) == ("own-1", "steam engine", False)
    assert {"doc_id": "engine", "grade": None} in new["documents"]
    assert client.get("/judgments").json()["questions"][0] == new
    assert bench.folder.questions == [Query("own-1", "steam engine"), QUESTIONS[1]]
    assert bench.folder.judgments.grades == before
    graded = {"query_id": "own-1", "doc_id": "engine", "grade": 3}
    assert client.post("/judgments", json=graded).status_code == 200
    again = client.post("/questions", json={"query_id": "own-1", "text": "iron engine"}).json()
    assert again["query_id"] == "own-2"
    assert bench.unjudged == len(again["documents"]) + len(bench.pooled["mine"])


@pytest.mark.parametrize(
    ("query_id", "text", "told"),
    [
        ("unknown", "steam", "no such question"),
        ("mine", "   ", "the question has no words"),
        ("mine", "birch river", "the question has no words, or those of another"),
    ],
)
def test_other_rewordings_are_refused(
    client: TestClient, bench: Bench, query_id: str, text: str, told: str
) -> None:
    answer = client.post("/questions", json={"query_id": query_id, "text": text})
    assert answer.status_code == 422
    assert told in answer.json()["message"]
    assert bench.questions == bench.folder.questions == QUESTIONS


def test_a_question_that_one_model_refuses_changes_nothing(bench: Bench) -> None:
    """BM25 would rank so many words; what it has found for the others stays, too."""
    pooled = bench.pooled
    with pytest.raises(InputError, match="question own-1"):
        bench.reword("mine", "river " * 5000)
    assert bench.questions == bench.folder.questions == QUESTIONS
    assert bench.pooled == pooled


def test_questions_are_escaped(tmp_path: Path) -> None:
    index = build_index(DOCUMENTS, tmp_path / "index")
    with closing(BenchFolder(tmp_path / "b")) as folder:
        folder.write_questions([Query("mine", "<script>alert(1)</script> iron"), QUESTIONS[0]])
        bench = Bench("<b>notes", folder, {"BM25": Searcher(index, ())})
        bench.rank("BM25")
        for query in bench.questions:
            for doc_id in bench.pooled[query.query_id]:
                folder.judge(query, doc_id, 1)
        page = bench.report().page()
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "&lt;b&gt;notes" in page
