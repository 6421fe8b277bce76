"""Which vectors do the documents have in which the tests search?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from birchbark.index.attachment_schema import AttachmentSchema, RowForm
from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.index.writer import IndexWriter
from birchbark.records import Document, Float32s
from birchbark.retrieve import hnsw
from birchbark.retrieve.vector_search import StoredVectors

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


def write_index(path: Path) -> Path:
    """Write an index with vectors in several parts and folders, and some deleted documents."""
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
