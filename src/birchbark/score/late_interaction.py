"""How does late interaction score a segment, by matching its tokens with the query's?

Query and segment are encoded separately, as by a bi-encoder, but every token has its own vector
(ColBERT, Khattab & Zaharia 2020). The token vectors of any encoder can be used without further
training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from birchbark.records import Float32s, Ids
from birchbark.score.bert_scorer import BiEncoderScorer
from birchbark.score.scorer import check_token_budget
from birchbark.score.session import row_offsets


class LateInteractionScorer(BiEncoderScorer):
    """Returns MaxSim: the largest cosine of each query token with a segment token, averaged.

    The special tokens of the segment are included, those of the query are not. A negative mean
    becomes 0. Only prefetched vectors are cached, since a segment has a vector per token.
    """

    # of a checkpoint whose head is a Pooling with mode `tokens`
    kind, title = "late-interaction", "late interaction of {} tokens"

    def _prepare(self) -> None:
        super()._prepare()
        self._prefetched: Mapping[bytes, Float32s] = {}  # input ids → (tokens, hidden)

    def score(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
        """Return MaxSim in [0, 1], float32 (n,); 0 for a query without tokens."""
        check_token_budget(token_ids, self._texts.token_budget)
        query_ids = self._encode_query(query)
        texts = map(self._texts.input, token_ids)
        query_vectors, *text_vectors = self._embed([self._queries.input(query_ids), *texts])
        start, end = self._queries.text_range(len(query_ids))
        return _max_sim(query_vectors[start:end], text_vectors)

    def prefetch(self, queries: Sequence[str], texts: Sequence[Ids]) -> None:
        """See BiEncoderScorer; vectors from earlier calls are dropped."""
        self._prefetched = {}
        encoded = map(self._encode_query, queries)
        inputs = [*map(self._queries.input, encoded), *map(self._texts.input, texts)]
        vectors = self._embed(inputs)
        self._prefetched = {ids.tobytes(): rows for ids, rows in zip(inputs, vectors, strict=True)}

    def _embed(self, inputs: Sequence[Ids]) -> list[Float32s]:
        """Return the unit vectors (tokens, hidden) of each input, special tokens included."""
        keys, prefetched = [ids.tobytes() for ids in inputs], self._prefetched
        new = {k: ids for k, ids in zip(keys, inputs, strict=True) if k not in prefetched}
        if not new:
            return [prefetched[key] for key in keys]
        rows = self._session.run(list(new.values()))  # (all tokens, hidden)
        offsets = row_offsets([len(ids) for ids in new.values()], per_token=True)
        computed = dict(zip(new, np.split(rows, offsets[1:-1]), strict=True))
        vectors = {**prefetched, **computed}
        return [vectors[key] for key in keys]


def _max_sim(query: Float32s, texts: Sequence[Float32s]) -> Float32s:
    """Return MaxSim of a query (q, hidden) with n texts (tokens, hidden): float32 (n,).

    All vectors have length 1. The result is 0 for a query without tokens.
    """
    if not len(query) or not texts:
        return np.zeros(len(texts), np.float32)
    # einsum: the last bits of a matrix product would depend on the number of texts
    cosines = np.einsum("th,qh->tq", np.concatenate(texts), query)  # (all tokens, q)
    starts = row_offsets([len(rows) for rows in texts], per_token=True)[:-1]  # (n,)
    best = np.maximum.reduceat(cosines, starts, axis=0)  # (n, q)
    clipped: Float32s = np.clip(best.mean(1), 0, 1).astype(np.float32)
    return clipped
