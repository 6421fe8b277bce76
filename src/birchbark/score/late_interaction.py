"""How does late interaction score a segment, by matching its tokens with the query's?

Query and segment are encoded separately, as by a bi-encoder, but every token has its own vector
(ColBERT, Khattab & Zaharia 2020). The token vectors of any encoder can be used without further
training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from birchbark.checkpoint.multi_vector import SIDES
from birchbark.errors import CheckpointError
from birchbark.records import Float32s, Ids
from birchbark.score.bert_scorer import BiEncoderScorer
from birchbark.score.session import row_offsets
from birchbark.score.token_limits import check_token_budget

Key = tuple[int, bytes]  # of an input: its tokens without those that extend it, and their ids


class LateInteractionScorer(BiEncoderScorer):
    """Returns MaxSim: the largest cosine of each query token with a segment token, averaged.

    Of any encoder, the special tokens of the segment are included, those of the query are not. A
    model that was trained for late interaction says itself which tokens count, and by which tokens
    short queries are extended (checkpoint/multi_vector.py). The mean is clipped to
    [0, 1]. Only prefetched vectors are cached, since a segment has a vector per token.
    """

    # of a checkpoint whose head is a Pooling with mode `tokens`
    kind, title = "late-interaction", "late interaction of {} tokens"

    def _prepare(self) -> None:
        super()._prepare()
        self._prefetched: Mapping[Key, Float32s] = {}  # → (tokens, hidden)
        multi_vector = self.checkpoint.multi_vector
        if multi_vector is None:
            self._expansion = np.empty(0, np.int32)
            self._skipped = dict.fromkeys(SIDES, self._expansion)
            return
        number = self._tokenizer.token_id(multi_vector.expansion_token)
        if number is None and multi_vector.expanded:
            raise CheckpointError(
                "unknown token of query_expansion",
                where=str(self.checkpoint.root),
                wanted="a token of the vocabulary",
                found=repr(multi_vector.expansion_token)[:40],
            )
        self._expansion = np.full(multi_vector.expanded, number or 0, np.int32)
        ids = [self._tokenizer.token_id(token) for token in multi_vector.skipped]
        known = np.array([i for i in ids if i is not None], np.int32)
        self._skipped = {
            side: known if side in multi_vector.skipped_in else known[:0] for side in SIDES
        }

    def score(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
        """Return MaxSim on the model's scale, in [0, 1]: float32 (n,)."""
        return self.checkpoint.scale.similarities(self.outputs(query, token_ids))

    def outputs(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
        """See BertScorer; MaxSim from −1 to 1."""
        check_token_budget(token_ids, self.texts.token_budget)
        query_ids = self._encode_query(query)
        query_vectors, *text_vectors = self._embed([query_ids], token_ids)
        query_vectors = query_vectors[self._counts_in_query(query_ids)]
        return _max_sim(query_vectors, self._compared(token_ids, text_vectors))

    def embed(self, token_ids: Sequence[Ids]) -> list[Float32s]:
        """Return the unit vectors (tokens, hidden) of encoded texts, of all tokens that count.

        InputError if a text is too long.
        """
        check_token_budget(token_ids, self.texts.token_budget)
        return self._compared(token_ids, self._embed([], token_ids))

    def embed_query(self, query: str) -> Float32s:
        """Return the unit vectors (tokens, hidden) of a query, of all tokens that count.

        InputError if it is too long.
        """
        query_ids = self._encode_query(query)
        (vectors,) = self._embed([query_ids], [])
        return vectors[self._counts_in_query(query_ids)]

    def _compared(self, token_ids: Sequence[Ids], vectors: Sequence[Float32s]) -> list[Float32s]:
        """Return those of each text's vectors that are compared with a query's."""
        skipped = self._skipped["document"]
        if not len(skipped):
            return list(vectors)
        return [
            rows[~np.isin(self.texts.input(ids), skipped)]
            for ids, rows in zip(token_ids, vectors, strict=True)
        ]

    def prefetch(self, queries: Sequence[str], texts: Sequence[Ids]) -> None:
        """See BiEncoderScorer; vectors from earlier calls are dropped."""
        self._prefetched = {}
        query_ids = [self._encode_query(query) for query in queries]
        vectors = self._embed(query_ids, texts)
        keys = (key for key, _ in self._inputs(query_ids, texts))
        self._prefetched = dict(zip(keys, vectors, strict=True))

    def _extended(self, query_ids: Ids) -> Ids:
        """Return the input of an encoded query, extended to the length of the expansion."""
        ids = self.queries.input(query_ids)
        return np.concatenate([ids, self._expansion[len(ids) :]])

    def _counts_in_query(self, query_ids: Ids) -> NDArray[np.bool_]:
        """Return which tokens of a query's input are compared, bool (tokens,)."""
        ids = self._extended(query_ids)
        if self.checkpoint.multi_vector:
            return ~np.isin(ids, self._skipped["query"])
        counts = np.zeros(len(ids), bool)
        counts[slice(*self.queries.text_range(len(query_ids)))] = True
        return counts

    def _inputs(self, queries: Sequence[Ids], texts: Sequence[Ids]) -> list[tuple[Key, Ids]]:
        """Return the inputs of encoded queries and texts, each after its key."""
        inputs = [(len(self.queries.input(ids)), self._extended(ids)) for ids in queries]
        inputs += [(len(ids), ids) for ids in map(self.texts.input, texts)]
        return [((own, ids.tobytes()), ids) for own, ids in inputs]

    def _embed(self, queries: Sequence[Ids], texts: Sequence[Ids]) -> list[Float32s]:
        """Return the unit vectors (tokens, hidden) of each query's and each text's input."""
        inputs, prefetched = self._inputs(queries, texts), self._prefetched
        new = {key: ids for key, ids in inputs if key not in prefetched}
        if not new:
            return [prefetched[key] for key, _ in inputs]
        types = None
        if self.checkpoint.multi_vector and not self.checkpoint.multi_vector.is_attended:
            types = [(np.arange(len(i)) >= own).astype(np.int32) for (own, _), i in new.items()]
        rows = self._session.run(list(new.values()), types)  # (all tokens, hidden)
        offsets = row_offsets([len(ids) for ids in new.values()], per_token=True)
        computed = dict(zip(new, np.split(rows, offsets[1:-1]), strict=True))
        vectors = {**prefetched, **computed}
        return [vectors[key] for key, _ in inputs]


def _max_sim(query: Float32s, texts: Sequence[Float32s]) -> Float32s:
    """Return MaxSim of a query (q, hidden) with n texts (tokens, hidden): float32 (n,) in [−1, 1].

    All vectors have length 1. The result is 0 for a query or a text without vectors.
    """
    if not len(query) or not texts:
        return np.zeros(len(texts), np.float32)
    if not all(map(len, texts)):
        scores = np.zeros(len(texts), np.float32)
        scores[[len(rows) > 0 for rows in texts]] = _max_sim(query, [t for t in texts if len(t)])
        return scores
    # einsum: the last bits of a matrix product would depend on the number of texts
    cosines = np.einsum("th,qh->tq", np.concatenate(texts), query)  # (all tokens, q)
    starts = row_offsets([len(rows) for rows in texts], per_token=True)[:-1]  # (n,)
    best = np.maximum.reduceat(cosines, starts, axis=0)  # (n, q)
    mean: Float32s = best.mean(1)
    return mean
