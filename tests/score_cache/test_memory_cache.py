"""Does the memory cache stay within its limit, and do threads that share it count correctly?"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

from birchbark.score.scorer import Scorer
from birchbark.score_cache.cached_scorer import (
    CachedScorer,
    ScoreCaches,
    cached_for_query,
    uncached,
)
from birchbark.score_cache.memory_cache import KEY_BYTES, MemoryCache
from conftest import WordScorer


def test_recently_used_scores_stay_and_old_ones_go() -> None:
    """Memory never exceeds the limit; scores that are looked up again stay."""
    cache = MemoryCache(max_bytes=2 * 100 * (KEY_BYTES + 4))
    texts = [np.array([n], np.int32) for n in range(400)]
    first = cache.keys("q", texts[:10])
    cache.add(first, np.arange(10, dtype=np.float32))
    for start in range(10, 390, 10):
        keys = cache.keys("q", texts[start : start + 10])
        cache.add(keys, np.zeros(10, np.float32))
        scores, known = cache.find(first)
        assert known.all()
        assert scores.tolist() == list(range(10))
        assert len(cache) <= 200
    assert not cache.find(cache.keys("q", texts[10:20]))[1].any()


@pytest.mark.parametrize("width", [1, 3])
def test_a_cache_without_limit_drops_nothing(width: int) -> None:
    """Without a limit, neither scores nor vectors are dropped."""
    cache = MemoryCache(width, max_bytes=None)
    keys = cache.keys("q", [np.array([n], np.int32) for n in range(1000)])
    values = np.arange(1000 * width, dtype=np.float32).reshape((1000, width)[: 1 + (width > 1)])
    for start in range(0, 1000, 10):
        cache.add(keys[start : start + 10], values[start : start + 10])
    stored, known = cache.find(keys)
    assert known.all()
    assert stored.tobytes() == values.tobytes()


def test_threads_count_their_own_work() -> None:
    """Two queries share scores; each counts its own pairs, and the shared scorer the sum."""
    shared = CachedScorer(WordScorer(), MemoryCache())
    start = Barrier(2)

    def run(query: str) -> tuple[int, int, int]:
        own = cached_for_query(shared)
        start.wait(10)
        token_ids = own.encode(["bees", "dance", "bees"])
        own.score(query, token_ids)
        own.score(query, token_ids)
        return own.misses, own.hits, own.computed

    with ThreadPoolExecutor(2) as pool:
        counts = list(pool.map(run, ["bees", "dance"]))
    assert counts == [(2, 2, 2), (2, 2, 2)]
    assert (shared.misses, shared.hits, shared.computed) == (4, 0, 4)


def test_a_query_counts_what_the_shared_cache_knows_as_not_computed() -> None:
    """A pair that an earlier query scored is a miss of this query's cache, but costs no model."""
    shared = CachedScorer(WordScorer(), MemoryCache())
    first, second = cached_for_query(shared), cached_for_query(shared)
    token_ids = shared.encode(["bees", "dance"])
    assert first.score("bees", token_ids).tolist() == second.score("bees", token_ids).tolist()
    assert (first.misses, first.computed) == (2, 2)
    assert (second.misses, second.computed) == (2, 0)


def test_equal_scorers_share_one_cache() -> None:
    """Scorers are distinguished by fingerprint, and none gets two caches."""
    opened = []

    def make_cache(scorer: Scorer) -> MemoryCache:
        opened.append(scorer.fingerprint)
        return MemoryCache(scorer.width)

    inner = WordScorer()
    caches = ScoreCaches(make_cache, lambda scorer: scorer.fingerprint)
    outer = caches.cached(inner)
    assert caches.cached(WordScorer()) is outer
    assert caches.cached(outer) is outer
    assert caches.scorers == (outer,)
    assert ScoreCaches(make_cache).cached(outer) is outer
    assert opened == [inner.fingerprint]
    by_scorer = ScoreCaches(make_cache)  # by default without asking for fingerprints
    assert by_scorer.cached(inner) is by_scorer.cached(outer)
    assert by_scorer.cached(WordScorer()) is not by_scorer.cached(inner)
    assert uncached(cached_for_query(outer)) is inner
