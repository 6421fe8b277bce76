"""How are answers, hits and documents converted to responses?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from birchbark.pipeline.answers.answer import Answer, Evidence, Hit, SearchStats
from birchbark.pipeline.answers.hit_fields import evidence_fields, hit_fields
from birchbark.pipeline.reading_summary import reading_summary
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.records import Document, Places
from birchbark.retrieve.query_language import ParsedQuery, QueryPart
from birchbark.serve.schemas import (
    DocumentResponse,
    EvidenceResponse,
    HitResponse,
    ParsedQueryResponse,
    QueryPartResponse,
    SearchResponse,
    Timings,
)

CONTEXT = 160  # characters on each side of a segment
SOURCE_FIELDS = "path type modified authors journal year publish_time doi".split()
MAX_SOURCE = 300  # characters of such a field
MAX_PATH = 4_096  # no system has longer ones
LEAD = 300  # characters from the beginning of a document's text


def serialize_answer(
    answer: Answer,
    query: ParsedQuery,
    rankers: Sequence[Ranker],
    timings: Timings,
    *,
    unanswered: bool,
) -> SearchResponse:
    """Convert an answer.

    rankers: the stages of the search; none for the first stage alone. unanswered: whether probably
    none of the documents answers the query, by the best hit, which need not be the first here.
    """
    return SearchResponse(
        query=str(query),
        parsed=ParsedQueryResponse(
            parts=[QueryPartResponse(**_part(part)) for part in query.parts],
            words=query.words,
            phrases=list(query.phrases),
            excluded=list(query.excluded),
            filters=list(query.filters),
        ),
        hits=[serialize_hit(hit) for hit in answer.hits],
        max_score=rankers[0].max_score if len(rankers) == 1 else None,
        unanswered=unanswered,
        exact=answer.stats.exact,
        timings_ms=timings,
        **reading_summary(answer.stats, rankers),
    )


def _part(part: QueryPart) -> dict[str, Any]:
    return {**asdict(part), "kind": part.kind.value}


def serialize_hit(hit: Hit) -> HitResponse:
    """Convert a hit; each segment gets the text around it as context."""
    document = hit.document
    return HitResponse(
        **hit_fields(hit, CONTEXT), lead=document.text[:LEAD], source=_source(document)
    )


def _source(document: Document) -> dict[str, str]:
    """Return the fields that tell where a document is from."""
    known = ((name, document.fields.get(name, "")) for name in SOURCE_FIELDS)
    return {
        name: value[: MAX_PATH if name == "path" else MAX_SOURCE] for name, value in known if value
    }


def serialize_document(
    document: Document,
    segments: Sequence[Evidence] | None = None,
    stats: SearchStats | None = None,
    read_query: str | None = None,
) -> DocumentResponse:
    """Convert a document, with its segments (if any) in document order and without context.

    stats: how much of it was scored. read_query: for which query, as the model reads it.
    """
    ordered = None if segments is None else sorted(segments, key=lambda e: e.segment.start)
    places = Places(document)
    return DocumentResponse(
        doc_id=document.doc_id,
        title=document.title,
        fields=dict(document.fields),
        contents=places.contents,
        segments=None
        if ordered is None
        else [EvidenceResponse(**evidence_fields(places, e, 0)) for e in ordered],
        read_query=read_query,
        segment_count=stats.segments if stats else None,
        unsplit_characters=stats.unsplit_characters if stats else None,
    )
