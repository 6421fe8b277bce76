"""How does a bi-encoder score a segment, by comparing its embedding with the query's?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from threading import Lock

import numpy as np

from birchbark.records import Float32s, Ids
from birchbark.score.bert_scorer import BiEncoderScorer
from birchbark.score.token_limits import check_token_budget

MAX_CACHED_VECTORS = 100_000


class EmbeddingScorer(BiEncoderScorer):
    """Returns the cosine of the query's and the segment's embedding, on the model's scale.

    The 100,000 most recently computed vectors are cached (150 MB for 384 dimensions), so that a
    sentence is not encoded again for another query. This cache holds vectors of texts; the caches
    in score_cache/ hold scores of query–segment pairs.
    """

    kind, title = "embedding", "cosine of {} embeddings"  # of a checkpoint whose head is a Pooling

    def _prepare(self) -> None:
        super()._prepare()
        self._cached: dict[bytes, Float32s] = {}  # input ids → (hidden,)
        self._cache_lock = Lock()  # not held while the model runs

    def score(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
        """Return cosines on the model's scale, clipped to [0, 1]: float32 (n,)."""
        return self.cosines(query, self.embed(token_ids))

    def outputs(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
        """See BertScorer; cosines from −1 to 1."""
        return self._products(query, self.embed(token_ids))

    def cosines(self, query: str, vectors: Float32s) -> Float32s:
        """Return the query's cosines with unit vectors (n, hidden), scaled and clipped to [0, 1].

        The result is float32 (n,). By a static embedding, texts that are not near the query keep
        their order, with scores of a millionth: the passages to read are chosen by it.
        """
        scale, products = self.checkpoint.scale, self._products(query, vectors)
        if self.checkpoint.family.static:
            return scale.ordered_similarities(products)
        return scale.similarities(products)

    @property
    def fingerprint(self) -> str:
        """See BertScorer."""
        return super().fingerprint + ("-ordered" if self.checkpoint.family.static else "")

    def _products(self, query: str, vectors: Float32s) -> Float32s:
        """Return the query's cosines with unit vectors (n, hidden): float32 (n,)."""
        if not len(vectors):
            return np.empty(0, np.float32)
        query_vector = self.embed_query(query)  # (hidden,)
        # einsum: the last bits of a matrix product would depend on n
        products: Float32s = np.einsum("nh,h->n", vectors, query_vector)
        return products

    def prefetch(self, queries: Sequence[str], texts: Sequence[Ids]) -> None:
        """See BiEncoderScorer; the vectors are added to the scorer's cache."""
        encoded = map(self._encode_query, queries)
        check_token_budget(texts, self.texts.token_budget)
        self._vectors([*map(self.queries.input, encoded), *map(self.texts.input, texts)])

    def embed_query(self, query: str) -> Float32s:
        """Return the unit vector (hidden,) of a query; InputError if it is too long."""
        vector: Float32s = self._vectors([self.queries.input(self._encode_query(query))])[0]
        return vector

    def embed(self, token_ids: Sequence[Ids], *, keep: bool = True) -> Float32s:
        """Return the unit vectors (n, hidden) of encoded texts; InputError if one is too long.

        keep: whether the computed vectors are added to the cache.
        """
        check_token_budget(token_ids, self.texts.token_budget)
        return self._vectors([self.texts.input(ids) for ids in token_ids], keep=keep)

    def _vectors(self, inputs: Sequence[Ids], *, keep: bool = True) -> Float32s:
        """Return the unit vectors (n, hidden) of inputs. keep: see `embed`."""
        if not inputs:
            return np.empty((0, self.checkpoint.vector_size), np.float32)
        keys = [ids.tobytes() for ids in inputs]
        # look up each key only once: another thread may drop vectors in the meantime
        vectors = {key: vector for key in keys if (vector := self._cached.get(key)) is not None}
        uncached = {k: ids for k, ids in zip(keys, inputs, strict=True) if k not in vectors}
        rows = self._session.run(list(uncached.values()))
        # copy each row: a view would keep its whole batch in memory
        computed = {key: row.copy() for key, row in zip(uncached, rows, strict=True)}
        vectors |= computed
        if keep:
            self._store(computed)
        return np.stack([vectors[key] for key in keys])

    def forget(self) -> None:
        """Drop the cached vectors, as for measuring how long new texts take."""
        with self._cache_lock:
            self._cached.clear()

    def _store(self, computed: dict[bytes, Float32s]) -> None:
        """Add vectors to the cache, and drop the oldest ones beyond MAX_CACHED_VECTORS."""
        with self._cache_lock:
            self._cached |= computed
            excess = max(0, len(self._cached) - MAX_CACHED_VECTORS)
            for oldest in list(islice(self._cached, excess)):
                del self._cached[oldest]
