"""How do programs learn what a search has read, and with which models?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from birchbark.pipeline.answers.answer import SearchStats
from birchbark.pipeline.settings.ranker import Ranker

COUNTS = (
    *("candidates", "scored", "pairs", "embedded", "segments", "by_vectors"),
    *("unsplit_characters", "cut_query_tokens"),
)


def reading_summary(stats: SearchStats, rankers: Sequence[Ranker]) -> dict[str, Any]:
    """Return the fields that `search --json` and the service's answers share.

    planned: the number of pairs that the scorer reads at most; None if the plan has no limit, or
    with several stages. rankers: the stages of the search; none for the first stage alone.
    """
    planned = rankers[0].plan.max_pairs(stats.candidates) if len(rankers) == 1 else None
    return {name: getattr(stats, name) for name in COUNTS} | {
        "missing_shards": list(stats.missing_shards),
        "planned": planned,
        "models": [ranker.scorer.name for ranker in rankers],
        "embedding": next((r.embedding.name for r in rankers if r.embedding), None),
    }
