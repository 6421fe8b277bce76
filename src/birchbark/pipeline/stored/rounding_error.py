"""How far do stored vectors, rounded and perhaps computed in int8, change scores?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from birchbark.score.bert_scorer import BiEncoderScorer
from birchbark.score.rounded_vector_scorer import RoundedVectorScorer
from birchbark.score.scorer import score_texts
from birchbark.score.token_limits import cut_text

TEXTS = 50
QUERY_TOKENS = 16  # at the beginning of each text; these are the queries


class RoundingError(NamedTuple):
    """Differences between the scores of stored vectors and of those computed in float32.

    Attributes:
        texts: How many segments were compared, with the beginnings of all of them as queries.
        largest: The largest difference of two scores, at least 0.
        mean: The mean difference, without regard to sign.
    """

    texts: int
    largest: float
    mean: float


def rounding_error(
    scorer: BiEncoderScorer, quantized: RoundedVectorScorer, texts: Iterable[str]
) -> RoundingError:
    """Score the first TEXTS distinct texts, for their beginnings as queries, by both scorers.

    quantized: `scorer` with vectors as they are stored. Texts must not exceed the scorer's token
    budget.
    """
    compared = _first_distinct(texts, TEXTS)
    if not compared:
        return RoundingError(0, 0.0, 0.0)
    queries = [cut_text(scorer, text, QUERY_TOKENS)[0] for text in compared]
    scorer.prefetch(queries, scorer.encode(compared))
    differences = [
        score_texts(scorer, query, compared) - score_texts(quantized, query, compared)
        for query in queries
    ]
    sizes = np.abs(np.stack(differences).astype(np.float64))  # (texts, texts)
    return RoundingError(len(compared), float(sizes.max()), float(sizes.mean()))


def _first_distinct(texts: Iterable[str], count: int) -> list[str]:
    distinct = dict[str, None]()
    for text in texts:
        distinct[text] = None
        if len(distinct) == count:
            break
    return list(distinct)
