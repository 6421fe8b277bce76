"""How are the best hits re-ranked by pairwise comparisons (duoBERT)?

Each document is represented by its highest-weighted segment (monoBERT's best passage), truncated to
the tokens that the model can read of each of two texts. Re-ranking k1 documents takes at most
k1 (k1 − 1) comparisons. Nogueira et al. 2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from birchbark.deadline import Deadline
from birchbark.pipeline.answers.answer import Hit, SearchStats
from birchbark.pipeline.settings.duo import Duo
from birchbark.records import best_first
from birchbark.score_cache.cached_scorer import cached_for_query
from birchbark.score_cache.score_in_time import SPECIAL_TOKENS, score_before


def compare_hits(
    duo: Duo, query: str, hits: Sequence[Hit], deadline: Deadline | None = None
) -> tuple[list[Hit], SearchStats]:
    """Re-rank two or more hits by comparing them; hits with equal scores keep their order.

    hits: best first. None are returned if time does not suffice for all comparisons.
    """
    deadline = deadline or Deadline(None)
    token_budget = duo.model.side_token_budget(query)
    full = duo.scorer.encode([_best_text(hit) for hit in hits])
    token_ids = [ids[:token_budget] for ids in full]
    lost = sum(len(ids) - len(read) for ids, read in zip(full, token_ids, strict=True))
    pairs = duo.pairwise.pairs(len(hits), query)
    inputs = [duo.model.join(token_ids[i], token_ids[j]) for i, j in pairs]
    scorer = cached_for_query(duo.scorer)
    overhead = len(duo.scorer.spans(query)) + SPECIAL_TOKENS
    values = score_before(deadline, scorer, query, inputs, overhead, all_or_none=True)
    if len(values) < len(inputs):
        return [], SearchStats(
            comparisons=scorer.hits + scorer.misses, truncated_compared=lost, exact=False
        )
    p = np.full((len(hits), len(hits)), np.nan)
    p[tuple(np.array(pairs).T)] = values  # p[i, j] for each pair (i, j)
    scores = duo.pairwise.scores(p)  # (n,)
    ranked = [replace(hits[i], compared=float(scores[i])) for i in best_first(scores)]
    return ranked, SearchStats(comparisons=len(pairs), truncated_compared=lost)


def _best_text(hit: Hit) -> str:
    """Return the text of the best segment, else of the snippet, else of the whole document."""
    if hit.segments:
        return hit.segments[0].segment.text
    return hit.snippet.segment.text if hit.snippet else hit.document.contents
