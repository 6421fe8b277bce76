"""How is a hit with its evidence written as JSON?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from birchbark.pipeline.answer import Hit
    from birchbark.records import Segment


def hit_fields(hit: Hit) -> dict[str, Any]:
    """Return the fields of a hit that `search --json` and `rerank --evidence` share."""
    contents, shown = hit.document.contents, hit.snippet
    return {
        "doc_id": hit.document.doc_id,
        "title": hit.document.title,
        "score": hit.score,
        "first_stage": hit.first_stage,
        "evidence": hit.evidence,
        "embedding": hit.embedding,
        "compared": hit.compared,
        "scored": hit.scored,
        "segments": [
            _segment_object(contents, evidence.segment, evidence.marks)
            | {"score": evidence.score, "weight": evidence.weight}
            for evidence in hit.segments
        ],
        "snippet": _segment_object(contents, shown.segment, shown.marks) if shown else None,
    }


def _segment_object(
    contents: str, segment: Segment, marks: Sequence[tuple[int, int]]
) -> dict[str, Any]:
    from birchbark.records import page_number

    page = page_number(contents, segment.start)
    place = {"start": segment.start, "end": segment.end, "page": page}
    return {**place, "text": segment.text, "marks": marks}
