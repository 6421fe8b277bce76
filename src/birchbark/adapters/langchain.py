"""How does a LangChain application search and re-rank? A retriever and a document compressor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from birchbark import defaults
from birchbark.adapters.found_passages import found_passages
from birchbark.adapters.found_sentences import found_sentences
from birchbark.errors import extra
from birchbark.pipeline.rank_texts import load_once, rank
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.score.scorer import Scorer

with extra("langchain"):
    from langchain_core.callbacks.manager import CallbackManagerForRetrieverRun, Callbacks
    from langchain_core.documents import BaseDocumentCompressor, Document
    from langchain_core.retrievers import BaseRetriever
    from pydantic import ConfigDict, Field, PrivateAttr


class BirchbarkRetriever(BaseRetriever):
    """Searches an index, as `birchbark search` does; returns the best passage of each document.

    The metadata have the document's id (`doc_id`), title and path, its score, the probability that
    it answers the query, the passage's offsets in the document, its page or line, and the sentence
    that is marked in it, as far as they are known. Changes of the index are seen at once.

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
    _searcher: Searcher = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Open the index."""
        super().model_post_init(context)
        self._searcher = Searcher(self.index, self.model)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        found = found_passages(self._searcher, query, self.k, self.budget)
        return [Document(one.text, metadata=one.metadata) for one in found]


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
    _scorer: Scorer | Ranker | None = PrivateAttr(default=None)

    def model_post_init(self, context: Any) -> None:
        """Load the model."""
        if self.model is not None:
            self._scorer = load_once(self.model)

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """See LangChain. Long documents are split into chunks, not truncated."""
        documents = list(documents)
        texts = [document.page_content for document in documents]
        ranked = rank(query, texts, self._scorer, self.top_n)
        compressed = []
        for text in ranked:
            document = documents[text.index]
            metadata = {**document.metadata, "relevance_score": text.score}
            compressed.append(document.model_copy(update={"metadata": metadata}))
        if self.evidence:
            read = [text.text for text in ranked]
            sentences = found_sentences(query, read, self._scorer)
            for document, found in zip(compressed, sentences, strict=True):
                document.metadata["evidence"] = found
        return compressed
