"""Does a Searcher give the answers of `search`, in many threads and while its index changes?"""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event, Thread
from time import sleep
from typing import Any

import numpy as np
import pytest

from birchbark.combine.aggregate import Top
from birchbark.combine.interpolate import Interpolation
from birchbark.errors import ArtifactError, DeadlineError, InputError
from birchbark.index.attachment_schema import AttachmentSchema, RowForm
from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.index.sharded_writer import open_writer
from birchbark.index.writer import IndexWriter
from birchbark.pipeline.answers.answer import Answer
from birchbark.pipeline.rank_texts import _load_default_ranker, rank
from birchbark.pipeline.search import search
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.settings.reading_plan import ReadingPlan
from birchbark.pipeline.stored.precompute import VECTORS, precompute_vectors
from birchbark.pipeline.upkeep import update_index
from birchbark.pipeline.upkeep.update_index import build_missing_graphs
from birchbark.records import Document
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import FirstStage
from birchbark.retrieve.hnsw import build_graphs
from birchbark.retrieve.term_overlap import KnownTokens
from birchbark.retrieve.vector_match import BY_TERMS, CandidateScores, VectorMatch
from birchbark.score.dynamic_batching import dynamic_batcher
from birchbark.score.load_scorer import load_scorer
from birchbark.score.precision import has_vnni
from birchbark.score.scorer import Scorer
from birchbark.segment.sentences import sentences
from birchbark.segment.truncate import Limit
from conftest import DOCUMENTS, WordScorer, write_bert

QUERIES = ("birch river", "bees", "iron", "steam engine", "stone", "forest bridge")


@pytest.fixture
def index_directory(tmp_path: Path) -> Path:
    """An index with a field to filter by."""
    kinds = {"canoe": "water", "bridge": "water"}
    marked = [
        replace(d, fields={**d.fields, "kind": kinds.get(d.doc_id, "land")}) for d in DOCUMENTS
    ]
    build_index(marked, tmp_path / "index", Schema(keywords=("kind",)))
    return tmp_path / "index"


def names(answer: Answer) -> list[str]:
    return [hit.document.doc_id for hit in answer.hits]


def test_answers_are_those_of_search(index_directory: Path) -> None:
    """Hits, evidence and statistics agree for any rankers and filters."""
    searcher = Searcher(index_directory, Ranker(WordScorer()))
    engine = IndexEngine(Index(index_directory))
    for text in QUERIES:
        assert searcher.search(text).hits == search(engine, text, Ranker(WordScorer())).hits
        (own,) = searcher.rankers
        other = replace(own, depth=2, aggregation=Top((1.0,)), interpolation=Interpolation(0.9))
        expected = search(engine, text, replace(other, scorer=WordScorer()), 3)
        assert searcher.search(text, 3, rankers=other) == expected
        assert searcher.search(text, rankers=()).hits == search(engine, text, ()).hits
    only = searcher.search("birch river", filters={"kind": "water"})
    stage = FirstStage(filters={"kind": "water"})
    assert (
        only.hits
        == search(
            IndexEngine(Index(index_directory), stage), "birch river", Ranker(WordScorer())
        ).hits
    )
    assert set(names(only)) == {"canoe", "bridge"}


