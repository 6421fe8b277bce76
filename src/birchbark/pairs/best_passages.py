"""Which passages of a document become training pairs: all, or the ones a model scores highest?

Most passages of a relevant document do not answer the query. A model that is trained on all of them
learns that such passages are relevant. Chen et al. 2021 trained on the five passages per document
that a larger model scored highest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from birchbark.errors import InputError
from birchbark.records import Float32s, Pair, Query, best_first
from birchbark.score.scorer import Scorer


@dataclass(slots=True)
class BestPassages:
    """Selects the `count` highest-scored passages of each document.

    scored: the number of passages scored so far.
    truncated: the number of scored passages that were truncated, because they were too long
    for the model.
    """

    scorer: Scorer
    count: int
    scored: int = 0
    truncated: int = 0

    def __post_init__(self) -> None:
        if self.scorer.width > 1:
            raise InputError("this model scores documents, not segments", found=self.scorer.name)

    def check_queries(self, queries: Iterable[Query]) -> None:
        """Raise InputError for a query so long that no token of a text fits into the input."""
        for query in queries:
            try:
                self.scorer.token_budget(query.text)
            except InputError as error:
                raise error.at(f"query {query.query_id}") from None

    def select(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Yield the pairs of the best passages, in their original order.

        If scores are equal, earlier passages are preferred.
        pairs: all pairs of a query and a document must be adjacent.
        """
        for _, group in groupby(pairs, key=lambda pair: (pair.query_id, pair.doc_id)):
            passages = list(group)
            if len(passages) > self.count:
                best = sorted(best_first(self._scores(passages), self.count))
                passages = [passages[position] for position in best]
            yield from passages

    def _scores(self, passages: list[Pair]) -> Float32s:
        query = passages[0].query
        token_budget = self.scorer.token_budget(query)
        token_ids = self.scorer.encode([pair.text for pair in passages])
        self.scored += len(token_ids)
        self.truncated += sum(len(ids) > token_budget for ids in token_ids)
        return self.scorer.score(query, [ids[:token_budget] for ids in token_ids])  # (passages,)
