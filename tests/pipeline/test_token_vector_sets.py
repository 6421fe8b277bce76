"""Does an index with a vector per token rank by late interaction as computing them would?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from birchbark.errors import ArtifactError, InputError
from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.index.writer import IndexWriter
from birchbark.pipeline.dense_engine import DenseEngine
from birchbark.pipeline.load_rankers import load_ranker
from birchbark.pipeline.missing_vectors import MissingVectors
from birchbark.pipeline.open_engine import open_engine
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.search import search
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.settings.reading_plan import ReadingPlan
from birchbark.pipeline.stored.precompute import (
    load_precomputations,
    precompute_tokens,
    precompute_vectors,
)
from birchbark.pipeline.stored.vector_sets import count_missing, searched_sets, vector_sets
from birchbark.pipeline.upkeep.update_index import (
    Changes,
    add_documents,
    attach,
    complete_attachments,
)
from birchbark.records import Document, Query, Run
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import rank_queries
from birchbark.retrieve.vector_match import VectorMatch
from birchbark.score.load_scorer import load_scorer
from birchbark.score.scorer import Scorer
from birchbark.segment.sentences import sentences
from conftest import DOCUMENTS

BertFactory = Callable[..., Path]
QUERIES = [Query("1", "birch river"), Query("2", "iron engine bee"), Query("3", "zeppelin")]
LONG = Document("long", {"title": "Birch", "text": "birch river canoe " * 30 + ". Iron engine."})


def late(model: Path) -> Scorer:
    return load_scorer(model, pooling="tokens")


def store(directory: Path, model: Path, bits: int | None = None) -> list[str]:
    with IndexWriter(directory) as writer:
        return attach(writer, [precompute_vectors(late(model), sentences, str(model), bits)])


def ranked(store: Index, ranker: Ranker) -> Run:
    return rerank(store, rank_queries(store, QUERIES), QUERIES, ranker, tag="t")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    build_index([*DOCUMENTS, LONG], tmp_path / "i")
    return tmp_path / "i"


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("role", ["alone", "embedding"])
def test_stored_vectors_rank_as_computed_ones(
    tmp_path: Path, bert: BertFactory, bits: int, role: str
) -> None:
    """Bit for bit, for all or some documents, before and after a merge, with or without tokens."""
    model, cross = bert(), load_scorer(bert(labels=1))
    ranker = (
        Ranker(late(model), sentences)
        if role == "alone"
        else Ranker(cross, sentences, embedding=late(model))
    )
    plain = ranked(build_index([*DOCUMENTS, LONG], tmp_path / "p"), ranker)
    results = []
    for name, before, after in (("all", [*DOCUMENTS, LONG], []), ("some", DOCUMENTS, [LONG])):
        build_index(before, tmp_path / name)
        store(tmp_path / name, model, bits)
        with IndexWriter(tmp_path / name) as writer:
            for document in after:
                writer.add(document)
        results.append(ranked(Index(tmp_path / name), ranker))
    with IndexWriter(tmp_path / "some") as writer:
        complete_attachments(writer, load_precomputations(writer, load_scorer))
        writer.merge()
        precompute_tokens(late(model), sentences, str(model)).attach(writer)
    results.append(ranked(Index(tmp_path / "some"), ranker))
    assert results[0] == results[1] == results[2]
    assert results[0] != plain
    for query_id, ranking in plain.rankings.items():
        exact, rounded = dict(ranking), dict(results[0].rankings[query_id])
        assert rounded.keys() == exact.keys()
        assert all(abs(rounded[d] - exact[d]) < (0.01 if bits == 8 else 0.1) for d in exact)


def test_every_candidate_is_scored_without_reading(directory: Path, bert: BertFactory) -> None:
    """The scores also choose the segments that the cross-encoder reads."""
    model, cross = bert(), load_scorer(bert(labels=1))
    plan = ReadingPlan(segments=1, documents=2, embedded=1)
    ranker = Ranker(cross, sentences, embedding=late(model), plan=plan)
    store(directory, model)
    index = Index(directory)
    stats = search(IndexEngine(index), "birch river", ranker, 9).stats
    assert (stats.by_vectors, stats.embedded, stats.pairs) == (stats.candidates, 0, 2)
    (read, *_) = search(IndexEngine(index), "birch river", ranker, 1).hits
    texts = [segment.text for segment in sentences(read.document)]
    alone = search(IndexEngine(index), "birch river", Ranker(late(model), sentences), 9).hits
    (same,) = [hit for hit in alone if hit.document == read.document]
    best = max(same.segments, key=lambda evidence: evidence.score)
    assert len(texts) > 1
    assert [evidence.segment for evidence in read.segments] == [best.segment]


def test_a_late_interaction_model_ranks_alone(bert: BertFactory) -> None:
    """It reads all segments, as an embedding model does, and no other embedding is beside it."""
    ranker = load_ranker(model=str(bert(labels=1)), pooling="tokens", first_stage_weight=0)
    assert ranker.embedding is None
    assert ranker.plan.segments is None
    assert ranker.vector_scorer is ranker.scorer


def test_token_vectors_find_no_candidates(directory: Path, bert: BertFactory) -> None:
    """A first stage uses the set with a vector per segment; a set of token vectors is refused."""
    model = bert()
    assert store(directory, model) == ["vectors"]
    index = Index(directory)
    assert (vector_sets(index.attachments), searched_sets(index.attachments)) == (["vectors"], [])
    by_terms = open_engine(index, rankers=[Ranker(late(model), sentences)])
    assert not isinstance(by_terms, DenseEngine)
    for name in ("vectors", None):
        with pytest.raises(InputError, match="vectors of tokens find no candidates"):
            open_engine(index, match=VectorMatch(vectors=name), load=load_scorer)
    assert Searcher(directory, Ranker(late(model), sentences)).vectors_model is None
    with IndexWriter(directory) as writer:
        single = precompute_vectors(load_scorer(model), sentences, str(model))
        assert attach(writer, [single]) == ["vectors-2"]
    index = Index(directory)
    engine = open_engine(index, match=VectorMatch(), load=load_scorer)
    assert isinstance(engine, DenseEngine)
    assert set(engine.rank("birch river", 3).doc_ids) <= {d.doc_id for d in (*DOCUMENTS, LONG)}
    by_terms = open_engine(index, rankers=[Ranker(late(model), sentences)])
    assert not isinstance(by_terms, DenseEngine)
    assert isinstance(
        open_engine(index, rankers=[Ranker(load_scorer(model), sentences)]), DenseEngine
    )


def test_one_model_has_a_set_of_each_kind(directory: Path, bert: BertFactory) -> None:
    """Storing one kind again, in other bits, replaces this kind; both are kept up to date."""
    model = bert()
    with IndexWriter(directory) as writer:
        attach(writer, [precompute_vectors(load_scorer(model), sentences, str(model))])
    assert store(directory, model) == store(directory, model, 4) == ["vectors-2"]
    added = [Document("new", {"text": "A bee. An iron bee."}), Document("none", {"text": ""})]
    add_documents(directory, Changes(added), load_scorer)
    index = Index(directory)
    assert index.missing_rows() == {}
    assert count_missing(index, "vectors-2") == 0
    schemas = [index.attachments[name] for name in ("vectors", "vectors-2")]
    assert [sorted(schema.config) for schema in schemas] == [
        ["bits", "fingerprint", "model", "rules", "segments"],
        ["bits", "fingerprint", "model", "pooling", "rules", "segments"],
    ]
    assert [list(schema.arrays) for schema in schemas] == [
        ["spans", "vectors"],
        ["scales", "spans", "vectors", "vectors_per_segment"],
    ]


def test_missing_token_vectors_are_computed_in_slices(
    directory: Path, tmp_path: Path, bert: BertFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They equal those that are attached at once."""
    model = bert()
    searcher = Searcher(directory, Ranker(late(model), sentences))
    missing = MissingVectors.of(searcher)
    assert missing
    assert missing.documents == len(DOCUMENTS) + 1
    while missing.compute_slice():
        pass
    assert missing.documents == 0
    build_index([*DOCUMENTS, LONG], tmp_path / "j")
    store(tmp_path / "j", model)
    indexes, ids = (Index(directory), Index(tmp_path / "j")), [d.doc_id for d in DOCUMENTS]
    schemas = [dict(index.attachments["vectors"].config) for index in indexes]
    assert schemas[0] == schemas[1]
    sliced, at_once = (index.attachment("vectors").rows(ids) for index in indexes)  # type: ignore[union-attr]
    for one, other in zip(sliced, at_once, strict=True):
        assert all((one[name] == other[name]).all() for name in other)


