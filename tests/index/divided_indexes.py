"""Which documents and queries do the tests of divided indexes have?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.records import Document, Query
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.first_stage import FirstStage
from birchbark.retrieve.match import AND
from birchbark.retrieve.rm3 import RM3
from birchbark.retrieve.tfidf import TfIdf
from conftest import WORDS

RANDOM = np.random.default_rng(7)
FIELDS = {"title": ("title",), "text": ("text",)}
SCHEMA = Schema("plain", fields=FIELDS, keywords=("kind",))


def words(count: int) -> str:
    return " ".join(RANDOM.choice(WORDS[:12], count))


DOCUMENTS = [
    Document(f"d{n}", {"title": words(2), "text": words(3 + n % 9), "kind": "ab"[n % 2]})
    for n in range(60)
]
QUERIES = [Query(str(n), words(3)) for n in range(8)]
BOTH = {"title": 2.0, "text": 1.0}
STAGES = {
    "BM25": FirstStage(BM25(), {"text": 1.0}),
    "fields": FirstStage(BM25(1.2, 0.75), BOTH, {"title": BM25(0.5, 0.1)}),
    "tf-idf": FirstStage(TfIdf(), BOTH),
    "RM3": FirstStage(BM25(), BOTH, expansion=RM3(5, 6, 0.4, 0.9)),
    "all terms": FirstStage(BM25(), BOTH, match=AND),
    "filter": FirstStage(BM25(), BOTH, filters={"kind": "a"}),
}


def built(folder: Path, shards: int | None, documents: Sequence[Document] = DOCUMENTS) -> Index:
    return build_index(documents, folder, SCHEMA, shards=shards)


def bits(run: Any) -> dict[str, tuple[tuple[str, ...], bytes]]:
    """Return the ids and the bytes of the scores of each query."""
    return {q: (ranking.doc_ids, ranking.scores.tobytes()) for q, ranking in run.rankings.items()}
