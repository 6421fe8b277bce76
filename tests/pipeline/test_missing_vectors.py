"""Which documents have no vectors, and do searches treat them as if they had never been stored?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from birchbark import defaults
from birchbark.checkpoint.locate import locate, name_of
from birchbark.combine.aggregate import Sum, Top, TopMean
from birchbark.errors import InputError
from birchbark.index.attachment_schema import AttachmentSchema, RowForm
from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.index.writer import IndexWriter
from birchbark.pipeline import missing_vectors
from birchbark.pipeline.missing_vectors import MissingVectors
from birchbark.pipeline.reading import document_reader
from birchbark.pipeline.reading.candidates import Candidates
from birchbark.pipeline.search import search
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.settings.reading_plan import ReadingPlan
from birchbark.pipeline.stored import vector_scorer
from birchbark.pipeline.stored.precompute import VECTORS, precompute_vectors
from birchbark.pipeline.stored.static_vectors import static_vectors
from birchbark.pipeline.stored.stored_embedding import open_stored_embedding
from birchbark.pipeline.stored.stored_segments import PrecomputedSegments
from birchbark.pipeline.stored.vector_sets import count_missing
from birchbark.pipeline.upkeep.update_index import Changes, add_documents
from birchbark.records import Document, Ranking
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.vector_match import BY_TERMS
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.load_scorer import load_scorer
from birchbark.score.precision import Precision
from birchbark.score.scorer import Scorer
from birchbark.segment.by_name import Segmenter, parse_segmenter
from birchbark.segment.sentences import sentences
from birchbark.segment.truncate import Limit
from birchbark.segment.windows import Windows
from conftest import DOCUMENTS, VOCABULARY, WordScorer, write_static

LONG = Document("long", {"text": "The birch river. " * 20})
EMPTY = Document("empty", {"text": ""})


def attach(where: Path, model: Path, fast: Scorer | None = None) -> None:
    with IndexWriter(where) as writer:
        precompute_vectors(load_scorer(model), sentences, str(model), fast=fast).attach(writer)


def test_vectors_do_not_depend_on_batches_and_leave_the_cache_alone(
    tmp_path: Path, bert: Callable[..., Path]
) -> None:
    """`on_batch` is called before each document is split and each batch is embedded."""
    model = bert()
    stored = []
    for number, tokens in enumerate((1, 9, 8192)):
        calls = Counter[str]()
        build_index([*DOCUMENTS, LONG, EMPTY], tmp_path / f"{number}")
        scorer = load_scorer(model)
        assert isinstance(scorer, EmbeddingScorer)
        job = precompute_vectors(
            scorer, sentences, "m", batch_tokens=tokens, on_batch=partial(calls.update, ["call"])
        )
        with IndexWriter(tmp_path / f"{number}") as writer:
            job.attach(writer)
        assert not scorer._cached
        index = Index(tmp_path / f"{number}")
        vectors = index.attachment(VECTORS)
        assert vectors
        rows = [r for r in vectors.rows([d.doc_id for d in index]) if r is not None]
        count = sum(len(r["vectors"]) for r in rows)
        assert calls["call"] >= len(index) + 1
        assert tokens > 1 or calls["call"] == len(index) + count
        stored.append(np.concatenate([r["vectors"] for r in rows]))
    assert (stored[0] == stored[1]).all()
    assert (stored[0] == stored[2]).all()


def test_only_complete_attachments_are_completed(tmp_path: Path, bert: Callable[..., Path]) -> None:
    """Adding a document computes its vectors unless other documents lack theirs."""
    model = bert()
    loaded: list[str] = []

    def load(name: str, *, pooling: str | None = None) -> Scorer:
        loaded.append(name)
        return load_scorer(name)

    build_index(DOCUMENTS, tmp_path / "i")
    attach(tmp_path / "i", model)
    add_documents(tmp_path / "i", Changes([LONG]), load)
    assert loaded == [str(model)]
    assert count_missing(Index(tmp_path / "i"), VECTORS) == 0
    add_documents(
        tmp_path / "i", Changes([Document("b", {"text": "bee"})]), load, leave_out=[VECTORS]
    )
    assert count_missing(Index(tmp_path / "i"), VECTORS) == 1
    add_documents(tmp_path / "i", Changes([Document("c", {"text": "bee"})]), load)
    assert count_missing(Index(tmp_path / "i"), VECTORS) == 2
    assert loaded == [str(model)]
    attach(tmp_path / "i", model)
    assert count_missing(Index(tmp_path / "i"), VECTORS) == 0


def test_documents_are_embedded_in_int8_where_that_is_fast(
    tmp_path: Path, bert: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The vectors are those of the int8 copy, the query's is float32, and sets do not differ."""
    model = str(bert())
    precise, fast = load_scorer(model), load_scorer(model, precision=Precision.INT8)
    assert isinstance(fast, EmbeddingScorer)
    monkeypatch.setattr(defaults, "INT8_EMBEDDINGS", (model,))
    monkeypatch.setattr(vector_scorer, "fastest_precision", lambda: Precision.INT8)
    build_index(DOCUMENTS[:2], tmp_path / "i")
    attach(tmp_path / "i", Path(model), vector_scorer.fast_copy(model, load_scorer))
    add_documents(tmp_path / "i", Changes(DOCUMENTS[2:]), load_scorer)
    index = Index(tmp_path / "i")
    vectors = index.attachment(VECTORS)
    assert vectors
    stored = PrecomputedSegments(index, precise, sentences)
    for document in DOCUMENTS:
        [rows] = vectors.rows([document.doc_id])
        segments = fast.encode([segment.text for segment in sentences(document)])
        expected = fast.embed(segments).astype(np.float16)
        assert rows is not None
        assert (rows["vectors"] == expected).all()
        [scores] = stored.scores("birch", [document.doc_id])
        assert isinstance(precise, EmbeddingScorer)
        assert (scores == precise.cosines("birch", expected.astype(np.float32))).all()


