"""How are the texts of a request embedded, within its time?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from birchbark.deadline import TOKENS_AT_ONCE, Deadline
from birchbark.errors import DeadlineError, InputError
from birchbark.records import Float32s, Ids
from birchbark.score.batches import similar_lengths
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.scorer import Scorer
from birchbark.score.token_limits import cut_text


@dataclass(frozen=True, slots=True)
class Embedded:
    """Texts that were embedded.

    Attributes:
        model: The name of the model.
        vectors: The texts' vectors, of length 1: float32 (n, dimensions).
        tokens: The number of tokens that were read.
        truncated: The number of tokens of texts that were truncated, and not read.
    """

    model: str
    vectors: Float32s
    tokens: int
    truncated: int


def embed_texts(
    scorer: Scorer,
    texts: Sequence[str],
    deadline: Deadline,
    *,
    dimensions: int | None = None,
    queries: bool = False,
    truncate: bool = False,
) -> Embedded:
    """Return the vectors of texts.

    dimensions: how many numbers of each vector are kept; None for all. queries: whether the texts
    are queries, which some models read after a prompt. truncate: whether only the beginning of a
    text is read that is longer than the model's input.

    Raises InputError if the model has no vector per text or fewer dimensions, and for a text that
    is too long; DeadlineError if time does not suffice for all of them.
    """
    if not isinstance(scorer, EmbeddingScorer):
        raise InputError("the service's model has no vector per text", found=scorer.name)
    size = scorer.checkpoint.vector_size
    if dimensions and dimensions > size:
        wanted = f"at most {size}"
        raise InputError("too many dimensions", wanted=wanted, found=str(dimensions))
    side = scorer.queries if queries else scorer.texts
    budget, truncated = side.token_budget, 0
    read, encoded = list[str](), list[Ids]()
    for number, text in enumerate(texts):
        deadline.on_batch()
        beginning, count = cut_text(side, text, budget if truncate else None)
        truncated += count
        [ids] = side.encode([beginning])
        if len(ids) > budget:
            raise InputError(
                f"the text at index {number} is too long for the model",
                wanted=f"at most {budget} tokens",
                found=str(len(ids)),
                remedy="split it; /embed with truncate reads its beginning",
            )
        read.append(beginning)
        encoded.append(ids)
    vectors = np.empty((len(texts), size), np.float32)
    for positions in similar_lengths(list(map(len, encoded)), TOKENS_AT_ONCE):
        deadline.on_batch()
        if deadline.passed:
            raise DeadlineError("time does not suffice for all texts", remedy="fewer texts")
        if queries:
            vectors[positions] = [scorer.embed_query(read[position]) for position in positions]
        else:
            vectors[positions] = scorer.embed([encoded[position] for position in positions])
    if dimensions:
        vectors = vectors[:, :dimensions]
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-12))
    return Embedded(scorer.checkpoint.name, vectors, sum(map(len, encoded)), truncated)