def test_filters_add_to_those_of_the_first_stage(tmp_path: Path) -> None:
    """Of one field both hold: hits, scores and facets are those of a single filter for both."""
    folders = ["docs/a", "docs/a", "docs/b", "docs/b", "docs/a", "notes"]
    documents = [
        Document(str(n), {"text": f"{'parcel ' * (n + 1)}slip", "path": f"{folder}/{n}"})
        for n, folder in enumerate(folders)
    ]
    build_index(documents, tmp_path / "index", Schema(keywords=("path",)))

    def within(path: str) -> Searcher:
        stage = FirstStage(filters={"path": path})
        return Searcher(tmp_path / "index", Ranker(WordScorer()), stage)

    docs = within("docs/*")
    for text, both, expected in (
        ("docs/a/*", "docs/a/*", {"0", "1", "4"}),
        ("docs/b/*|notes/*", "docs/b/*", {"2", "3"}),
        ("!docs/b/*", "docs/a/*", {"0", "1", "4"}),
        ("notes/*", "docs/*/missing", set()),
    ):
        found, alone = docs.search("parcel", filters={"path": text}), within(both)
        assert found.hits == alone.search("parcel").hits
        assert (set(names(found)), found.stats.exact) == (expected, True)
        first = docs.search("parcel", 2, filters={"path": text}, rankers=())
        assert first.hits == alone.search("parcel", 2, rankers=()).hits
        (facet,) = docs.facets("parcel", {"path": text})  # what else could be chosen
        assert facet.values == (("docs/a/*", 3), ("docs/b/*", 2))


def test_nothing_is_scored_twice(index_directory: Path) -> None:
    """A repeated query, even with other weights, computes no pair again."""
    searcher = Searcher(index_directory, Ranker(WordScorer()))
    first = searcher.search("birch river")
    (own,) = searcher.rankers
    computed = own.scorer.computed  # type: ignore[attr-defined]
    assert computed
    assert searcher.search("birch river") == first
    searcher.search("birch river", rankers=replace(own, interpolation=Interpolation(0.0)))
    assert own.scorer.computed == computed  # type: ignore[attr-defined]


def test_threads_do_not_change_answers(tmp_path: Path, index_directory: Path) -> None:
    """Two hundred searches in eight threads give the same answers as single searches."""
    directory = write_bert(tmp_path / "bert", labels=1)
    alone = Searcher(index_directory, directory)
    expected = {text: alone.search(text).hits for text in QUERIES}
    shared = Searcher(index_directory, directory)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(shared.search, QUERIES * 33))
    for text, answer in zip(QUERIES * 33, answers, strict=True):
        assert answer.hits == expected[text]


def test_changes_are_seen_by_the_next_search(index_directory: Path) -> None:
    """Changes by this searcher, by another writer and by a new index are seen."""
    searcher = Searcher(index_directory, Ranker(WordScorer()))
    new = Document("tree", {"title": "Tree", "text": "A birch tree.", "kind": "land"})
    assert searcher.add([new, replace(DOCUMENTS[0], fields={"text": "A river."})]) == (1, 1)
    assert names(searcher.search("birch")) == ["tree", "forest"]
    assert searcher.documents(["tree"]) == [new]
    with IndexWriter(index_directory) as writer:
        writer.delete("tree")
    assert names(searcher.search("birch")) == ["forest"]
    assert searcher.delete(["forest", "nobody"]) == 1
    assert names(searcher.search("birch")) == []
    build_index(DOCUMENTS, index_directory, replace=True)
    assert set(names(searcher.search("birch"))) == {"canoe", "forest"}


def test_a_deleted_index_is_said_to_be_deleted(index_directory: Path) -> None:
    """Another one in its place is not what has happened."""
    searcher = Searcher(index_directory, ())
    shutil.rmtree(index_directory)
    with pytest.raises(ArtifactError, match="the index was deleted"):
        searcher.search("birch")


def test_a_running_search_sees_its_snapshot(index_directory: Path) -> None:
    """All documents are deleted, and their files removed, during the search."""
    begun, may_go_on = Event(), Event()

    class Waiting(WordScorer):
        def score(self, query, token_ids):  # type: ignore[no-untyped-def]
            begun.set()
            assert may_go_on.wait(10)
            return super().score(query, token_ids)

    searcher = Searcher(index_directory, Ranker(Waiting()))
    expected = search(IndexEngine(Index(index_directory)), "birch river", Ranker(WordScorer())).hits
    answers: list[Answer] = []
    thread = Thread(target=lambda: answers.append(searcher.search("birch river")))
    thread.start()
    assert begun.wait(10)
    searcher.delete([document.doc_id for document in DOCUMENTS])
    may_go_on.set()
    thread.join(10)
    assert answers[0].hits == expected
    assert searcher.search("birch river").hits == ()


