"""Do static vectors find candidates, choose segments, and stand in for the embedding's?"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.index.writer import IndexWriter
from birchbark.pipeline.dense_engine import DenseEngine
from birchbark.pipeline.open_engine import open_engine
from birchbark.pipeline.search import search
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.settings.reading_plan import ReadingPlan
from birchbark.pipeline.stored.precompute import STATIC, precompute_vectors
from birchbark.pipeline.stored.static_vectors import static_vectors
from birchbark.pipeline.stored.vector_sets import vector_sets
from birchbark.pipeline.upkeep.update_index import Changes, add_documents, attach
from birchbark.records import Document
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.load_scorer import load_scorer
from birchbark.score.vector_quantization import RoundedEmbeddingScorer
from birchbark.segment.sentences import sentences
from conftest import DOCUMENTS, VOCABULARY, write_static

BertFactory = Callable[..., Path]


def table() -> np.ndarray:
    """Random vectors, but "arch" and "stone" are nearly synonyms of "canoe"."""
    rows = np.random.default_rng(5).normal(size=(len(VOCABULARY), 8)).astype(np.float32)
    canoe = rows[VOCABULARY.index("canoe")]
    for word in ("arch", "stone"):
        rows[VOCABULARY.index(word)] = 4 * canoe + 0.05 * rows[VOCABULARY.index(word)]
    return rows


@pytest.fixture
def static(tmp_path: Path) -> EmbeddingScorer:
    scorer = load_scorer(write_static(tmp_path / "static", table()))
    assert isinstance(scorer, EmbeddingScorer)
    return scorer


@pytest.fixture
def ranker(bert: BertFactory, static: EmbeddingScorer) -> Ranker:
    """A cross-encoder with an embedding, for which the static one stands in."""
    return Ranker(
        load_scorer(bert(labels=1, seed=1)),
        sentences,
        embedding=load_scorer(bert(seed=2)),
        static=static,
        plan=ReadingPlan(segments=1, pairs=2, embedded=1, embedded_documents=2),
    )


@pytest.fixture
def directory(tmp_path: Path, static: EmbeddingScorer) -> Path:
    build_index(DOCUMENTS, tmp_path / "index")
    store(tmp_path / "index", static)
    return tmp_path / "index"


def store(directory: Path, scorer: EmbeddingScorer) -> list[str]:
    with IndexWriter(directory) as writer:
        job = precompute_vectors(scorer, sentences, str(scorer.checkpoint.root))
        return attach(writer, [job])


def test_they_are_a_set_apart(directory: Path) -> None:
    """They have 8 bits, and vectors of BERT do not replace them."""
    index = Index(directory)
    assert list(index.attachments) == [STATIC]
    assert vector_sets(index.attachments) == []
    assert index.attachments[STATIC].config["bits"] == 8


def test_a_document_without_the_words_is_found(directory: Path, ranker: Ranker) -> None:
    """Its static vector is near the query's; without static vectors, only words find documents."""
    engine = open_engine(Index(directory), rankers=[ranker])
    assert isinstance(engine, DenseEngine)
    assert "bridge" in engine.rank("canoe", 4).doc_ids  # "Stone arches end it."
    assert engine.rank("canoe", 4).doc_ids[0] == "canoe"
    only_terms = open_engine(Index(directory), rankers=[replace(ranker, static=None)])
    assert "bridge" not in only_terms.rank("canoe", 4).doc_ids


def test_better_vectors_take_their_place(directory: Path, ranker: Ranker) -> None:
    """Those of the embedding find candidates, unless more documents have static ones."""
    assert isinstance(ranker.embedding, EmbeddingScorer)
    store(directory, ranker.embedding)
    embedding = ranker.embedding.outputs_fingerprint
    static = ranker.static
    assert isinstance(static, EmbeddingScorer)

    def fingerprint() -> str:
        engine = open_engine(Index(directory), rankers=[ranker])
        assert isinstance(engine, DenseEngine)
        return engine.embedding.fingerprint

    assert fingerprint() == embedding
    answer = search(open_engine(Index(directory), rankers=[ranker]), "canoe", ranker)
    assert answer.stats.embedded == 0  # all vectors are stored
    with IndexWriter(directory) as writer:
        writer.add(Document("new", {"title": "", "text": "A stone."}))
        writer.commit()
    assert fingerprint() == embedding
    store(directory, static)
    assert fingerprint() == static.outputs_fingerprint


def test_the_embedding_reads_the_most_promising_documents(directory: Path, ranker: Ranker) -> None:
    """One sentence of two documents; the others keep the static evidence, on the same scale."""
    index = Index(directory)
    engine = open_engine(index, rankers=[ranker])
    answer = search(engine, "canoe river", ranker, 5)
    assert answer.stats.embedded == 2
    assert ranker.static
    rounded = RoundedEmbeddingScorer(ranker.static, 8)  # type: ignore[arg-type]
    unread = [hit for hit in answer.hits if not hit.scored]
    assert unread
    for hit in unread:
        texts = [segment.text for segment in sentences(hit.document)]
        scores = np.sort(rounded.score("canoe river", rounded.encode(texts)))[::-1][:3]
        weights = np.array([1, 0.5, 0.25])[: len(scores)]
        expected = 0.8 * 0.5 * float(weights @ scores / weights.sum())
        assert hit.embedding == pytest.approx(expected, abs=1e-6)


