"""How is a hit with its evidence written as JSON, by the shell, the service and adapters?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from birchbark.pipeline.answers.answer import Evidence, Hit
from birchbark.records import Places, Segment


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
    document, shown = hit.document, hit.snippet
    places = Places(document)
    return {
        "doc_id": document.doc_id,
        "path": document.fields.get("path"),
        "title": document.title,
        "score": hit.score,
        "first_stage": hit.first_stage,
        "evidence": hit.evidence,
        "embedding": hit.embedding,
        "compared": hit.compared,
        "stage": hit.stage,
        "scored": hit.scored,
        "probability": hit.probability,
        "copies": hit.copies,
        "segments": [evidence_fields(places, evidence, context) for evidence in hit.segments],
        "snippet": _segment_fields(places, shown.segment, shown.marks, context) if shown else None,
    }


def evidence_fields(places: Places, evidence: Evidence, context: int | None) -> dict[str, Any]:
    """Return the fields of a segment of a document; see `hit_fields`."""
    segment = _segment_fields(places, evidence.segment, evidence.marks, context)
    return {
        **segment,
        **place_fields(places, evidence.begin),
        "sentence": evidence.sentence,
        "score": evidence.score,
        "weight": evidence.weight,
    }


def place_fields(places: Places, offset: int) -> dict[str, int | None]:
    """Return the page and the line in which a character is, each None if the file has none."""
    return {"page": places.page(offset), "line": places.line(offset)}


def _segment_fields(
    places: Places, segment: Segment, marks: Sequence[tuple[int, int]], context: int | None
) -> dict[str, Any]:
    contents = places.contents
    fields = {
        "start": segment.start,
        "end": segment.end,
        **place_fields(places, segment.start),
        "text": segment.text,
        "marks": marks,
    }
    if context is not None:
        fields["before"] = contents[max(0, segment.start - context) : segment.start]
        fields["after"] = contents[segment.end : segment.end + context]
    return fields