def test_an_invalid_document_changes_nothing(index_directory: Path) -> None:
    """No document of its batch is added; a second writer is refused while another is open."""
    searcher = Searcher(index_directory, Ranker(WordScorer()))
    with pytest.raises(InputError, match="lone surrogate"):
        searcher.add([Document("good", {"text": "birch"}), Document("bad", {"text": "\ud800"})])
    assert "good" not in names(searcher.search("birch"))
    with IndexWriter(index_directory), pytest.raises(ArtifactError):
        searcher.delete(["canoe"])
    assert searcher.delete(["canoe"]) == 1


def test_vectors_of_added_documents_are_stored(tmp_path: Path, index_directory: Path) -> None:
    """Added documents are found by their vectors; filters apply as well."""
    directory = write_bert(tmp_path / "bert")
    with IndexWriter(index_directory) as writer:
        precompute_vectors(load_scorer(directory), sentences, str(directory)).attach(writer)
    searcher = Searcher(index_directory, (), vector_match=VectorMatch())
    searcher.add([Document("tree", {"text": "A tree.", "kind": "land"})])
    assert not searcher.index.missing_rows()
    assert searcher.index.attachment(VECTORS)
    assert len(searcher.search("tree").hits) == 6
    assert set(names(searcher.search("tree", filters={"kind": "water"}))) == {"canoe", "bridge"}


def test_vectors_of_another_model_are_refused_before_any_change(
    tmp_path: Path, index_directory: Path
) -> None:
    """The document is not added; attachments of other programs are ignored."""
    first, other = (write_bert(tmp_path / name, seed=n) for n, name in enumerate(("one", "other")))
    with IndexWriter(index_directory) as writer:
        precompute_vectors(load_scorer(first), sentences, str(other)).attach(writer)
    searcher = Searcher(index_directory, Ranker(WordScorer()))
    with pytest.raises(InputError, match="made by a model or version other than"):
        searcher.add([Document("tree", {"text": "A tree."})])
    assert searcher.index.find("tree") is None
    with IndexWriter(index_directory) as writer:
        writer.detach(VECTORS)
        schema = AttachmentSchema({"of": "others"}, {"lengths": RowForm("uint32")})
        rows = {"lengths": np.array([1], np.uint32)}
        writer.attach("theirs", schema, lambda documents: iter([rows] * len(documents)))
    assert searcher.add([Document("tree", {"text": "A tree."})]) == (1, 0)


