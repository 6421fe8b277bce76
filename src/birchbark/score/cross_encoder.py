"""How does a cross-encoder score a segment, by reading it together with the query?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from birchbark.records import Float32s, Ids
from birchbark.score.bert_scorer import BertScorer
from birchbark.score.token_limits import check_token_budget, longest_query, query_too_long

RESERVED_QUERY_TOKENS = 64


class CrossEncoderScorer(BertScorer):
    """Returns the probability of relevance: the sigmoid of the log-odds on the model's scale.

    The input is [CLS] query [SEP] segment [SEP], with the model's own special tokens: RoBERTa
    reads <s> query </s></s> segment </s>. Nogueira & Cho 2019; the relevance classifier of the
    birch paper.
    """

    kind, title = "cross-encoder", "{} cross-encoder"

    def _prepare(self) -> None:
        self._token_budget = self.checkpoint.max_length - self._tokenizer.pair_overhead

    @property
    def max_query_tokens(self) -> int:
        """The maximum number of tokens of a query: half of an input, without special ones."""
        return longest_query(self._token_budget)

    def max_text_tokens(self, query: str) -> int:
        """Return the maximum number of tokens of a text beside this query, with none reserved."""
        return self._token_budget - len(self.spans(query))

    def token_budget(self, query: str) -> int:
        """Return how many tokens a segment may have.

        64 tokens are reserved for the query, a fifth of a short input, or the query's length if it
        is longer, so that long sentences are split at the same positions for all but very long
        queries. Raises InputError if the query takes more than half of the input.
        """
        length, available = len(self.spans(query)), self._token_budget
        if length > self.max_query_tokens:
            raise query_too_long(query, length, self.max_query_tokens)
        return available - max(length, min(RESERVED_QUERY_TOKENS, available // 5))

    def score(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
        """Return probabilities of relevance, float32 (n,)."""
        return self.score_queries([(query, token_ids)])[0]

    def score_queries(self, requests: Sequence[tuple[str, Sequence[Ids]]]) -> list[Float32s]:
        """Return what `score` returns for each query and its texts, computed in shared batches.

        The few texts of a query leave most of a GPU idle.
        """
        scale = self.checkpoint.scale
        return [scale.probabilities(rows).astype(np.float32) for rows in self._run(requests)]

    def outputs(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
        """See BertScorer; log-odds of relevance."""
        return self._run([(query, token_ids)])[0]

    def _run(self, requests: Sequence[tuple[str, Sequence[Ids]]]) -> list[Float32s]:
        """Return the model's output for each query with its encoded texts."""
        encoded = self._tokenizer.encode([query for query, _ in requests])
        inputs = []
        for query_ids, (_, token_ids) in zip(encoded, requests, strict=True):
            check_token_budget(token_ids, self._token_budget - len(query_ids))
            inputs += [self._tokenizer.pair_input(query_ids, text) for text in token_ids]
        rows = self._session.run([ids for ids, _ in inputs], [types for _, types in inputs])
        ends = np.cumsum([len(token_ids) for _, token_ids in requests])
        return np.split(rows, ends[:-1]) if requests else []
