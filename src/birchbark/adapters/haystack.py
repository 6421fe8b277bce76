"""How does a Haystack pipeline search and re-rank? A retriever and a ranker component."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from birchbark import defaults
from birchbark.adapters.found_passages import found_passages
from birchbark.adapters.ranked_texts import ranked_texts
from birchbark.errors import extra, require_at_least
from birchbark.pipeline.rank_texts import load_once
from birchbark.pipeline.searcher import Searcher

with extra("haystack"):
    from haystack import Document, component, default_from_dict, default_to_dict


@component
class BirchbarkRetriever:
    """Searches an index, as `birchbark search` does; returns the best passage of each document.

    Nothing in a query is an operator. The meta have the id of the indexed document (`doc_id`),
    its title, path and score, the probability that it answers the query, the passage's offsets in
    it, its page or line, and the sentence that is marked in it, as far as they are known. The id of
    a passage is `DOC_ID:START`, whatever the query is. Changes of the index are seen at once.

    Args:
        index: The directory of the index.
        model: The name or directory of a model, see `Searcher`. Defaults to the bundled
            cross-encoder, which ranks beside the bundled embedding.
        top_k: Maximum number of documents to return. Defaults to 10.
        budget: Maximum time of a search in seconds. Defaults to None: no limit.
    """

    def __init__(
        self,
        index: str,
        model: str = defaults.MODEL,
        top_k: int = defaults.TOP,
        budget: float | None = None,
    ) -> None:
        require_at_least("top_k", top_k, 1)
        self.index, self.model, self.top_k, self.budget = index, model, top_k, budget
        self._searcher: Searcher | None = None

    def warm_up(self) -> None:
        """Open the index unless it is open already; `run` does this as well."""
        self._opened()

    def to_dict(self) -> dict[str, Any]:
        """See Haystack."""
        options = {"model": self.model, "top_k": self.top_k, "budget": self.budget}
        data: dict[str, Any] = default_to_dict(self, index=self.index, **options)
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> BirchbarkRetriever:
        """See Haystack."""
        retriever: BirchbarkRetriever = default_from_dict(cls, data)
        return retriever

    @component.output_types(documents=list[Document])
    def run(self, query: str, top_k: int | None = None) -> dict[str, list[Document]]:
        """Return the passages, those of the best documents first.

        top_k: overrides the `top_k` of the component; None to use that.
        """
        top = self.top_k if top_k is None else top_k
        found = found_passages(self._opened(), query, top, self.budget)
        documents = [
            Document(id=one.passage_id, content=one.text, meta=one.metadata, score=one.score)
            for one in found
        ]
        return {"documents": documents}

    def _opened(self) -> Searcher:
        if self._searcher is None:
            self._searcher = Searcher(self.index, self.model)
        return self._searcher


@component
class BirchbarkRanker:
    """Returns the most relevant documents, best first, with their scores.

    Each document's score is its probability of relevance, 0 to 1. A document without text is ranked
    as an empty text.

    Args:
        model: The name or directory of a model (see `load_scorer`); it runs in this process.
            Defaults to None: both default models, as in `birchbark.rank`.
        top_k: Maximum number of documents to return; None for all. Defaults to 10.
        evidence: Whether the documents' meta also have the three sentences that are most relevant
            to the query, as `evidence`: dicts with text, start, end (offsets in the content) and
            score. Defaults to False.
    """

    def __init__(
        self,
        model: str | None = None,
        top_k: int | None = defaults.TOP,
        evidence: bool = False,
    ) -> None:
        self.model, self.top_k, self.evidence = model, top_k, evidence

    def warm_up(self) -> None:
        """Load the model unless it is loaded already; `run` does this as well."""
        load_once(self.model)

    def to_dict(self) -> dict[str, Any]:
        """See Haystack."""
        data: dict[str, Any] = default_to_dict(
            self, model=self.model, top_k=self.top_k, evidence=self.evidence
        )
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> BirchbarkRanker:
        """See Haystack."""
        ranker: BirchbarkRanker = default_from_dict(cls, data)
        return ranker

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, documents: list[Document], top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """Return the documents, best first.

        top_k: overrides the `top_k` of the component; None to use that.
        """
        documents = list(documents)
        texts = [document.content or "" for document in documents]
        top = self.top_k if top_k is None else top_k
        ranked = ranked_texts(query, texts, self.model, top, evidence=self.evidence)
        return {
            "documents": [
                replace(
                    documents[text.index],
                    score=text.score,
                    meta={**documents[text.index].meta, **found},
                )
                for text, found in ranked
            ]
        }