def test_graphs_are_built_after_adding(
    tmp_path: Path, index_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are built if enough vectors are in no graph and faiss is installed."""
    directory = write_bert(tmp_path / "bert")
    with IndexWriter(index_directory) as writer:
        precompute_vectors(load_scorer(directory), sentences, str(directory)).attach(writer)
    built: list[int] = []
    monkeypatch.setattr(update_index, "faiss_installed", lambda: True)
    monkeypatch.setattr(update_index, "count_vectors_without_graph", lambda vectors: 9)
    monkeypatch.setattr(
        update_index, "build_graphs", lambda index, vectors, *_: built.append(len(index))
    )
    Searcher(index_directory, ()).add([Document("tree", {"text": "A tree."})])
    assert built == [len(DOCUMENTS) + 1]


@pytest.mark.parametrize("shards", [1, 2])
def test_graphs_are_searched_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shards: int
) -> None:
    """Programs that opened the index before they were built open it again."""
    pytest.importorskip("faiss")
    directory = write_bert(tmp_path / "bert")
    build_index(DOCUMENTS, tmp_path / "index", shards=shards)
    with open_writer(tmp_path / "index") as writer:
        precompute_vectors(load_scorer(directory), sentences, str(directory)).attach(writer)
        before = Index(tmp_path / "index")
        build_missing_graphs(writer)
        assert not before.outdated  # there are too few vectors
        monkeypatch.setattr(update_index, "count_vectors_without_graph", lambda vectors: 9)
        monkeypatch.setattr(update_index, "build_graphs", partial(build_graphs, min_vectors=1))
        build_missing_graphs(writer)
        assert before.outdated
    assert Index(tmp_path / "index").fingerprint == before.fingerprint
    assert list((tmp_path / "index").rglob("graph-attached-*"))


def test_warm_up_uses_the_fields_of_the_first_stage(tmp_path: Path) -> None:
    """An index without the field `contents` can be warmed up."""
    build_index(DOCUMENTS, tmp_path / "i", Schema(fields={"text": ("text",)}))
    searcher = Searcher(tmp_path / "i", Ranker(WordScorer()), FirstStage(fields={"text": 1.0}))
    searcher.warm_up()
    assert searcher.search("birch").hits


@pytest.mark.slow
def test_warm_up_compiles_what_searches_run(tmp_path: Path) -> None:
    """An empty index compiles it, too: its documents may come while a service runs."""
    script = """
import sys
from birchbark import Document, Searcher
from birchbark.compiled import on_first_compile
from birchbark.index.build_index import build_index

build_index(None, sys.argv[1])
searcher = Searcher(sys.argv[1], model=())
searcher.warm_up()
on_first_compile(lambda: sys.exit("something is compiled later"))
searcher.add([Document("a", {"text": "It is closed on Sundays."})])
assert searcher.search("closed").hits
searcher.add([Document(str(n), {"text": f"no {n % 9}"}) for n in range(17000)])
assert searcher.search("closed no 7").hits
"""
    command = [sys.executable, "-c", script, tmp_path / "index"]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    subprocess.run(command, env=environment, check=True)


def test_progress_of_a_search(index_directory: Path) -> None:
    """The first answer is the first stage's; the number of scored documents grows to the last."""
    searcher = Searcher(index_directory, Ranker(WordScorer()))
    seen: list[Answer] = []

    def watch(answer: Callable[[], Answer]) -> None:
        seen.append(answer())

    last = searcher.search("birch river iron", budget=60, on_progress=watch)
    first = searcher.search("birch river iron", rankers=())
    assert names(seen[0]) == names(first)
    assert not any(hit.scored for hit in seen[0].hits)
    scored = [answer.stats.scored for answer in seen]
    assert scored == sorted(scored)
    assert (scored[0], scored[-1]) == (0, last.stats.scored)
    assert [answer.stats.exact for answer in seen] == [False] * len(seen)
    assert seen[-1].hits == last.hits
    assert last.stats.exact


def test_on_progress_can_end_a_search(index_directory: Path) -> None:
    """Its exception is raised, and the searcher remains usable."""

    class EnoughError(Exception):
        pass

    def stop(answer: Callable[[], Answer]) -> None:
        raise EnoughError

    searcher = Searcher(index_directory, Ranker(WordScorer()))
    with pytest.raises(EnoughError):
        searcher.search("birch", on_progress=stop)
    assert searcher.search("birch").hits


def test_rank_texts() -> None:
    """A text is scored by its best chunk, ties keep the input order, and no text is left out."""
    scorer = WordScorer()
    texts = ["iron", "bees dance", "", "bees dance", "the bees . " * 40 + "dance"]
    ranked = rank("bees dance", texts, scorer)
    assert sorted(text.index for text in ranked) == [0, 1, 2, 3, 4]
    assert [text.index for text in ranked if texts[text.index] == "bees dance"] == [1, 3]
    assert [text.score for text in ranked] == sorted((text.score for text in ranked), reverse=True)
    assert [text.text for text in ranked] == [texts[text.index] for text in ranked]
    parts = {text.index: text.evidence for text in ranked}
    assert (parts[1], parts[2]) == ("bees dance", "")
    assert parts[4] in texts[4]
    assert len(parts[4]) < len(texts[4])
    alone = scorer.score("bees dance", scorer.encode(["bees dance"]))[0]
    assert next(text.score for text in ranked if text.index == 1) == alone
    assert rank("bees dance", texts, scorer, 2) == ranked[:2]
    assert rank("bees dance", [], scorer) == []
    with pytest.raises(InputError, match="top"):
        rank("bees", texts, scorer, 0)
    with pytest.raises(DeadlineError, match="0 of 5 scored"):
        rank("bees", texts, scorer, budget=1e-9)


def test_rank_loads_the_default_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a scorer the default model ranks; concurrent first calls load it once."""
    loaded: list[Scorer] = []

    def load(model: str, *options: object) -> Scorer:
        sleep(0.05)
        loaded.append(WordScorer())
        return loaded[-1]

    monkeypatch.setattr("birchbark.pipeline.loaded_models.load_scorer", load)
    _load_default_ranker.cache_clear()
    texts = ["iron", "bees dance"]
    with ThreadPoolExecutor(4) as pool:
        rankings = [pool.submit(rank, "bees dance", texts) for _ in range(4)]
    _load_default_ranker.cache_clear()
    # cross-encoder, embedding, static embedding, and the embedding in int8
    assert len(loaded) == (4 if has_vnni() else 3)
    expected = rank("bees dance", texts, WordScorer())
    assert all(ranking.result() == expected for ranking in rankings)


def test_rank_in_threads(tmp_path: Path) -> None:
    """Many threads can share one scorer."""
    directory = write_bert(tmp_path / "bert", labels=1)
    shared, alone = load_scorer(directory, session=dynamic_batcher()), load_scorer(directory)
    texts = [document.contents for document in DOCUMENTS]
    with ThreadPoolExecutor(6) as pool:
        rankings = [pool.submit(rank, query, texts, shared) for query in QUERIES * 5]
    for query, ranking in zip(QUERIES * 5, rankings, strict=True):
        assert ranking.result() == rank(query, texts, alone)


def test_the_docstring_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The example runs as written, with the default model."""
    notes = [Document("returns", {"text": "Parcels can be sent back within thirty days."})]
    build_index(notes, tmp_path / "notes.index")
    monkeypatch.chdir(tmp_path)
    assert Searcher.__doc__
    example = Searcher.__doc__.partition("Args:")[0]
    lines = [line[8:] for line in example.splitlines() if line.startswith(" " * 8)]
    exec("\n".join(lines).replace("get my money", "send it"), {})
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first.startswith("returns ")
    assert last.startswith("True ['Parcels")


@pytest.mark.parametrize("shards", [None, 2])
def test_the_working_directory_may_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shards: int | None
) -> None:
    """A searcher and a writer, opened by relative paths, remain usable."""
    monkeypatch.chdir(tmp_path)
    build_index(DOCUMENTS, "index", shards=shards)
    searcher, writer = Searcher("index", ()), open_writer("index")
    monkeypatch.chdir("/")
    with writer:
        writer.add(Document("tree", {"text": "A birch tree."}))
    assert "tree" in names(searcher.search("tree"))


