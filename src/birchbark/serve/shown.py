"""How are hits and documents written for those who asked?"""

from __future__ import annotations

from collections.abc import Sequence

from birchbark.pipeline.answer import Evidence, Hit
from birchbark.records import Document
from birchbark.serve.shapes import DocumentShape, EvidenceShape, HitShape

AROUND = 160  # characters of context, on each side of a segment
LEAD = 300


def hit_shape(hit: Hit) -> HitShape:
    """A hit as it is sent."""
    return HitShape(
        doc_id=hit.document.doc_id,
        title=hit.document.title,
        score=hit.score,
        first_stage=hit.first_stage,
        embedding=hit.embedding,
        evidence=hit.evidence,
        compared=hit.compared,
        settled=hit.settled,
        lead=hit.document.text[:LEAD],
        segments=_evidence(hit.document, hit.segments),
    )


def document_shape(document: Document, segments: Sequence[Evidence] | None = None) -> DocumentShape:
    """A document as it is sent, and its segments in their order."""
    ordered = None if segments is None else sorted(segments, key=lambda e: e.segment.start)
    return DocumentShape(
        doc_id=document.doc_id,
        title=document.title,
        fields=dict(document.fields),
        contents=document.contents,
        segments=None if ordered is None else _evidence(document, ordered, around=0),
    )


def _evidence(
    document: Document, segments: Sequence[Evidence], around: int = AROUND
) -> list[EvidenceShape]:
    contents = document.contents
    return [
        EvidenceShape(
            start=one.segment.start,
            end=one.segment.end,
            text=one.segment.text,
            score=one.score,
            weight=one.weight,
            before=contents[max(0, one.segment.start - around) : one.segment.start],
            after=contents[one.segment.end : one.segment.end + around],
        )
        for one in segments
    ]
