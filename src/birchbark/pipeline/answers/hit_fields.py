"""How is a hit with its evidence written as JSON, by the shell, the service and adapters?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from birchbark.pipeline.answers.answer import Evidence, Hit
from birchbark.records import Segment, page_number


def sentence_fields(evidence: Evidence) -> dict[str, Any]:
    """Return the fields of the text that evidence shows, with offsets in its document or text."""
    return {
        "start": evidence.begin,
        "end": evidence.begin + len(evidence.text),
        "text": evidence.text,
        "score": evidence.score,
    }


def hit_fields(hit: Hit, context: int | None = None) -> dict[str, Any]:
    """Return the fields of a hit.

    context: the characters on each side of a segment that are returned beside it, as `before` and
    `after`; None for segments without these fields.
    """
    contents, shown = hit.document.contents, hit.snippet
    return {
        "doc_id": hit.document.doc_id,
        "title": hit.document.title,
        "score": hit.score,
        "first_stage": hit.first_stage,
        "evidence": hit.evidence,
        "embedding": hit.embedding,
        "compared": hit.compared,
        "stage": hit.stage,
        "scored": hit.scored,
        "probability": hit.probability,
        "copies": hit.copies,
        "segments": [evidence_fields(contents, evidence, context) for evidence in hit.segments],
        "snippet": _segment_fields(contents, shown.segment, shown.marks, context)
        if shown
        else None,
    }


def evidence_fields(contents: str, evidence: Evidence, context: int | None) -> dict[str, Any]:
    """Return the fields of a segment of a document with these contents; see `hit_fields`."""
    segment = _segment_fields(contents, evidence.segment, evidence.marks, context)
    return {
        **segment,
        "page": page_number(contents, evidence.begin),
        "sentence": evidence.sentence,
        "score": evidence.score,
        "weight": evidence.weight,
    }


def _segment_fields(
    contents: str, segment: Segment, marks: Sequence[tuple[int, int]], context: int | None
) -> dict[str, Any]:
    fields = {
        "start": segment.start,
        "end": segment.end,
        "page": page_number(contents, segment.start),
        "text": segment.text,
        "marks": marks,
    }
    if context is not None:
        fields["before"] = contents[max(0, segment.start - context) : segment.start]
        fields["after"] = contents[segment.end : segment.end + context]
    return fields
