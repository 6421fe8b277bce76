"""How probable is it that a document answers the query?

A search always has hits, also when no document says anything on the question. Scores before
normalisation tell: the cross-encoder's highest probability for a passage, and the document's
evidence by the embedding. A logistic regression maps both to a probability. It was fitted to the
best hits for questions of five sets, half of which have no answer in what was searched
(docs/explanation/answer-probability.md).
"""

from __future__ import annotations

import math

LOG_ODDS, EMBEDDING, CONSTANT = 0.75, 1.10, -1.09  # weights
LEAST = 1e-4  # probabilities below it, and above 1 minus it, are not told apart
UNLIKELY = 0.13  # 2 % of the questions that had an answer score below it


def answer_probability(passage: float, embedding: float) -> float:
    """Return the probability, from 0 to 1, that a document answers a query.

    passage: the cross-encoder's highest probability for a passage of it, from 0 to 1. embedding:
    the document's evidence by the embedding, unweighted, at most 1. Both on the models' own scales.
    """
    inside = min(max(passage, LEAST), 1 - LEAST)
    log_odds = LOG_ODDS * math.log(inside / (1 - inside)) + EMBEDDING * min(embedding, 1)
    return 1 / (1 + math.exp(-log_odds - CONSTANT))
