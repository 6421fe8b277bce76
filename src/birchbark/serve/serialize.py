"""How are hits and documents converted to responses?"""

from __future__ import annotations

from collections.abc import Sequence

from birchbark.pipeline.answer import Evidence, Hit
from birchbark.records import Document
from birchbark.serve.schemas import DocumentResponse, EvidenceResponse, HitResponse

CONTEXT = 160  # characters on each side of a segment
LEAD = 300  # characters from the beginning of a document's text


def serialize_hit(hit: Hit) -> HitResponse:
    """Convert a hit; each segment gets the text around it as context."""
    return HitResponse(
        doc_id=hit.document.doc_id,
        title=hit.document.title,
        score=hit.score,
        first_stage=hit.first_stage,
        embedding=hit.embedding,
        evidence=hit.evidence,
        compared=hit.compared,
        scored=hit.scored,
        lead=hit.document.text[:LEAD],
        segments=_serialize_segments(hit.document, hit.segments),
    )


def serialize_document(
    document: Document, segments: Sequence[Evidence] | None = None
) -> DocumentResponse:
    """Convert a document, with its segments (if any) in document order and without context."""
    ordered = None if segments is None else sorted(segments, key=lambda e: e.segment.start)
    return DocumentResponse(
        doc_id=document.doc_id,
        title=document.title,
        fields=dict(document.fields),
        contents=document.contents,
        segments=None if ordered is None else _serialize_segments(document, ordered, context=0),
    )


def _serialize_segments(
    document: Document, segments: Sequence[Evidence], context: int = CONTEXT
) -> list[EvidenceResponse]:
    contents = document.contents
    return [
        EvidenceResponse(
            start=evidence.segment.start,
            end=evidence.segment.end,
            text=evidence.segment.text,
            score=evidence.score,
            weight=evidence.weight,
            before=contents[max(0, evidence.segment.start - context) : evidence.segment.start],
            after=contents[evidence.segment.end : evidence.segment.end + context],
        )
        for evidence in segments
    ]