def test_evidence_needs_a_model(index_directory: Path) -> None:
    """A searcher without rankers raises InputError."""
    with pytest.raises(InputError, match="no model to score the document"):
        Searcher(index_directory, ()).evidence("canoe", "birch")


def test_half_of_the_candidates_are_found_by_stored_vectors(
    tmp_path: Path, index_directory: Path
) -> None:
    """This is so by default and for re-ranking, but not with the first stage alone or BY_TERMS."""
    directory = write_bert(tmp_path / "bert")
    with IndexWriter(index_directory) as writer:
        precompute_vectors(load_scorer(directory), sentences, str(directory)).attach(writer)
    ranker = Ranker(WordScorer(), sentences, embedding=load_scorer(directory), depth=4)
    searcher = Searcher(index_directory, ranker)
    found = {hit.document.doc_id for hit in searcher.search("canoe").hits}
    nearest = Searcher(
        index_directory, ranker, vector_match=VectorMatch(2, scores=CandidateScores.FIRST_STAGE)
    )
    by_terms = Searcher(index_directory, ranker, vector_match=BY_TERMS)
    by_terms_found = {hit.document.doc_id for hit in by_terms.search("canoe").hits}
    assert by_terms_found == {"canoe"}
    assert found == by_terms_found | {h.document.doc_id for h in nearest.search("canoe").hits}
    assert len(found) > 1
    assert len(searcher.search("zzzz").hits) == 2
    quick, usual = searcher.search("canoe", candidates="terms"), by_terms.search("canoe")
    assert quick.hits == usual.hits
    assert (quick.stats.exact, usual.stats.exact) == (False, True)
    assert by_terms.search("canoe", candidates="terms").stats.exact  # nothing else would be found
    without = Searcher(index_directory, Ranker(WordScorer()))  # uses no vectors
    assert without.search("canoe", candidates="terms").stats.exact
    for no_model in (searcher.search("canoe", rankers=()), searcher.search("zzzz", rankers=())):
        assert {hit.document.doc_id for hit in no_model.hits} <= {"canoe"}
    searcher.add([Document("boat", {"text": "A boat. A canoe."})])
    assert "boat" in {hit.document.doc_id for hit in searcher.search("canoe").hits}


