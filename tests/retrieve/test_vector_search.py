"""Are the nearest documents found, exactly and with graphs, also after changes of the index?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from numpy.typing import NDArray

from birchbark.errors import ArtifactError, MissingPackageError
from birchbark.index.attachment_schema import AttachmentSchema, RowForm
from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.index.writer import IndexWriter
from birchbark.records import Document, Float32s
from birchbark.retrieve import hnsw
from birchbark.retrieve.vector_search import StoredVectors, filter_masks

HIDDEN, DOCUMENTS = 16, 400
SCHEMA = AttachmentSchema({"made": "here"}, {"vectors": RowForm("float16", (HIDDEN,))})


def document(name: str) -> Document:
    return Document(name, {"text": f"birch {name}", "kind": "even" if hash_of(name) % 2 else "odd"})


def hash_of(name: str) -> int:
    return crc32(name.encode())


def rows_of(name: str) -> NDArray[np.float16]:
    """Return 0 to 4 unit vectors."""
    rng = np.random.default_rng(hash_of(name))
    rows = rng.standard_normal((hash_of(name) % 5, HIDDEN))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)


def compute(documents: Sequence[Document]) -> Iterator[Mapping[str, NDArray[Any]]]:
    return ({"vectors": rows_of(d.doc_id)} for d in documents)


def attach(directory: Path, commit_every: int = 10_000) -> None:
    with IndexWriter(directory) as writer:
        writer.attach("vectors", SCHEMA, compute, commit_every=commit_every)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """An index with vectors in several parts and folders, and some deleted documents."""
    path = tmp_path / "index"
    names = [f"d{n}" for n in range(DOCUMENTS)]
    build_index(map(document, names[:150]), path, Schema(keywords=("kind",)))
    attach(path, commit_every=60)
    with IndexWriter(path) as writer:
        for name in names[150:]:
            writer.add(document(name))
    with IndexWriter(path) as writer:
        for name in names[::7]:
            writer.delete(name)
    attach(path)
    return path


def decode(stored: Mapping[str, NDArray[Any]]) -> Float32s:
    values: Float32s = stored["vectors"].astype(np.float32)
    return values


def open_vectors(directory: Path) -> StoredVectors:
    index = Index(directory)
    attachment = index.attachment("vectors")
    assert attachment is not None
    return StoredVectors.of(index, attachment, lambda stored, query: decode(stored) @ query)


def names(vectors: StoredVectors, masks: Sequence[NDArray[np.bool_]]) -> set[str]:
    parts = zip(vectors.index.parts, masks, strict=True)
    return {name for part, mask in parts for name in part.doc_ids.take(np.flatnonzero(mask))}


def naive_nearest(query: Float32s, among: Sequence[str], count: int) -> set[str]:
    """Return the nearest documents, each by its nearest vector."""
    scores = {name: (rows_of(name) @ query).max() for name in among if len(rows_of(name))}
    return set(sorted(scores, key=lambda name: -scores[name])[:count])


def queries() -> Float32s:
    vectors = np.random.default_rng(5).standard_normal((12, HIDDEN)).astype(np.float32)
    unit: Float32s = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def make_graphs(directory: Path) -> int:
    vectors = open_vectors(directory)
    return hnsw.build_graphs(vectors.index, vectors.attachment, decode, min_vectors=30)


REMAINING = [f"d{n}" for n in range(DOCUMENTS) if n % 7]


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
