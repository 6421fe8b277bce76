"""Which documents have no vectors, and do searches treat them as if they had never been stored?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.index.writer import IndexWriter
from birchbark.pipeline import precompute
from birchbark.pipeline.precompute import VECTORS, batches_of_tokens, precompute_vectors
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.reading_plan import ReadingPlan
from birchbark.pipeline.search import search
from birchbark.pipeline.update_index import add_documents, documents_without_vectors
from birchbark.records import Document
from birchbark.retrieve.engine import IndexEngine
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.load_scorer import load_scorer
from birchbark.score.scorer import Scorer
from birchbark.segment.sentences import sentences
from conftest import DOCUMENTS

LONG = Document("long", {"text": "The birch river. " * 20})
EMPTY = Document("empty", {"text": ""})


def attach(where: Path, model: Path) -> None:
    with IndexWriter(where) as writer:
        precompute_vectors(load_scorer(model), sentences, str(model)).attach(writer)


@given(st.lists(st.integers(1, 50)), st.integers(1, 60))
def test_batches_cover_all_texts_in_order(lengths: list[int], max_tokens: int) -> None:
    """A batch exceeds the limit only if it is a single text, and none could hold one more."""
    batches = list(batches_of_tokens(lengths, max_tokens))
    assert [i for begin, end in batches for i in range(begin, end)] == list(range(len(lengths)))
    for begin, end in batches:
        assert end == begin + 1 or sum(lengths[begin:end]) <= max_tokens
        assert end == len(lengths) or sum(lengths[begin : end + 1]) > max_tokens


def test_a_document_that_is_too_long_has_no_vectors(
    tmp_path: Path, bert: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is complete with zero rows, and searches read it as if the index had no vectors of it."""
    monkeypatch.setattr(precompute, "MAX_CHARACTERS", 100)
    model = bert()
    build_index([*DOCUMENTS, LONG, EMPTY], tmp_path / "i")
    attach(tmp_path / "i", model)
    index = Index(tmp_path / "i")
    assert not index.missing_rows()
    assert documents_without_vectors(index) == (0, 2)
    vectors = index.attachment(VECTORS)
    assert vectors
    (rows,) = vectors.rows(["long"])
    assert rows is not None
    assert {len(values) for values in rows.values()} == {0}
    for plan in (ReadingPlan(), ReadingPlan(segments=2, embedded=1)):
        ranker = Ranker(load_scorer(bert(labels=1)), embedding=load_scorer(model), plan=plan)
        (hit,) = (
            hit
            for hit in search(IndexEngine(index), "birch river", ranker).hits
            if hit.document.doc_id == "long"
        )
        assert hit.segments
        assert hit.embedding > 0
    with IndexWriter(tmp_path / "i") as writer:
        writer.delete("long")
    assert documents_without_vectors(Index(tmp_path / "i")) == (0, 1)


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

    def load(name: str) -> Scorer:
        loaded.append(name)
        return load_scorer(name)

    build_index(DOCUMENTS, tmp_path / "i")
    attach(tmp_path / "i", model)
    add_documents(tmp_path / "i", [LONG], load)
    assert loaded == [str(model)]
    assert documents_without_vectors(Index(tmp_path / "i")) == (0, 0)
    add_documents(tmp_path / "i", [Document("b", {"text": "bee"})], load, complete=False)
    assert documents_without_vectors(Index(tmp_path / "i")) == (1, 0)
    add_documents(tmp_path / "i", [Document("c", {"text": "bee"})], load)
    assert documents_without_vectors(Index(tmp_path / "i")) == (2, 0)
    assert loaded == [str(model)]
    attach(tmp_path / "i", model)
    assert documents_without_vectors(Index(tmp_path / "i")) == (0, 0)


def test_an_index_without_vectors_lacks_those_of_all_documents(index: Index) -> None:
    """They count as missing."""
    assert documents_without_vectors(index) == (len(DOCUMENTS), 0)
