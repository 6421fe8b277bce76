"""How is birchbark evaluated with BEIR? As its retriever.

EvaluateRetrieval(BirchbarkSearch()).retrieve(corpus, queries)

A `PairScorer` is a model for BEIR's `Rerank`.
"""

from __future__ import annotations

from collections.abc import Mapping

from birchbark.adapters.memory_collection import MemoryCollection


class BirchbarkSearch(MemoryCollection):
    """Searches BEIR's collections: BM25's candidates, re-ranked as by `birchbark rerank`.

    For the arguments see `MemoryCollection`.
    """

    def search(
        self,
        corpus: Mapping[str, Mapping[str, str]],
        queries: Mapping[str, str],
        top_k: int,
        score_function: str | None = None,
        **kwargs: object,
    ) -> dict[str, dict[str, float]]:
        """Index the corpus and rank its documents: query id → document id → score.

        Args:
            corpus: Document id → `title` and `text`.
            queries: Query id → query.
            top_k: Maximum number of documents per query.
            score_function: Accepted and ignored: the model decides.
            **kwargs: Accepted and ignored.

        Raises:
            InputError: A document has neither title nor text, or a query is too long for a model.
        """
        self.index_records({**fields, "id": doc_id} for doc_id, fields in corpus.items())
        return self.rank(queries, top_k)
