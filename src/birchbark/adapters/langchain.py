"""How does a LangChain application re-rank documents with birchbark? A document compressor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from birchbark.adapters.extras import extra
from birchbark.adapters.found_sentences import found_sentences
from birchbark.pipeline.rank_texts import rank
from birchbark.score.dynamic_batching import dynamic_batcher
from birchbark.score.load_scorer import load_scorer
from birchbark.score.scorer import Scorer

with extra("langchain"):
    from langchain_core.callbacks.manager import Callbacks
    from langchain_core.documents import BaseDocumentCompressor, Document
    from pydantic import ConfigDict, Field, PrivateAttr


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
    _scorer: Scorer | None = PrivateAttr(default=None)

    def model_post_init(self, context: Any) -> None:
        """Load the model."""
        if self.model is not None:
            self._scorer = load_scorer(self.model, session=dynamic_batcher())

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
