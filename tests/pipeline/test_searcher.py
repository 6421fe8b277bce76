"""Is a Searcher what `search` is, asked by many at once, while its index changes?"""

from __future__ import annotations

import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest

from birchbark.combine.aggregate import Top
from birchbark.combine.interpolate import Interpolation
from birchbark.errors import ArtifactError, InputError, LateError
from birchbark.index.attachment_schema import AttachmentSchema, RowForm
from birchbark.index.build import Schema, build_index
from birchbark.index.reader import Index
from birchbark.index.writer import IndexWriter
from birchbark.pipeline import searcher as searchers
from birchbark.pipeline.answer import Answer
from birchbark.pipeline.dense import Near
from birchbark.pipeline.keeping import VECTORS, vectors
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.search import search
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.texts import rank_texts
from birchbark.records import Document
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import FirstStage
from birchbark.score.model import load_scorer
from birchbark.score.together import together
from birchbark.segment.sentences import sentences
from conftest import DOCUMENTS, WordScorer, write_bert

QUERIES = ("birch river", "bees", "iron", "steam engine", "stone", "forest bridge")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """An index with one field to filter by."""
    kinds = {"canoe": "water", "bridge": "water"}
    marked = [
        replace(d, fields={**d.fields, "kind": kinds.get(d.doc_id, "land")}) for d in DOCUMENTS
    ]
    build_index(marked, tmp_path / "index", Schema(keywords=("kind",)))
    return tmp_path / "index"


def names(answer: Answer) -> list[str]:
    return [hit.document.doc_id for hit in answer.hits]


def test_answers_are_those_of_search(place: Path) -> None:
    """Hits, evidence and work, whatever is chosen for one search."""
    searcher = Searcher(place, Ranker(WordScorer()))
    engine = IndexEngine(Index(place))
    for text in QUERIES:
        assert searcher.search(text).hits == search(engine, text, Ranker(WordScorer())).hits
        (own,) = searcher.rankers
        other = replace(own, depth=2, aggregation=Top((1.0,)), interpolation=Interpolation(0.9))
        expected = search(engine, text, replace(other, scorer=WordScorer()), 3)
        assert searcher.search(text, 3, rankers=other) == expected
        assert searcher.search(text, rankers=None).hits == search(engine, text, None).hits
    only = searcher.search("birch river", filters={"kind": "water"})
    stage = FirstStage(filters={"kind": "water"})
    assert (
        only.hits
        == search(IndexEngine(Index(place), stage), "birch river", Ranker(WordScorer())).hits
    )
    assert set(names(only)) == {"canoe", "bridge"}


def test_nothing_is_scored_twice(place: Path) -> None:
    """Asked again, with other weights too, no pair is computed, and no score is another."""
    searcher = Searcher(place, Ranker(WordScorer()))
    first = searcher.search("birch river")
    (own,) = searcher.rankers
    computed = own.scorer.scored  # type: ignore[attr-defined]
    assert computed
    assert searcher.search("birch river") == first
    searcher.search("birch river", rankers=replace(own, interpolation=Interpolation(0.0)))
    assert own.scorer.scored == computed  # type: ignore[attr-defined]


def test_many_threads_get_what_one_gets(tmp_path: Path, place: Path) -> None:
    """Two hundred searches from eight threads, by a real (tiny) BERT."""
    directory = write_bert(tmp_path / "bert", labels=1)
    alone = Searcher(place, directory)
    expected = {text: alone.search(text).hits for text in QUERIES}
    shared = Searcher(place, directory)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(shared.search, QUERIES * 33))
    for text, answer in zip(QUERIES * 33, found, strict=True):
        assert answer.hits == expected[text]


def test_changes_are_seen_by_the_next_search(place: Path) -> None:
    """Its own, another's, and those of an index that was built anew."""
    searcher = Searcher(place, Ranker(WordScorer()))
    new = Document("tree", {"title": "Tree", "text": "A birch tree.", "kind": "land"})
    assert searcher.add([new, replace(DOCUMENTS[0], fields={"text": "A river."})]) == (1, 1)
    assert names(searcher.search("birch")) == ["tree", "forest"]
    assert searcher.documents(["tree"]) == [new]
    with IndexWriter(place) as writer:
        writer.delete("tree")
    assert names(searcher.search("birch")) == ["forest"]
    assert searcher.delete(["forest", "nobody"]) == 1
    assert names(searcher.search("birch")) == []
    build_index(DOCUMENTS, place, replace=True)
    assert set(names(searcher.search("birch"))) == {"canoe", "forest"}


