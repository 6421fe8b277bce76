"""How are texts scored in batches, as many as a deadline allows?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from birchbark.deadline import Deadline
from birchbark.records import Float32s, Ids
from birchbark.score_cache.cached_scorer import CachedScorer
from birchbark.score_cache.score_file import row_shape

SPECIAL_TOKENS = 4  # maximum number per input


def score_before(
    deadline: Deadline,
    scorer: CachedScorer,
    query: str,
    token_ids: Sequence[Ids],
    overhead: int,
    *,
    all_or_none: bool = False,
) -> Float32s:
    """Score `token_ids` in batches; under a deadline, as many of the first ones as time allows.

    A batch is not started if it may end too late. Without a deadline the shortest inputs are scored
    first; under a deadline inputs are scored in order, so that documents are completed one by one.
    Returns scores (n,), or vectors (n, width), of the first n inputs, as float32.

    overhead: tokens per input in addition to those of the segment. all_or_none: also stop as soon
    as the remaining inputs cannot all be scored in time.
    """
    lengths = np.array([len(ids) + overhead for ids in token_ids], np.int64)  # (n,)
    scores = np.empty((len(token_ids), *row_shape(scorer.width)), np.float32)
    waiting = np.arange(len(token_ids)) if deadline.exists else np.argsort(lengths, kind="stable")
    while len(waiting):
        batch = waiting[: deadline.next_batch(lengths[waiting])]
        hopeless = all_or_none and not deadline.allows(int(lengths[waiting].sum()))
        if not len(batch) or hopeless:
            return scores[: waiting[0]]
        before = scorer.computed
        scores[batch] = scorer.score(query, [token_ids[i] for i in batch])
        share = (scorer.computed - before) / len(batch)  # cached scores say nothing about speed
        deadline.record(share * int(lengths[batch].sum()))
        waiting = waiting[len(batch) :]
    return scores
