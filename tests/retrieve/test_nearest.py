"""Are the nearest documents found, exactly and by graphs, whatever happens to the index?"""

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
from birchbark.index.build import Schema, build_index
from birchbark.index.reader import Index
from birchbark.index.writer import IndexWriter
from birchbark.records import Document, Float32s
from birchbark.retrieve import graphs, nearest
from birchbark.retrieve.nearest import KeptVectors, filtered

HIDDEN, DOCUMENTS = 16, 400
SCHEMA = AttachmentSchema({"made": "here"}, {"vectors": RowForm("float16", (HIDDEN,))})


def document(name: str) -> Document:
    return Document(name, {"text": f"birch {name}", "kind": "even" if hash_of(name) % 2 else "odd"})


def hash_of(name: str) -> int:
    return crc32(name.encode())


def rows_of(name: str) -> NDArray[np.float16]:
    """From none to four unit vectors."""
    chance = np.random.default_rng(hash_of(name))
    rows = chance.standard_normal((hash_of(name) % 5, HIDDEN))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)


def compute(documents: Sequence[Document]) -> Iterator[Mapping[str, NDArray[Any]]]:
    return ({"vectors": rows_of(d.doc_id)} for d in documents)


def attach(directory: Path, keep_every: int = 10_000) -> None:
    with IndexWriter(directory) as writer:
        writer.attach("vectors", SCHEMA, compute, keep_every=keep_every)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """An index of documents with vectors, in several parts and folders, some of them deleted."""
    place = tmp_path / "index"
    names = [f"d{n}" for n in range(DOCUMENTS)]
    build_index(map(document, names[:150]), place, Schema(keywords=("kind",)))
    attach(place, keep_every=60)
    with IndexWriter(place) as writer:
        for name in names[150:]:
            writer.add(document(name))
    with IndexWriter(place) as writer:
        for name in names[::7]:
            writer.delete(name)
    attach(place)
    return place


def unpack(packed: Mapping[str, NDArray[Any]]) -> Float32s:
    values: Float32s = packed["vectors"].astype(np.float32)
    return values


def opened(directory: Path) -> KeptVectors:
    index = Index(directory)
    attachment = index.attachment("vectors")
    assert attachment is not None
    return KeptVectors.of(index, attachment, unpack)


def names(vectors: KeptVectors, found: Sequence[NDArray[np.bool_]]) -> set[str]:
    parts = zip(vectors.index.parts, found, strict=True)
    return {name for part, mask in parts for name in part.doc_ids.take(np.flatnonzero(mask))}


def by_hand(query: Float32s, among: Sequence[str], count: int) -> set[str]:
    """The nearest by each document's nearest vector, one by one."""
    scores = {name: (rows_of(name) @ query).max() for name in among if len(rows_of(name))}
    return set(sorted(scores, key=lambda name: -scores[name])[:count])


def queries() -> Float32s:
    made = np.random.default_rng(5).standard_normal((12, HIDDEN)).astype(np.float32)
    found: Float32s = made / np.linalg.norm(made, axis=1, keepdims=True)
    return found


def make_graphs(directory: Path) -> int:
    vectors = opened(directory)
    return graphs.build_graphs(vectors.index, vectors.attachment, unpack, least=30)


LEFT = [f"d{n}" for n in range(DOCUMENTS) if n % 7]


@pytest.mark.parametrize("count", [1, 10, 60, 1000])
@pytest.mark.parametrize("rows", [nearest.ROWS, 7])
def test_exact(directory: Path, count: int, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by hand: over parts, folders and deletions, in blocks of any size."""
    monkeypatch.setattr(nearest, "ROWS", rows)
    vectors = opened(directory)
    for query in queries():
        allowed = filtered(vectors.index, {})
        assert names(vectors, vectors.near(query, allowed, count, exactly=True)) == by_hand(
            query, LEFT, count
        )


def test_filters_hold(directory: Path) -> None:
    """Only documents with the value are found, as many as are asked for."""
    even = [name for name in LEFT if document(name).fields["kind"] == "even"]
    for linked in (False, True):
        made = make_graphs(directory) if linked else 0
        vectors = opened(directory)
        assert len(vectors.graphs) == made
        for query in queries():
            found = vectors.near(query, filtered(vectors.index, {"kind": "even"}), 10)
            assert names(vectors, found) == by_hand(query, even, 10)


def test_graphs_find_them_too(directory: Path) -> None:
    """So few are all found; another building gives the same bytes."""
    assert make_graphs(directory) == 4
    vectors = opened(directory)
    assert len(vectors.graphs) == 4
    for query in queries():
        for count in (1, 10, 60, 1000):
            allowed = filtered(vectors.index, {})
            found = names(vectors, vectors.near(query, allowed, count))
            assert found == by_hand(query, LEFT, count)
    before = {path: path.read_bytes() for path in directory.rglob("graph.faiss")}
    assert make_graphs(directory) == 0
    for path in before:
        path.unlink()
        (path.parent / "about.json").unlink()
        path.parent.rmdir()
    assert make_graphs(directory) == 4
    assert {path: path.read_bytes() for path in before} == before


def test_an_index_that_changed_answers_as_a_fresh_one(directory: Path) -> None:
    """Deleted documents are not found, new ones are; merging leaves no stale graph."""
    make_graphs(directory)
    with IndexWriter(directory) as writer:
        for name in LEFT[:100]:
            writer.delete(name)
        for n in range(60):
            writer.add(document(f"new{n}"))
    attach(directory)
    now = [*LEFT[100:], *(f"new{n}" for n in range(60))]
    for change in ("none", "merge", "graphs"):
        if change == "merge":
            with IndexWriter(directory) as writer:
                writer.merge()
            assert not opened(directory).graphs
        elif change == "graphs":
            assert make_graphs(directory) == 1
            assert len(list(directory.rglob("graph-*"))) == 1
        vectors = opened(directory)
        for query in queries():
            found = vectors.near(query, filtered(vectors.index, {}), 10)
            assert names(vectors, found) == by_hand(query, now, 10)


def test_graphs_of_other_vectors_are_removed(directory: Path) -> None:
    """A graph belongs to a folder of rows; where that went, it goes."""
    make_graphs(directory)
    with IndexWriter(directory) as writer:
        writer.detach("vectors")
    attach(directory)
    assert not opened(directory).graphs
    made = make_graphs(directory)
    assert len(list(directory.rglob("graph-*"))) == made == len(opened(directory).graphs)


def test_damage_is_told(directory: Path) -> None:
    """Not followed."""
    make_graphs(directory)
    path = next(directory.rglob("graph.faiss"))
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    with pytest.raises(ArtifactError, match="damaged graph: its bytes are not as written"):
        opened(directory)
    path.unlink()
    with pytest.raises(ArtifactError, match=r"damaged graph: .*No such file"):
        opened(directory)


def test_without_the_package(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exact answers, though there are graphs; none can be made."""
    make_graphs(directory)
    monkeypatch.setattr(graphs, "installed", lambda: False)
    vectors = opened(directory)
    assert not vectors.graphs
    query = queries()[0]
    found = names(vectors, vectors.near(query, filtered(vectors.index, {}), 10))
    assert found == by_hand(query, LEFT, 10)
    with pytest.raises(MissingPackageError, match=r"birchbark\[dense\]"):
        make_graphs(directory)
