"""Are the nearest documents found, exactly and with graphs, also after changes of the index?"""

from __future__ import annotations

from pathlib import Path

import pytest
from stored_vectors import (
    REMAINING,
    attach,
    document,
    make_graphs,
    naive_nearest,
    names,
    open_vectors,
    queries,
    write_index,
)

from birchbark.index.writer import IndexWriter
from birchbark.retrieve.vector_search import filter_masks


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """See write_index."""
    return write_index(tmp_path / "index")


@pytest.mark.parametrize("count", [1, 10, 60, 1000])
def test_exact_search_finds_the_nearest(directory: Path, count: int) -> None:
    """This holds for several parts and folders, and after deletions."""
    vectors = open_vectors(directory)
    for query in queries():
        allowed = filter_masks(vectors.index, {})
        assert names(
            vectors, vectors.nearest_documents(query, allowed, count, exactly=True)
        ) == naive_nearest(query, REMAINING, count)


def test_filters_apply(directory: Path) -> None:
    """Only documents with the value are found, as many as requested."""
    even = [name for name in REMAINING if document(name).fields["kind"] == "even"]
    for with_graphs in (False, True):
        graphs = make_graphs(directory) if with_graphs else 0
        vectors = open_vectors(directory)
        assert len(vectors.graphs) == graphs
        for query in queries():
            found = vectors.nearest_documents(
                query, filter_masks(vectors.index, {"kind": "even"}), 10
            )
            assert names(vectors, found) == naive_nearest(query, even, 10)


def test_a_changed_index_answers_like_a_new_one(directory: Path) -> None:
    """Deleted documents are not found, new ones are; merging removes unused graphs."""
    make_graphs(directory)
    with IndexWriter(directory) as writer:
        for name in REMAINING[:100]:
            writer.delete(name)
        for n in range(60):
            writer.add(document(f"new{n}"))
    attach(directory)
    current = [*REMAINING[100:], *(f"new{n}" for n in range(60))]
    for change in ("none", "merge", "graphs"):
        if change == "merge":
            with IndexWriter(directory) as writer:
                writer.merge()
            assert not open_vectors(directory).graphs
        elif change == "graphs":
            assert make_graphs(directory) == 1
            assert len(list(directory.rglob("graph-*"))) == 1
        vectors = open_vectors(directory)
        for query in queries():
            masks = vectors.nearest_documents(query, filter_masks(vectors.index, {}), 10)
            assert names(vectors, masks) == naive_nearest(query, current, 10)
