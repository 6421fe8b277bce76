"""How do the adapters hand the sentences that made a text rank to other libraries? As dicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from birchbark.pipeline.answers.hit_fields import sentence_fields
from birchbark.pipeline.rank_texts import highlight
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.score.scorer import Scorer


def found_sentences(
    query: str, texts: Sequence[str], models: Scorer | Ranker | None
) -> list[list[dict[str, Any]]]:
    """Return for each text the sentences that are most relevant to the query; see `highlight`."""
    return [list(map(sentence_fields, found)) for found in highlight(query, texts, models)]