def test_an_index_without_vectors_lacks_those_of_all_documents(index: Index) -> None:
    """They count as missing."""
    assert count_missing(index, VECTORS) == len(DOCUMENTS)


def test_slices_give_the_vectors_of_attaching(tmp_path: Path, bert: Callable[..., Path]) -> None:
    """A computation that is ended changes nothing; each slice is searched with at once."""
    model = bert()
    ranker = Ranker(load_scorer(bert(labels=1)), sentences, embedding=load_scorer(model))
    for name in ("i", "j"):
        build_index([*DOCUMENTS, LONG, EMPTY], tmp_path / name)
    attach(tmp_path / "j", model)
    searcher = Searcher(tmp_path / "i", ranker)
    vectors = MissingVectors.of(searcher)
    assert vectors

    def end() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        vectors.compute_slice(end)
    assert VECTORS not in searcher.index.attachments
    with patch.object(missing_vectors, "SLICE_DOCUMENTS", 2):
        left = []
        while done := vectors.compute_slice():
            left.append(vectors.documents)
            assert searcher.search("birch river").stats.exact
            assert done <= 2
    assert left == [5, 3, 1, 0]
    stored, attached = (Index(tmp_path / name).attachment(VECTORS) for name in ("i", "j"))
    assert stored
    assert attached
    assert stored.schema == attached.schema
    ids = [document.doc_id for document in searcher.index]
    for ours, theirs in zip(stored.rows(ids), attached.rows(ids), strict=True):
        assert ours is not None
        assert theirs is not None
        assert all((ours[name] == theirs[name]).all() for name in theirs)


def test_other_vectors_are_neither_replaced_nor_completed(
    tmp_path: Path, bert: Callable[..., Path]
) -> None:
    """These are vectors of another model, of other segments, or of another program."""
    model, other = bert(), bert(seed=1)
    cross = load_scorer(bert(labels=1))
    build_index(DOCUMENTS, tmp_path / "i")
    attach(tmp_path / "i", model)
    add_documents(tmp_path / "i", Changes([LONG]), load_scorer, leave_out=[VECTORS])

    def vectors(embedding: Path, segmenter: Segmenter = sentences) -> MissingVectors:
        ranker = Ranker(cross, segmenter, embedding=load_scorer(embedding))
        found = MissingVectors.of(Searcher(tmp_path / "i", ranker))
        assert found
        return found

    for unfit in (vectors(other), vectors(model, Windows(9, 3))):
        assert unfit.documents is None
        assert unfit.compute_slice() == 0
    assert vectors(model).documents == 1
    with IndexWriter(tmp_path / "i") as writer:
        schema = AttachmentSchema({"of": "others"}, {"vectors": RowForm("uint32")})
        writer.attach(VECTORS, schema, lambda ds: [{"vectors": np.zeros(1, np.uint32)} for _ in ds])
    assert vectors(model).documents is None
    add_documents(tmp_path / "i", Changes([Document("more", {"text": "Bees."})]), load_scorer)
    with pytest.raises(InputError, match="were stored by another program"):
        open_stored_embedding(Index(tmp_path / "i"), VECTORS, load_scorer, None)


