"""How does a LlamaIndex application search and re-rank? A retriever and a node postprocessor."""

from __future__ import annotations

from typing import Any

from birchbark import defaults
from birchbark.adapters.found_passages import OF_QUERY, found_passages
from birchbark.adapters.ranked_texts import ranked_texts
from birchbark.errors import InputError, extra, require_at_least
from birchbark.pipeline.rank_texts import load_once
from birchbark.pipeline.searcher import Searcher

with extra("llama-index"):
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode
    from pydantic import ConfigDict, Field

SHOWN = ("title", "path")  # of a passage's metadata, to a language model


class _Passage(TextNode):
    """A node whose hash does not depend on the query, so that fusion joins equal ones."""

    @property
    def hash(self) -> str:
        """See LlamaIndex."""
        kept = {name: value for name, value in self.metadata.items() if name not in OF_QUERY}
        return str(TextNode(text=self.text, metadata=kept).hash)


class BirchbarkRetriever(BaseRetriever):
    """Searches an index, as `birchbark search` does; returns the best passage of each document.

    The id and the metadata of a node are those that LangChain's retriever has; a model is given
    title and path of them. A node's hash is the same for every query. Changes of the index are seen
    at once.
    """

    def __init__(
        self,
        index: str,
        model: str = defaults.MODEL,
        similarity_top_k: int = 4,
        budget: float | None = None,
    ) -> None:
        """Open the index; raises the errors of `Searcher`.

        Args:
            index: The directory of the index.
            model: The name or directory of a model, see `Searcher`. Defaults to the bundled
                cross-encoder, which ranks beside the bundled embedding.
            similarity_top_k: Maximum number of documents to return. Defaults to 4.
            budget: Maximum time of a search in seconds. Defaults to None: no limit.
        """
        require_at_least("similarity_top_k", similarity_top_k, 1)
        super().__init__()
        self._searcher, self._top, self._budget = Searcher(index, model), similarity_top_k, budget

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        nodes = []
        for one in found_passages(self._searcher, query_bundle.query_str, self._top, self._budget):
            hidden = [name for name in one.metadata if name not in SHOWN]
            node = _Passage(
                id_=one.passage_id,
                text=one.text,
                metadata=one.metadata,
                excluded_llm_metadata_keys=hidden,
                excluded_embed_metadata_keys=hidden,
            )
            nodes.append(NodeWithScore(node=node, score=one.score))
        return nodes


class BirchbarkRerank(BaseNodePostprocessor):
    """Returns the most relevant nodes, best first, with their scores.

    Each node's score is its probability of relevance, 0 to 1. The scored text is the one that
    LlamaIndex passes to embedding models.

    Attributes:
        model: The name or directory of a model (see `load_scorer`); it runs in this process.
            Defaults to None: both default models, as in `birchbark.rank`.
        top_n: Maximum number of nodes to return; None for all. Defaults to 2.
        evidence: Whether a node's metadata get the three sentences that are most relevant to the
            query, as `evidence`: dicts with text, start, end (offsets in the scored text) and
            score. The node is then a copy; models are not given the evidence. Defaults to False.
    """

    model: str | None = None
    top_n: int | None = Field(default=2, ge=1)
    evidence: bool = False
    model_config = ConfigDict(extra="forbid")

    def model_post_init(self, context: Any) -> None:
        """Load the model."""
        super().model_post_init(context)
        load_once(self.model)

    @classmethod
    def class_name(cls) -> str:
        """See LlamaIndex."""
        return "BirchbarkRerank"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise InputError("nodes cannot be re-ranked without a query", wanted="a query bundle")
        texts = [node.node.get_content(metadata_mode=MetadataMode.EMBED) for node in nodes]
        best = []
        for text, found in ranked_texts(
            query_bundle.query_str, texts, self.model, self.top_n, evidence=self.evidence
        ):
            node = nodes[text.index].node
            if found:
                hidden = [f"excluded_{reader}_metadata_keys" for reader in ("embed", "llm")]
                keys = {name: [*getattr(node, name), *found] for name in hidden}
                node = node.model_copy(update={"metadata": {**node.metadata, **found}, **keys})
            best.append(NodeWithScore(node=node, score=text.score))
        return best