def test_all_are_read_if_nothing_limits_them(directory: Path, ranker: Ranker) -> None:
    """The answer is then that without static vectors, if these choose the same segments."""
    everything = replace(ranker, plan=ReadingPlan())
    engine = open_engine(Index(directory), rankers=[replace(ranker, static=None)])
    with_static = search(engine, "canoe river", everything, 5)
    without = search(engine, "canoe river", replace(everything, static=None), 5)
    assert [(h.document.doc_id, h.score) for h in with_static.hits] == [
        (h.document.doc_id, h.score) for h in without.hits
    ]


def test_they_choose_what_the_cross_encoder_reads(directory: Path, ranker: Ranker) -> None:
    """The sentence nearest to the query, although another one has its words."""
    documents = [
        Document("d", {"title": "", "text": "The river river the. Stone stone arch. The paddle."})
    ]
    build_index(documents, directory.parent / "one")
    assert ranker.static
    store(directory.parent / "one", ranker.static)  # type: ignore[arg-type]
    plan = replace(ranker.plan, embedded_documents=1)
    engine = open_engine(Index(directory.parent / "one"), rankers=[ranker])
    for stage, expected in (
        (replace(ranker, plan=plan), "Stone stone arch."),
        (replace(ranker, plan=plan, static=None), "The river river the."),
    ):
        (hit,) = search(engine, "canoe river", stage).hits
        assert [evidence.segment.text for evidence in hit.segments] == [expected]


def test_a_very_long_document_has_them_too(tmp_path: Path, ranker: Ranker) -> None:
    """Its best sentence is found, wherever it is; all characters are considered."""
    text = "The tree the tree. " * 12_000 + "Stone arch canoe. The end."
    build_index([Document("long", {"title": "", "text": text})], tmp_path / "index")
    assert isinstance(ranker.static, EmbeddingScorer)
    store(tmp_path / "index", ranker.static)
    engine = open_engine(Index(tmp_path / "index"), rankers=[ranker])
    answer = search(engine, "canoe", ranker)
    assert answer.hits[0].segments[0].segment.text == "Stone arch canoe."
    assert answer.stats.unsplit_characters == 0


def test_new_documents_get_theirs_when_they_are_added(
    directory: Path, static: EmbeddingScorer
) -> None:
    """New documents get static vectors as they get any attachment."""
    new = Document("arch", {"title": "", "text": "Stone arch."})
    add_documents(directory, Changes([new]), lambda model, **options: load_scorer(model, **options))
    assert Index(directory).missing_rows() == {}


@pytest.mark.parametrize("query", ["canoe", "river bridge", "bees the", "iron"])
def test_what_is_not_read_falls_by_half_its_place_at_most(
    directory: Path, ranker: Ranker, query: str
) -> None:
    """Reading others cannot push a document far below its place by first stage and vectors."""
    engine = open_engine(Index(directory), rankers=[ranker])
    hits = search(engine, query, ranker, 5).hits
    prior = sorted(hits, key=lambda hit: -(hit.first_stage + hit.embedding))
    before = {hit.document.doc_id: place for place, hit in enumerate(prior, 1)}
    for place, hit in enumerate(hits, 1):
        if not hit.scored:
            assert place <= 1.5 * before[hit.document.doc_id] + 1


def test_a_searcher_uses_them(directory: Path, ranker: Ranker) -> None:
    """It also says of which model its vectors are."""
    searcher = Searcher(directory, model=ranker)
    assert "bridge" in [hit.document.doc_id for hit in searcher.search("canoe").hits]


def test_vectors_of_tokens_beside_them_find_no_candidates(
    directory: Path, ranker: Ranker, bert: BertFactory
) -> None:
    """Static vectors do, for late interaction as the embedding, too."""
    late = load_scorer(bert(seed=2), pooling="tokens")
    with IndexWriter(directory) as writer:
        attach(writer, [precompute_vectors(late, sentences, "late")])
    engine = open_engine(Index(directory), rankers=[replace(ranker, embedding=late)])
    assert isinstance(engine, DenseEngine)
    assert "bridge" in engine.rank("canoe", 4).doc_ids


def test_outdated_ones_are_made_anew(directory: Path, static: EmbeddingScorer) -> None:
    """This happens when documents are added after the model has changed; others are refused."""
    folder = static.checkpoint.root
    shutil.rmtree(folder)
    write_static(folder, table() + 1)
    new = Document("arch", {"title": "", "text": "Stone arch."})
    add_documents(directory, Changes([new]), lambda model, **options: load_scorer(model, **options))
    index = Index(directory)
    assert index.missing_rows() == {}
    made_by = index.attachments[STATIC].config["fingerprint"]
    assert made_by == load_scorer(folder).outputs_fingerprint  # type: ignore[attr-defined]


def test_a_line_of_a_long_list_is_found(tmp_path: Path) -> None:
    """No passage of the list is near the query; that with its words is read all the same."""
    lines = [f"Article number {i} is on shelf {i % 17} in the store room." for i in range(300)]
    wanted = "The umbrella stand by the door was made by Harald the carpenter."
    document = Document("list", {"text": "\n".join([*lines, wanted])})
    build_index([document], tmp_path / "index")
    with IndexWriter(tmp_path / "index") as writer:
        attach(writer, [static_vectors()])
    [hit] = Searcher(tmp_path / "index").search("umbrella stand carpenter").hits
    assert hit.segments[0].text == wanted