def test_only_some_rankers_can_use_vectors(bert: Callable[..., Path]) -> None:
    """They need an embedding, a segmenter with a name, and no limit."""
    cross, embedding = load_scorer(bert(labels=1)), load_scorer(bert())
    assert Ranker(cross, embedding=embedding).vector_scorer is embedding
    assert Ranker(embedding).vector_scorer is embedding
    assert not Ranker(cross).vector_scorer
    assert not Ranker(cross, embedding=embedding, limit=Limit(2)).vector_scorer
    assert not Ranker(embedding, limit=Limit(2)).vector_scorer
    assert not Ranker(cross, lambda d: sentences(d), embedding=embedding).vector_scorer
    assert not Ranker(cross, embedding=cross).vector_scorer


def test_a_stored_model_has_the_name_that_loads_it(
    bert: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bundled model keeps its name; another has its absolute path."""
    monkeypatch.chdir(bert().parent)
    folder = Path(bert().name)
    assert name_of(folder) == str(folder.resolve())
    assert name_of(locate(defaults.EMBEDDING)) == defaults.EMBEDDING
    for model in (folder, defaults.EMBEDDING):
        scorer = load_scorer(model)
        assert isinstance(scorer, EmbeddingScorer)
        assert load_scorer(name_of(scorer.checkpoint.root)).fingerprint == scorer.fingerprint


def test_storing_vectors_splits_no_document_again(
    tmp_path: Path, bert: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was split stays in memory while only vectors change, and not when documents do."""
    plan = ReadingPlan(segments=2, embedded=1)
    ranker = Ranker(load_scorer(bert(labels=1)), embedding=load_scorer(bert()), plan=plan)
    build_index(DOCUMENTS, tmp_path / "i")
    searcher = Searcher(tmp_path / "i", ranker, vector_match=BY_TERMS)
    before = searcher.search("birch river", top=5)
    vectors = MissingVectors.of(searcher)
    assert vectors
    monkeypatch.setattr(missing_vectors, "SLICE_DOCUMENTS", 1)
    real = document_reader.split_for_query

    def refuse(document: Document, *arguments: object) -> object:
        raise AssertionError(f"{document.doc_id} is split again")

    for _ in DOCUMENTS:
        assert vectors.compute_slice() == 1
        with monkeypatch.context() as patched:
            patched.setattr(document_reader, "split_for_query", refuse)
            found = searcher.search("birch river", top=5)
        assert {h.document.doc_id for h in found.hits} == {h.document.doc_id for h in before.hits}
    split: list[str] = []

    def record(document: Document, *arguments: object) -> object:
        split.append(document.fields["text"])
        return real(document, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(document_reader, "split_for_query", record)
    changed = Document("canoe", {"text": "A birch river. It is new."})
    searcher.add([changed], leave_out=[VECTORS])
    assert "canoe" in {hit.document.doc_id for hit in searcher.search("birch river", top=5).hits}
    assert changed.fields["text"] in split


@pytest.mark.parametrize("embedded", [1, 2])
def test_documents_with_and_without_vectors_are_comparable(
    tmp_path: Path, bert: Callable[..., Path], embedded: int
) -> None:
    """Of equal documents, none precedes because its vectors are stored."""
    model = bert()
    texts = {"one": "A birch river.", "three": "A birch river. " * 3, "many": "A birch river. " * 9}
    documents = [Document(name, {"text": text}) for name, text in texts.items()]
    build_index(documents, tmp_path / "i")
    attach(tmp_path / "i", model)
    again = [Document(f"{n} without", {"text": t, "set": "2"}) for n, t in texts.items()]
    add_documents(tmp_path / "i", Changes(again), load_scorer, leave_out=[VECTORS])
    plan = ReadingPlan(segments=2, embedded=embedded)
    ranker = Ranker(load_scorer(bert(labels=1)), embedding=load_scorer(model), plan=plan)
    hits = search(IndexEngine(Index(tmp_path / "i")), "birch river", ranker, 10).hits
    scores = {hit.document.doc_id: hit.embedding for hit in hits}
    assert len(scores) == 2 * len(texts)
    for name in texts:
        assert scores[f"{name} without"] == pytest.approx(scores[name], rel=1e-3)


def test_without_time_documents_with_vectors_do_not_precede_all_others(
    tmp_path: Path, bert: Callable[..., Path]
) -> None:
    """Among documents without vectors the first stage decides, as if they were average ones."""
    model = bert()
    texts = [f"The birch {'birch ' * n} by a river. The bee is here {n}." for n in range(6)]
    documents = [Document(f"d{n}", {"text": text}) for n, text in enumerate(texts)]
    build_index(documents[::2], tmp_path / "i")
    attach(tmp_path / "i", model)
    add_documents(tmp_path / "i", Changes(documents[1::2]), load_scorer, leave_out=[VECTORS])
    plan = ReadingPlan(segments=2, embedded=1)
    ranker = Ranker(load_scorer(bert(labels=1)), embedding=load_scorer(model), plan=plan)
    engine = IndexEngine(Index(tmp_path / "i"))
    first = search(engine, "birch", (), 10).hits
    hits = search(engine, "birch", ranker, 10, 1e-9).hits
    with_vectors = {d.doc_id for d in documents[::2]}
    known = [hit.embedding for hit in hits if hit.document.doc_id in with_vectors]
    assumed = [hit for hit in hits if hit.document.doc_id not in with_vectors]
    assert all(min(known) <= hit.embedding <= max(known) for hit in assumed)
    order = [hit.document.doc_id for hit in first if hit.document.doc_id not in with_vectors]
    assert [hit.document.doc_id for hit in assumed] == order


def test_assumed_evidence_is_as_high_as_the_document_in_the_first_stage() -> None:
    """The second of six has the best of four known values, the fifth the last but one."""
    ranker = Ranker(WordScorer(), embedding=WordScorer())
    table = Candidates(ranker, Ranking.of(list("abcdef"), np.arange(6, 0, -1)))
    table.embedding[[0, 2, 3, 5]] = 0.25, 0.75, 0.125, 0.5
    table.assume_embedding([1, 4])
    assert table.embedding.tolist() == [0.25, 0.75, 0.75, 0.125, 0.25, 0.5]


@pytest.mark.parametrize("has_static", [True, False])
def test_static_vectors_are_those_of_the_bundled_model(
    bert: Callable[..., Path], tmp_path: Path, has_static: bool
) -> None:
    """Another static embedding's are computed in searches, and not stored in their place."""
    table = np.random.default_rng(0).normal(size=(len(VOCABULARY), 16)).astype(np.float32)
    other = write_static(tmp_path / "other", table)
    index = build_index(DOCUMENTS, tmp_path / "i")
    own = static_vectors()
    if has_static:
        with IndexWriter(index.directory) as writer:
            own.attach(writer)
    passages = parse_segmenter(defaults.SEGMENTS)
    cross = load_scorer(bert(labels=1))
    for name, segmenter, expected in (
        (other, passages, None),
        (defaults.STATIC_EMBEDDING, sentences, None),
        (defaults.STATIC_EMBEDDING, passages, 0 if has_static else len(DOCUMENTS)),
    ):
        ranker = Ranker(cross, segmenter, embedding=load_scorer(name))
        missing = MissingVectors.of(Searcher(tmp_path / "i", ranker))
        assert missing
        assert missing.documents == expected
        assert missing.set_name == (None if expected is None else "static")


def test_evidence_of_some_segments_is_raised_to_that_of_all() -> None:
    """By the share that they can have of the highest evidence; a mean stays as it is."""
    for aggregation, of_two in ((Top((1, 0.5, 0.25)), 0.875), (Sum(), 1.875), (TopMean(), 0.75)):
        ranker = Ranker(WordScorer(), aggregation=aggregation, embedding=WordScorer())
        table = Candidates(ranker, Ranking.of(["a", "b"], [2, 1]))
        for segments, expected in ((5, of_two), (2, 0.75), (1, 0.75)):
            table.record_split(1, segments)
            table.embedding[:] = 0.75
            table.complete_embedding(1, 2)
            assert table.embedding.tolist() == pytest.approx([0.75, expected])
