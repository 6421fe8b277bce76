"""How does a LangChain application re-rank by birchbark? A document compressor, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks.manager import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import ConfigDict, Field, PrivateAttr

from birchbark.checkpoint.named import DEFAULT_MODEL
from birchbark.pipeline.texts import rank_texts
from birchbark.score.model import load_scorer
from birchbark.score.scorer import Scorer
from birchbark.score.together import together


class BirchbarkRerank(BaseDocumentCompressor):
    """Keeps the `top_n` most relevant documents, best first; all of them for None.

    model: as `load_scorer` takes it. Each document is a copy with its probability of relevance, 0
    to 1, as `relevance_score` in its metadata, where CohereRerank puts it.
    """

    model: str = DEFAULT_MODEL
    top_n: int | None = Field(default=3, ge=1)
    model_config = ConfigDict(extra="forbid")
    _scorer: Scorer = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Open the model."""
        self._scorer = load_scorer(self.model, session=together())

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """See LangChain; nothing is cut off, however long a document is."""
        texts = [one.page_content for one in documents]
        return [
            documents[one.place].model_copy(
                update={"metadata": {**documents[one.place].metadata, "relevance_score": one.score}}
            )
            for one in rank_texts(query, texts, self._scorer, self.top_n)
        ]