def test_a_search_that_has_begun_is_not_disturbed(place: Path) -> None:
    """All documents are deleted, and their files removed, while it reads."""
    begun, may_go_on = Event(), Event()

    class Waiting(WordScorer):
        def score(self, query, pieces):  # type: ignore[no-untyped-def]
            begun.set()
            assert may_go_on.wait(10)
            return super().score(query, pieces)

    searcher = Searcher(place, Ranker(Waiting()))
    expected = search(IndexEngine(Index(place)), "birch river", Ranker(WordScorer())).hits
    found: list[Answer] = []
    thread = Thread(target=lambda: found.append(searcher.search("birch river")))
    thread.start()
    assert begun.wait(10)
    searcher.delete([document.doc_id for document in DOCUMENTS])
    may_go_on.set()
    thread.join(10)
    assert found[0].hits == expected
    assert searcher.search("birch river").hits == ()


def test_a_document_that_cannot_be_kept_changes_nothing(place: Path) -> None:
    """Nor do those that came with it; a second writer is refused, and later let in."""
    searcher = Searcher(place, Ranker(WordScorer()))
    with pytest.raises(InputError, match="half a character"):
        searcher.add([Document("good", {"text": "birch"}), Document("bad", {"text": "\ud800"})])
    assert "good" not in names(searcher.search("birch"))
    with IndexWriter(place), pytest.raises(ArtifactError):
        searcher.delete(["canoe"])
    assert searcher.delete(["canoe"]) == 1


def test_vectors_are_kept_of_what_is_added(tmp_path: Path, place: Path) -> None:
    """And found by; filters hold for them as well."""
    directory = write_bert(tmp_path / "bert")
    with IndexWriter(place) as writer:
        vectors(load_scorer(directory), sentences, str(directory)).attach(writer)
    searcher = Searcher(place, (), near=Near())
    searcher.add([Document("tree", {"text": "A tree.", "kind": "land"})])
    assert not searcher.index.incomplete()
    assert searcher.index.attachment(VECTORS)
    assert len(searcher.search("tree").hits) == 6
    assert set(names(searcher.search("tree", filters={"kind": "water"}))) == {"canoe", "bridge"}


def test_what_another_model_made_is_refused_before_any_change(tmp_path: Path, place: Path) -> None:
    """The document is not there afterwards; what others attached is passed over."""
    one, other = (write_bert(tmp_path / name, seed=n) for n, name in enumerate(("one", "other")))
    with IndexWriter(place) as writer:
        vectors(load_scorer(one), sentences, str(other)).attach(writer)
    searcher = Searcher(place, Ranker(WordScorer()))
    with pytest.raises(InputError, match="made by another model"):
        searcher.add([Document("tree", {"text": "A tree."})])
    assert searcher.index.find("tree") is None
    with IndexWriter(place) as writer:
        writer.detach(VECTORS)
        schema = AttachmentSchema({"of": "others"}, {"lengths": RowForm("uint32")})
        rows = {"lengths": np.array([1], np.uint32)}
        writer.attach("theirs", schema, lambda documents: iter([rows] * len(documents)))
    assert searcher.add([Document("tree", {"text": "A tree."})]) == (1, 0)


