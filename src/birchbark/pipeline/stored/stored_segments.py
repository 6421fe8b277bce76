"""Which stored token ids and vectors fit a scorer and a segmenter?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from birchbark.index.attachment_reader import Attachment
from birchbark.index.attachment_schema import Rows
from birchbark.index.index import Index
from birchbark.lazy_sequence import LazySequence
from birchbark.pipeline.stored.precompute import (
    TOKENS,
    has_config,
    tokens_config,
)
from birchbark.pipeline.stored.vector_scorer import bi_encoder, rounded_vector_scorer
from birchbark.pipeline.stored.vector_sets import fitting_set
from birchbark.records import Document, Float32s, Ids, Segment
from birchbark.retrieve.engine import DocumentStore, IndexEngine
from birchbark.score.scorer import Scorer
from birchbark.segment.by_name import Segmenter, segmenter_name


class PrecomputedSegments:
    """The stored token ids and vectors that fit a scorer and a segmenter; others are ignored.

    Its attribute `scorer` is the given scorer or, if stored vectors fit, one that rounds vectors as
    the stored ones are rounded.
    """

    def __init__(
        self,
        store: DocumentStore | None,
        scorer: Scorer,
        segmenter: Segmenter,
        *,
        with_vectors: bool = True,
    ) -> None:
        """Open those of an index; nothing is stored with another store, or with None.

        with_vectors: whether vectors may be those of the scorer; if not, it is not asked.
        """
        self._tokens: Attachment | None = None
        self._vectors: Attachment | None = None
        self.scorer = scorer
        index = store.index if isinstance(store, IndexEngine) else store
        if not isinstance(index, Index) or not segmenter_name(segmenter):
            return
        tokens = index.attachment(TOKENS)
        if tokens and has_config(tokens.schema, tokens_config(scorer, segmenter)):
            self._tokens = tokens
        encoder = bi_encoder(scorer) if with_vectors else None
        name = encoder and fitting_set(index.attachments, encoder, segmenter)
        if encoder and name and (vectors := index.attachment(name)):
            self._vectors = vectors
            self.scorer = self._rounded = rounded_vector_scorer(
                encoder, vectors.schema.config["bits"]
            )

    @property
    def vectors(self) -> Attachment | None:
        """The set of vectors that fits; None if there is none."""
        return self._vectors

    def token_ids(self, doc_ids: Sequence[str], token_budget: int) -> list[tuple[Ids, ...] | None]:
        """Return the token ids of each document's segments.

        The result is None for a document without stored token ids, with a segment beyond the token
        budget, or with a segment whose text cannot be restored.
        """
        if self._tokens is None:
            return [None] * len(doc_ids)
        return [
            None if rows is None or self._unusable(rows, token_budget) else _split(rows)
            for rows in self._tokens.rows(doc_ids)
        ]

    def segments(
        self, documents: Sequence[Document], token_budget: int
    ) -> list[Sequence[Segment] | None]:
        """Return each document's segments, as `scores` or else `token_ids` count them.

        The result is None for a document for which these are not stored or not usable.
        """
        attachment = self._vectors or self._tokens
        if attachment is None:
            return [None] * len(documents)
        stored = attachment.rows([document.doc_id for document in documents])
        return [
            None
            if rows is None or not len(rows["spans"]) or self._unusable(rows, token_budget)
            else _StoredSegments(document, rows["spans"])
            for document, rows in zip(documents, stored, strict=True)
        ]

    def _unusable(self, rows: Rows, token_budget: int) -> bool:
        """Whether a segment exceeds the token budget, or its text cannot be restored."""
        too_long = "lengths" in rows and rows["lengths"].max(initial=0) > token_budget
        return bool(too_long or (rows["spans"] < 0).any())

    def scores(self, query: str, doc_ids: Sequence[str]) -> list[Float32s | None]:
        """Score each document's segments (n,) by stored vectors; None for one without vectors.

        A document without text has zero rows.
        """
        if self._vectors is None:
            return [None] * len(doc_ids)
        by_document = [
            rows if rows and len(rows["spans"]) else None for rows in self._vectors.rows(doc_ids)
        ]
        stored = [rows for rows in by_document if rows is not None]
        scores = iter(self._rounded.compare(query, stored))
        return [None if rows is None else next(scores) for rows in by_document]


class _StoredSegments(LazySequence[Segment]):
    """The segments of a document; each is made when it is asked for, as few of them are."""

    def __init__(self, document: Document, spans: NDArray[np.int32]) -> None:
        """spans: (n, 3), the length of the prefix, start and end of each segment."""
        self._doc_id, self._contents, self._spans = document.doc_id, document.contents, spans

    def __len__(self) -> int:
        return len(self._spans)

    def item(self, index: int) -> Segment:
        """Return a segment."""
        prefix, start, end = self._spans[index].tolist()
        text = self._contents[:prefix] + self._contents[start:end]
        return Segment(self._doc_id, start, end, text)


def _split(rows: Rows) -> tuple[Ids, ...]:
    ids: NDArray[np.int32] = rows["ids"].astype(np.int32)
    ends = np.cumsum(rows["lengths"]).tolist()
    return tuple(ids[begin:end] for begin, end in zip([0, *ends], ends, strict=False))