def test_damaged_token_vectors_are_reported(directory: Path, bert: BertFactory) -> None:
    """A changed byte raises an error that names the attachment."""
    model = bert()
    store(directory, model)
    (file,) = directory.glob("**/rows.vectors")
    values = np.fromfile(file, np.uint8)
    values[::7] ^= 1
    values.tofile(file)
    with pytest.raises(ArtifactError, match="damaged attachment"):
        search(IndexEngine(Index(directory)), "birch river", Ranker(late(model), sentences), 3)


def test_the_rounding_error_is_that_of_scores(directory: Path, bert: BertFactory) -> None:
    """It is larger with fewer bits, and 0 without texts."""
    model, errors = bert(), []
    for bits in (8, 4):
        computation = precompute_vectors(late(model), sentences, "m", bits)
        assert computation.rounding
        assert computation.rounding([]) == (0, 0.0, 0.0)
        errors.append(computation.rounding(Index(directory)))
    texts = {s.text for d in Index(directory) for s in sentences(d)}
    assert errors[0].texts == errors[1].texts >= len(texts) > 5
    assert 0 < errors[0].mean < errors[0].largest < 0.01
    assert 5 < errors[1].mean / errors[0].mean < 50


def test_a_multi_vector_model_says_which_tokens_are_stored(
    directory: Path, tmp_path: Path, bert: BertFactory
) -> None:
    """It needs no pooling, the tokens that it skips have no vectors, and scores stay the same."""
    model = bert()
    kinds = ["Transformer", "MultiVectorMask", "Normalize"]
    modules = [
        {"path": f"{n}_{kind}" if n else "", "type": f"sentence_transformers.models.{kind}"}
        for n, kind in enumerate(kinds)
    ]
    (model / "modules.json").write_text(json.dumps(modules))
    (model / "config_sentence_transformers.json").write_text('{"model_type": "MultiVectorEncoder"}')
    configs = ({"skiplist_words": ["."]}, {"module_input_name": "token_embeddings"})
    for module, config in zip(modules[1:], configs, strict=True):
        (model / module["path"]).mkdir()
        (model / module["path"] / "config.json").write_text(json.dumps(config))
    scorer = load_scorer(model)
    build_index(DOCUMENTS, tmp_path / "j")
    with IndexWriter(directory) as writer:
        attach(writer, [precompute_vectors(scorer, sentences, str(model))])
    attachment = Index(directory).attachment("vectors")
    assert attachment
    assert "pooling" not in attachment.schema.config
    (rows,) = attachment.rows([DOCUMENTS[0].doc_id])
    assert rows
    token_ids = scorer.encode([segment.text for segment in sentences(DOCUMENTS[0])])
    skipped = [int(np.isin(ids, scorer.encode(["."])[0]).sum()) for ids in token_ids]
    assert sum(skipped) > 0
    counts = [2 + len(ids) - dots for ids, dots in zip(token_ids, skipped, strict=True)]
    assert rows["vectors_per_segment"].tolist() == counts
    with IndexWriter(tmp_path / "j") as writer:
        attach(writer, [precompute_vectors(scorer, sentences, str(model))])
    with IndexWriter(tmp_path / "j") as writer:
        writer.add(LONG)
    assert ranked(Index(tmp_path / "j"), Ranker(scorer, sentences)) == ranked(
        Index(directory), Ranker(scorer, sentences)
    )