def test_graphs_are_made_of_what_is_added(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where so many vectors lack one that it pays, and the package is there."""
    asked: list[str] = []
    monkeypatch.setattr(searchers, "installed", lambda: True)
    monkeypatch.setattr(searchers, "without_graphs", lambda index: len(index))
    monkeypatch.setattr(searchers, "make_graphs", lambda writer, advance: asked.append("made"))
    Searcher(place, ()).add([Document("tree", {"text": "A tree."})])
    assert asked == ["made"]


def test_a_first_stage_of_other_fields_is_warmed_up(tmp_path: Path) -> None:
    """As it searches: an index without the field `contents` is one as well."""
    build_index(DOCUMENTS, tmp_path / "i", Schema(fields={"text": ("text",)}))
    searcher = Searcher(tmp_path / "i", Ranker(WordScorer()), FirstStage(fields={"text": 1.0}))
    searcher.warm_up()
    assert searcher.search("birch").hits


def test_a_search_can_be_watched(place: Path) -> None:
    """First the first stage's hits; then more are settled; the answer is the last of them."""
    searcher = Searcher(place, Ranker(WordScorer()))
    seen: list[Answer] = []

    def watch(answer: Callable[[], Answer]) -> None:
        seen.append(answer())

    last = searcher.search("birch river iron", budget=60, watch=watch)
    first = searcher.search("birch river iron", rankers=None)
    assert names(seen[0]) == names(first)
    assert not any(hit.settled for hit in seen[0].hits)
    settled = [answer.work.settled for answer in seen]
    assert settled == sorted(settled)
    assert (settled[0], settled[-1]) == (0, last.work.settled)
    assert [answer.work.exact for answer in seen] == [False] * len(seen)
    assert seen[-1].hits == last.hits
    assert last.work.exact


def test_a_watcher_can_end_a_search(place: Path) -> None:
    """What it raises comes out; the searcher goes on."""

    class EnoughError(Exception):
        pass

    def stop(answer: Callable[[], Answer]) -> None:
        raise EnoughError

    searcher = Searcher(place, Ranker(WordScorer()))
    with pytest.raises(EnoughError):
        searcher.search("birch", watch=stop)
    assert searcher.search("birch").hits


def test_texts_are_ranked_as_the_scorer_says() -> None:
    """Each by its best chunk; equal ones in the order given; none is left out."""
    scorer = WordScorer()
    texts = ["iron", "bees dance", "", "bees dance", "the bees . " * 40 + "dance"]
    found = rank_texts("bees dance", texts, scorer)
    assert sorted(one.place for one in found) == [0, 1, 2, 3, 4]
    assert [one.place for one in found if texts[one.place] == "bees dance"] == [1, 3]
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    alone = scorer.score("bees dance", scorer.encode(["bees dance"]))[0]
    assert next(one.score for one in found if one.place == 1) == alone
    assert rank_texts("bees dance", texts, scorer, 2) == found[:2]
    assert rank_texts("bees dance", [], scorer) == []
    with pytest.raises(InputError, match="top"):
        rank_texts("bees", texts, scorer, 0)
    with pytest.raises(LateError, match="0 of 5 read"):
        rank_texts("bees", texts, scorer, budget=1e-9)


def test_threads_share_a_model_of_their_own_making(tmp_path: Path) -> None:
    """`rank_texts` may be called from many threads with one scorer."""
    directory = write_bert(tmp_path / "bert", labels=1)
    shared, alone = load_scorer(directory, session=together()), load_scorer(directory)
    texts = [document.contents for document in DOCUMENTS]
    with ThreadPoolExecutor(6) as pool:
        found = [pool.submit(rank_texts, query, texts, shared) for query in QUERIES * 5]
    for query, one in zip(QUERIES * 5, found, strict=True):
        assert one.result() == rank_texts(query, texts, alone)


def test_its_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it stands in its description, with the default model."""
    notes = [Document("returns", {"text": "Parcels can be sent back within thirty days."})]
    build_index(notes, tmp_path / "notes.index")
    monkeypatch.chdir(tmp_path)
    assert Searcher.__doc__
    lines = [line[8:] for line in Searcher.__doc__.splitlines() if line.startswith(" " * 8)]
    exec("\n".join(lines).replace("get my money", "send it"), {})
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first.startswith("returns ")
    assert last.startswith("True ['Parcels")


def test_evidence_needs_a_model(place: Path) -> None:
    """A searcher of the first stage alone reads nothing."""
    with pytest.raises(InputError, match="no model to read the document by"):
        Searcher(place, ()).evidence("canoe", "birch")


def test_old_snapshots_leave_no_files_open(tmp_path: Path, place: Path) -> None:
    """However often an index changes, and without waiting for the garbage collector."""
    directory = write_bert(tmp_path / "bert")
    with IndexWriter(place) as writer:
        vectors(load_scorer(directory), sentences, str(directory)).attach(writer)
    for near in (None, Near()):
        searcher = Searcher(place, Ranker(WordScorer()), near=near)
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
