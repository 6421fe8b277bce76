"""How does a LangChain application search and re-rank? A retriever and a document compressor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from birchbark import defaults
from birchbark.adapters.found_passages import found_passages
from birchbark.adapters.ranked_texts import ranked_texts
from birchbark.errors import extra
from birchbark.pipeline.rank_texts import load_once
from birchbark.pipeline.searcher import Searcher

with extra("langchain"):
    from langchain_core.callbacks.manager import CallbackManagerForRetrieverRun, Callbacks
    from langchain_core.documents import BaseDocumentCompressor, Document
    from langchain_core.retrievers import BaseRetriever
    from pydantic import ConfigDict, Field, PrivateAttr


class BirchbarkRetriever(BaseRetriever):
    """Searches an index, as `birchbark search` does; returns the best passage of each document.

    Nothing in a query is an operator. The metadata have the id of the indexed document (`doc_id`),
    its title, path and score, the probability that it answers the query, the passage's offsets in
    it, its page or line, and the sentence that is marked in it, as far as they are known. The id of
    a passage is `DOC_ID:START`, whatever the query is. Changes of the index are seen at once.

    Attributes:
        index: The directory of the index.
        model: The name or directory of a model, see `Searcher`. Defaults to the bundled
            cross-encoder, which ranks beside the bundled embedding.
        k: Maximum number of documents to return. Defaults to 4.
        budget: Maximum time of a search in seconds. Defaults to None: no limit.
    """

    index: str
    model: str = defaults.MODEL
    k: int = Field(default=4, ge=1)
    budget: float | None = Field(default=None, gt=0)
    model_config = ConfigDict(extra="forbid")
    _searcher: Searcher = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Open the index."""
        super().model_post_init(context)
        self._searcher = Searcher(self.index, self.model)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        found = found_passages(self._searcher, query, self.k, self.budget)
        return [Document(one.text, id=one.passage_id, metadata=one.metadata) for one in found]


class BirchbarkRerank(BaseDocumentCompressor):
    """Returns copies of the most relevant documents, best first.

    Each copy has its probability of relevance, 0 to 1, as `relevance_score` in its metadata, as
    with CohereRerank.

    Attributes:
        model: The name or directory of a model (see `load_scorer`); it runs in this process.
            Defaults to None: both default models, as in `birchbark.rank`.
        top_n: Maximum number of documents to return; None for all. Defaults to 3.
        evidence: Whether the metadata also have the three sentences that are most relevant to the
            query, as `evidence`: dicts with text, start, end (offsets in the content) and score.
            Defaults to False.
    """

    model: str | None = None
    top_n: int | None = Field(default=3, ge=1)
    evidence: bool = False
    model_config = ConfigDict(extra="forbid")

    def model_post_init(self, context: Any) -> None:
        """Load the model."""
        load_once(self.model)

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """See LangChain. Long documents are split into chunks, not truncated."""
        documents = list(documents)
        texts = [document.page_content for document in documents]
        compressed = []
        for text, found in ranked_texts(
            query, texts, self.model, self.top_n, evidence=self.evidence
        ):
            document = documents[text.index]
            metadata = {**document.metadata, "relevance_score": text.score, **found}
            compressed.append(document.model_copy(update={"metadata": metadata}))
        return compressed
