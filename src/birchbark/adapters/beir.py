"""How is birchbark evaluated with BEIR? As its retriever.

EvaluateRetrieval(BirchbarkSearch()).retrieve(corpus, queries)

A `PairScorer` is a model for BEIR's `Rerank`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from birchbark import defaults
from birchbark.adapters.memory_collection import MemoryCollection
from birchbark.pipeline.ranker import Ranker
from birchbark.retrieve.first_stage import FirstStage


class BirchbarkSearch:
    """Searches BEIR's collections: BM25's candidates, re-ranked as by `birchbark rerank`.

    Args:
        model: The name or directory of a model; a `Ranker`, or one per stage; `()` for the first
            stage alone. Defaults to `birchbark-minilm-l6`, with the default reading plan.
        first_stage: How candidates are found. Defaults to `FirstStage()`: BM25.
        query_tokens: Number of tokens at the beginning of a query that a named model reads.
            Defaults to None: all of them, and a query that is too long is an error.
    """

    def __init__(
        self,
        model: str | Path | Ranker | Sequence[Ranker] = defaults.MODEL,
        first_stage: FirstStage = FirstStage(),
        query_tokens: int | None = None,
    ) -> None:
        self._collection = MemoryCollection(model, first_stage, query_tokens)

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
        self._collection.index({**fields, "id": doc_id} for doc_id, fields in corpus.items())
        return self._collection.search(queries, top_k)
