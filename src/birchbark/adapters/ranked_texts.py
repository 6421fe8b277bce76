"""How do the adapters re-rank texts, and hand on the sentences that made them rank? As dicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from birchbark.pipeline.answers.hit_fields import sentence_fields
from birchbark.pipeline.rank_texts import RankedText, highlight, rank


def ranked_texts(
    query: str,
    texts: Sequence[str],
    model: str | None,
    top: int | None,
    *,
    evidence: bool,
) -> list[tuple[RankedText, dict[str, Any]]]:
    """Return the best texts, each with the metadata to add; see `rank`.

    evidence: whether these have the text's sentences that are most relevant to the query, as
    `evidence`; see `highlight`. Otherwise they are empty.
    """
    ranked = rank(query, texts, model, top)
    if not evidence:
        return [(text, {}) for text in ranked]
    found = highlight(query, [text.text for text in ranked], model)
    return [
        (text, {"evidence": list(map(sentence_fields, sentences))})
        for text, sentences in zip(ranked, found, strict=True)
    ]
