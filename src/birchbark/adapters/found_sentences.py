"""How do the adapters hand the sentences that made a text rank to other libraries? As dicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from birchbark.pipeline.answer import Evidence
from birchbark.pipeline.rank_texts import highlight
from birchbark.pipeline.ranker import Ranker
from birchbark.score.scorer import Scorer


def found_sentences(
    query: str, texts: Sequence[str], models: Scorer | Ranker | None
) -> list[list[dict[str, Any]]]:
    """Return for each text the sentences that say most about the query; see `highlight`."""
    return [list(map(sentence_fields, found)) for found in highlight(query, texts, models)]


def sentence_fields(evidence: Evidence) -> dict[str, Any]:
    """Return a sentence as a dict: text, start and end in the text, and score."""
    segment = evidence.segment
    return {
        "text": segment.text,
        "start": segment.start,
        "end": segment.end,
        "score": evidence.score,
    }
