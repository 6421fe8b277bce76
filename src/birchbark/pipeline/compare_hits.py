"""How are the best hits re-ranked by pairwise comparisons (duoBERT)?

Each document is represented by its highest-weighted segment (monoBERT's best passage), truncated to
the tokens that the model can read of each of two texts. Re-ranking k1 documents takes at most
k1 (k1 − 1) comparisons. Nogueira et al. 2019.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from birchbark import defaults
from birchbark.combine.pairwise import Pairwise
from birchbark.errors import InputError, require_at_least
from birchbark.pipeline.answers.answer import Hit, SearchStats
from birchbark.pipeline.reading.deadline import Deadline
from birchbark.pipeline.reading.score_segments import SPECIAL_TOKENS, score_before
from birchbark.records import best_first
from birchbark.score.duo import DuoScorer
from birchbark.score.scorer import Scorer
from birchbark.score_cache.cached_scorer import cached_for_query


@dataclass(frozen=True, slots=True)
class Duo:
    """The settings of pairwise re-ranking (duoBERT).

    Attributes:
        duo: The model that compares texts, from `load_duo_scorer`; it joins two texts into one
            input.
        scorer: Scores the inputs: `duo` again, or a cache in front of it.
        depth: k1, the number of best documents that are compared with each other. At least 2.
            Defaults to 10.
        pairwise: How comparisons become one score per document. Defaults to `Pairwise()`: each
            document is compared with all others, and its probabilities are summed.
        max_comparisons: The largest number of comparisons allowed for all queries of a run
            together. Defaults to None: no limit.
    """

    duo: DuoScorer
    scorer: Scorer
    depth: int = defaults.DUO_DEPTH
    pairwise: Pairwise = field(default_factory=Pairwise)
    max_comparisons: int | None = None

    def __post_init__(self) -> None:
        require_at_least("depth of pairwise re-ranking", self.depth, 2)

    def check_comparisons(self, candidates: Iterable[int]) -> int:
        """Return the number of comparisons for a run; InputError if it exceeds `max_comparisons`.

        candidates: the number of candidates of each query.
        """
        counts = [min(self.depth, number) for number in candidates]
        comparisons = sum(n * self.pairwise.comparisons_per_document(n) for n in counts)
        if self.max_comparisons is not None and comparisons > self.max_comparisons:
            raise InputError(
                "too many comparisons",
                wanted=f"at most {self.max_comparisons:,}",
                found=f"{comparisons:,}",
                remedy="a smaller depth, or sample:M",
            )
        return comparisons


@dataclass(frozen=True, slots=True)
class ComparedHits:
    """Hits re-ranked by comparisons, and their n scores; no scores if time did not suffice."""

    hits: tuple[Hit, ...]
    scores: tuple[float, ...]
    stats: SearchStats


def compare_hits(
    duo: Duo, query: str, hits: Sequence[Hit], deadline: Deadline | None = None
) -> ComparedHits:
    """Re-rank two or more hits by comparing them; hits with equal scores keep their order.

    hits: best first. If time does not suffice for all comparisons, the hits are returned in their
    order, without scores.
    """
    deadline = deadline or Deadline(None)
    token_budget = duo.duo.side_token_budget(query)
    full = duo.scorer.encode([_best_text(hit) for hit in hits])
    token_ids = [ids[:token_budget] for ids in full]
    lost = sum(len(ids) - len(read) for ids, read in zip(full, token_ids, strict=True))
    pairs = duo.pairwise.pairs(len(hits), query)
    inputs = [duo.duo.join(token_ids[i], token_ids[j]) for i, j in pairs]
    scorer = cached_for_query(duo.scorer)
    overhead = len(duo.scorer.spans(query)) + SPECIAL_TOKENS
    values = score_before(deadline, scorer, query, inputs, overhead, all_or_none=True)
    if len(values) < len(inputs):
        stats = SearchStats(
            comparisons=scorer.hits + scorer.misses, truncated_compared=lost, exact=False
        )
        return ComparedHits(tuple(hits), (), stats)
    p = np.full((len(hits), len(hits)), np.nan)
    p[tuple(np.array(pairs).T)] = values  # p[i, j] for each pair (i, j)
    scores = duo.pairwise.scores(p)  # (n,)
    order = best_first(scores)
    return ComparedHits(
        tuple(replace(hits[i], compared=float(scores[i])) for i in order),
        tuple(scores[order].tolist()),
        SearchStats(comparisons=len(pairs), truncated_compared=lost),
    )


def _best_text(hit: Hit) -> str:
    """Return the text of the best segment, else of the snippet, else of the whole document."""
    if hit.segments:
        return hit.segments[0].segment.text
    return hit.snippet.segment.text if hit.snippet else hit.document.contents
