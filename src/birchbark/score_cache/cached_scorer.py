"""How does a scorer avoid scoring a pair twice?"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from threading import Lock
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from birchbark.records import Float32s, Ids
from birchbark.score.scorer import DocumentScorer, Scorer
from birchbark.score_cache.memory_cache import MemoryCache
from birchbark.score_cache.score_file import Keys, row_shape


class ScoreCache(Protocol):
    """Maps keys of query–segment pairs to scores: a ScoreStore on disk or a MemoryCache."""

    def keys(self, query: str, token_ids: Sequence[Ids]) -> Keys:
        """Return the keys (n, 2) of encoded texts for one query."""
        ...

    def find(self, keys: Keys) -> tuple[Float32s, NDArray[np.bool_]]:
        """Return the scores (n,) or vectors (n, width) of `keys`, and which of them were found.

        The second array, bool (n,), is True for each key found; the scores of others are NaN.
        """
        ...

    def add(self, keys: Keys, scores: Float32s) -> None:
        """Store the scores (n,) or vectors (n, width) of `keys` (n, 2)."""
        ...


class CachedScorer:
    """Wraps a scorer with a cache, so that only pairs missing from the cache are scored.

    The scores are bit for bit those of the wrapped scorer. Pairs are counted without duplicates
    within a call.

    Attributes:
        scorer: The wrapped scorer, which may itself be cached.
        hits: Number of pairs found in the cache so far.
        misses: Number of pairs passed on to `scorer` so far.
        computed: Number of pairs that a model scored so far: the misses that were in no cache of
            `scorer` either.
    """

    def __init__(self, scorer: Scorer, cache: ScoreCache) -> None:
        """Wrap `scorer`. cache: holds the scores of this scorer only."""
        self.name, self.kind = scorer.name, scorer.kind
        self.token_budget, self.spans, self.encode = (
            scorer.token_budget,
            scorer.spans,
            scorer.encode,
        )
        self.scorer, self._cache = scorer, cache
        self.hits = self.misses = self.computed = 0
        self._counting = Lock()

    @property
    def fingerprint(self) -> str:
        """The scorer's."""
        return self.scorer.fingerprint

    @property
    def encoding(self) -> str:
        """The scorer's."""
        return self.scorer.encoding

    @property
    def vocabulary(self) -> int:
        """The scorer's."""
        return self.scorer.vocabulary

    @property
    def width(self) -> int:
        """The scorer's."""
        return self.scorer.width

    def score_document(self, values: Float32s) -> tuple[float, NDArray[np.float64]]:
        """See DocumentScorer; only where `width` is above 1."""
        return cast(DocumentScorer, self.scorer).score_document(values)

    def score(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
        """See Scorer. Equal texts are scored only once. New scores are cached before it returns."""
        return self._score(query, token_ids)[0]

    def _score(self, query: str, token_ids: Sequence[Ids]) -> tuple[Float32s, int]:
        """Return scores (n,) or vectors (n, width), and the number of pairs that a model scored."""
        if not token_ids:
            return np.empty((0, *row_shape(self.width)), np.float32), 0
        keys = self._cache.keys(query, token_ids)  # (n, 2)
        distinct, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        scores, known = self._cache.find(distinct)  # (d,) or (d, width), and (d,)
        new, computed = np.flatnonzero(~known), 0
        if len(new):
            new = new[np.argsort(first[new])]  # in the order given
            scores[new], computed = self._compute(query, [token_ids[i] for i in first[new]])
            self._cache.add(distinct[new], scores[new])
        self._count(len(distinct) - len(new), len(new), computed)
        return scores[inverse.reshape(-1)], computed

    def _compute(self, query: str, token_ids: Sequence[Ids]) -> tuple[Float32s, int]:
        if isinstance(self.scorer, CachedScorer):
            return self.scorer._score(query, token_ids)
        return self.scorer.score(query, token_ids), len(token_ids)

    def _count(self, hits: int, misses: int, computed: int) -> None:
        with self._counting:
            self.hits += hits
            self.misses += misses
            self.computed += computed


class ScoreCaches:
    """Scorers with caches, for any number of threads; scorers with equal keys share one cache.

    make_cache: opens the cache of a scorer. key: by default, the scorer is itself the key. Its
    fingerprint would be shared by a model that is loaded twice, but to know it takes as long as
    loading the model.
    """

    def __init__(
        self,
        make_cache: Callable[[Scorer], ScoreCache],
        key: Callable[[Scorer], Hashable] = lambda scorer: id(uncached(scorer)),
    ) -> None:
        self._make_cache, self._key, self._lock = make_cache, key, Lock()
        self._by_key: dict[Hashable, CachedScorer] = {}

    def cached(self, scorer: Scorer) -> CachedScorer:
        """Return `scorer` with its cache. A CachedScorer is not wrapped again."""
        with self._lock:
            key = self._key(scorer)
            if key not in self._by_key:
                if not isinstance(scorer, CachedScorer):
                    scorer = CachedScorer(scorer, self._make_cache(scorer))
                self._by_key[key] = scorer
            return self._by_key[key]

    @property
    def scorers(self) -> tuple[CachedScorer, ...]:
        """The scorers with caches so far."""
        return tuple(self._by_key.values())


def cached_for_query(scorer: Scorer) -> CachedScorer:
    """Wrap `scorer` with an unlimited memory cache for a single query.

    The counts are those of this query, even if other queries use `scorer` at the same time.
    """
    return CachedScorer(scorer, MemoryCache(scorer.width, max_bytes=None))


def uncached(scorer: Scorer) -> Scorer:
    """Return the innermost scorer, without any CachedScorer around it."""
    while isinstance(scorer, CachedScorer):
        scorer = scorer.scorer
    return scorer