def test_old_snapshots_leave_no_files_open(tmp_path: Path, index_directory: Path) -> None:
    """Files are closed without the garbage collector, however often the index changes."""
    directory = write_bert(tmp_path / "bert")
    with IndexWriter(index_directory) as writer:
        precompute_vectors(load_scorer(directory), sentences, str(directory)).attach(writer)
    for vector_match in (None, VectorMatch()):
        searcher = Searcher(index_directory, Ranker(WordScorer()), vector_match=vector_match)
        counts = []
        gc.collect()
        gc.disable()
        try:
            for number in range(12):
                searcher.add([Document(f"n{number % 2}", {"text": f"birch {number}"})])
                searcher.search("birch")
                counts.append(len(list(Path("/proc/self/fd").iterdir())))
        finally:
            gc.enable()
        assert max(counts[6:]) <= max(counts[:6])


def test_tokens_are_analyzed_once_until_documents_change(
    tmp_path: Path, index_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Snippets and readers share what is known, also after a commit of vectors."""
    directory = write_bert(tmp_path / "bert")
    searcher = Searcher(index_directory, Ranker(WordScorer(), plan=ReadingPlan(1, 2)))
    known: list[KnownTokens] = []
    matching = KnownTokens.matching

    def watched(self: KnownTokens, *args: Any) -> dict[str, list[str]]:
        known.append(self)
        return matching(self, *args)

    monkeypatch.setattr(KnownTokens, "matching", watched)
    searcher.search("birch river")
    with IndexWriter(index_directory) as writer:
        precompute_vectors(load_scorer(directory), sentences, str(directory)).attach(writer)
    searcher.search("birch river")
    assert len(set(map(id, known))) == 1
    searcher.add([Document("new", {"text": "birch river"})])
    searcher.search("birch river")
    assert len(set(map(id, known))) == 2


@pytest.mark.parametrize("limit", [Limit(length=8), Limit(segments=1)])
def test_evidence_is_of_the_whole_document(index_directory: Path, limit: Limit) -> None:
    """Also if searches read only its beginning."""
    whole = Searcher(index_directory, Ranker(WordScorer())).evidence("canoe", "birch")
    cut = Searcher(index_directory, Ranker(WordScorer(), limit=limit)).evidence("canoe", "birch")
    assert cut.hit.segments == whole.hit.segments
