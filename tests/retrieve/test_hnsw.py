"""Do graphs find the nearest documents, and are they rebuilt, removed and checked?"""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree

import pytest
from stored_vectors import (
    REMAINING,
    attach,
    make_graphs,
    naive_nearest,
    names,
    open_vectors,
    queries,
    write_index,
)

from birchbark.errors import ArtifactError, MissingPackageError
from birchbark.index.writer import IndexWriter
from birchbark.retrieve import hnsw
from birchbark.retrieve.vector_search import filter_masks


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """See write_index."""
    return write_index(tmp_path / "index")


def test_graphs_find_the_nearest_and_are_deterministic(directory: Path) -> None:
    """In a small index, none is missed; building a graph again gives the same bytes."""
    assert make_graphs(directory) == 4
    vectors = open_vectors(directory)
    assert len(vectors.graphs) == 4
    for query in queries():
        for count in (1, 10, 60, 1000):
            allowed = filter_masks(vectors.index, {})
            nearest = names(vectors, vectors.nearest_documents(query, allowed, count))
            assert nearest == naive_nearest(query, REMAINING, count)
    before = {path: path.read_bytes() for path in directory.rglob("graph.faiss")}
    assert make_graphs(directory) == 0
    for path in before:
        path.unlink()
        (path.parent / "about.json").unlink()
        path.parent.rmdir()
    assert make_graphs(directory) == 4
    assert {path: path.read_bytes() for path in before} == before


def test_a_graph_is_opened_once(directory: Path) -> None:
    """While it is in use, its file is not read again; a rebuilt one is another graph."""
    make_graphs(directory)
    first = open_vectors(directory)
    again = open_vectors(directory)
    assert list(first.graphs.values()) == list(again.graphs.values())
    with IndexWriter(directory) as writer:
        writer.detach("vectors")
    attach(directory)
    make_graphs(directory)
    assert not set(first.graphs.values()) & set(open_vectors(directory).graphs.values())


def test_graphs_of_removed_folders_are_removed(directory: Path) -> None:
    """A graph is removed with the folder of rows that it belongs to."""
    make_graphs(directory)
    with IndexWriter(directory) as writer:
        writer.detach("vectors")
    attach(directory)
    assert not open_vectors(directory).graphs
    graphs = make_graphs(directory)
    assert len(list(directory.rglob("graph-*"))) == graphs == len(open_vectors(directory).graphs)


def test_damage_is_reported(directory: Path) -> None:
    """A graph with a changed byte, or without its file, is not used."""
    make_graphs(directory)
    path = next(directory.rglob("graph.faiss"))
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    with pytest.raises(ArtifactError, match="damaged graph: its checksum is wrong"):
        open_vectors(directory)
    path.unlink()
    with pytest.raises(ArtifactError, match=r"damaged graph: .*No such file"):
        open_vectors(directory)


def test_a_graph_that_a_writer_removes_is_no_damage(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may go while it is being opened; its rows are compared one by one then."""
    make_graphs(directory)

    def removed(path: Path) -> str:
        rmtree(path.parent)
        raise FileNotFoundError(path)

    monkeypatch.setattr(hnsw, "fingerprint", removed)
    assert open_vectors(directory).graphs == {}


def test_without_faiss(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Search is exact although there are graphs; none can be built."""
    make_graphs(directory)
    monkeypatch.setattr(hnsw, "faiss_installed", lambda: False)
    vectors = open_vectors(directory)
    assert not vectors.graphs
    query = queries()[0]
    nearest = names(vectors, vectors.nearest_documents(query, filter_masks(vectors.index, {}), 10))
    assert nearest == naive_nearest(query, REMAINING, 10)
    with pytest.raises(MissingPackageError, match=r"birchbark\[dense\]"):
        make_graphs(directory)
