"""Are embeddings those of BERT, also from a cache that threads share?"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from reference import SENTENCES, Bert, Reference, ids

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.records import Float32s, Ids
from birchbark.score import embedding
from birchbark.score.embedding import EmbeddingScorer


def test_embeddings_agree_with_the_reference(bert: Bert) -> None:
    """Embeddings are means over all tokens, special ones included, scaled to length 1."""
    directory = bert()
    scorer = EmbeddingScorer(Checkpoint.open(directory))
    expected = [Reference(directory).embedding([2, *ids(s), 3]) for s in SENTENCES]
    np.testing.assert_allclose(scorer.embed(scorer.encode(SENTENCES)), expected, atol=1e-5)


class FirstToken:
    """A session without a model: a text's vector is its first token, four times."""

    def __init__(self, checkpoint: Checkpoint, threads: int | None) -> None:
        """See Session."""

    def fingerprint(self, checkpoint: str) -> str:
        """See Session."""
        return checkpoint

    def run(self, ids: Sequence[Ids], types: Sequence[Ids] | None = None) -> Float32s:
        """See Session."""
        return np.array([[text[1]] * 4 for text in ids], np.float32)


def test_threads_share_an_embedding_scorer_with_a_small_cache(
    bert: Bert, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One thread may drop a vector that another is about to use or to drop."""
    monkeypatch.setattr(embedding, "MAX_CACHED_VECTORS", 300)
    scorer = EmbeddingScorer(Checkpoint.open(bert()), 1, FirstToken)

    def embedded(number: int) -> bool:
        first = number % 50 * 20
        texts = [np.array([first + i, number], np.int32) for i in range(400)]
        return scorer.embed(texts)[:, 0].tolist() == list(range(first, first + 400))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(embedded, range(1000)))
    finally:
        sys.setswitchinterval(interval)
