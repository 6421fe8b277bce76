"""What does a store keep that spares a scorer its work? Token ids, and vectors (keeping.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from birchbark.index.attachment_reader import Attachment
from birchbark.index.attachment_schema import Rows
from birchbark.pipeline.keeping import (
    TOKENS,
    VECTORS,
    embedding_of,
    tokens_config,
    vectors_config,
)
from birchbark.records import Document, Float32s, Ids, Segment
from birchbark.retrieve.engine import DocumentStore
from birchbark.score.rounding import RoundedScorer
from birchbark.score.scorer import Scorer
from birchbark.segment.named import Segmenter, spell


@runtime_checkable
class Keeps(Protocol):
    """A store that may keep something of its documents."""

    def attachment(self, name: str) -> Attachment | None:
        """The attachment of this name, if there is one."""
        ...


class Kept:
    """What a store keeps that fits a scorer and a segmenter; nothing, where it does not."""

    def __init__(self, store: DocumentStore, scorer: Scorer, segmenter: Segmenter) -> None:
        self._tokens: Attachment | None = None
        self._vectors: Attachment | None = None
        self.scorer, embedding = scorer, embedding_of(scorer)
        if not isinstance(store, Keeps) or not spell(segmenter):
            return
        if found := store.attachment(TOKENS):
            self._tokens = _fitting(found, tokens_config(scorer, segmenter))
        if embedding and (found := store.attachment(VECTORS)):
            bits = int(found.schema.config["bits"])
            self._vectors = _fitting(found, vectors_config(embedding, segmenter, bits))
            if self._vectors:
                self.scorer = self._rounded = RoundedScorer(embedding, bits)

    def pieces(self, doc_ids: Sequence[str], room: int) -> list[tuple[Ids, ...] | None]:
        """Token ids of each document's segments; None where they are not kept, or do not fit."""
        if self._tokens is None:
            return [None] * len(doc_ids)
        return [
            None if rows is None or self._cuts(rows, room) else _split(rows)
            for rows in self._tokens.rows(doc_ids)
        ]

    def segments(self, documents: Sequence[Document], room: int) -> list[list[Segment] | None]:
        """The segments that `pieces` or `scores` are of; None where they are not kept."""
        attachment = self._vectors or self._tokens
        if attachment is None:
            return [None] * len(documents)
        kept = attachment.rows([document.doc_id for document in documents])
        return [
            None if rows is None or self._cuts(rows, room) else _segments(document, rows["spans"])
            for document, rows in zip(documents, kept, strict=True)
        ]

    def _cuts(self, rows: Rows, room: int) -> bool:
        """Whether segments do not fit as they are kept, or cannot be told by their places."""
        too_long = "lengths" in rows and rows["lengths"].max(initial=0) > room
        return bool(too_long or (rows["spans"] < 0).any())

    def scores(self, query: str, doc_ids: Sequence[str]) -> list[Float32s | None]:
        """Scores of each document's segments by kept vectors; None where there are none."""
        if self._vectors is None:
            return [None] * len(doc_ids)
        found = self._vectors.rows(doc_ids)
        there = [rows for rows in found if rows is not None]
        if not there:
            return [None] * len(doc_ids)
        packed = {name: np.concatenate([rows[name] for rows in there]) for name in there[0]}
        ends = np.cumsum([len(rows["vectors"]) for rows in there])
        own = iter(np.split(self._rounded.cosines(query, packed), ends[:-1]))
        return [None if rows is None else next(own) for rows in found]


def _segments(document: Document, spans: NDArray[np.int32]) -> list[Segment]:
    contents = document.contents
    return [
        Segment(document.doc_id, start, end, contents[:front] + contents[start:end])
        for front, start, end in spans.tolist()
    ]


def _fitting(found: Attachment, wanted: Mapping[str, Any]) -> Attachment | None:
    """`found`, if it was made as is wanted, whatever its model is called."""
    config = {name: value for name, value in found.schema.config.items() if name != "model"}
    return found if config == wanted else None


def _split(rows: Rows) -> tuple[Ids, ...]:
    ids: NDArray[np.int32] = rows["ids"].astype(np.int32)
    ends = np.cumsum(rows["lengths"]).tolist()
    return tuple(ids[begin:end] for begin, end in zip([0, *ends], ends, strict=False))
