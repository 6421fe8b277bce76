"""How does a LlamaIndex application re-rank nodes with birchbark? A node postprocessor."""

from __future__ import annotations

from typing import Any

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from pydantic import Field, PrivateAttr

from birchbark import defaults
from birchbark.errors import InputError
from birchbark.pipeline.rank_texts import rank
from birchbark.score.dynamic_batching import dynamic_batcher
from birchbark.score.load_scorer import load_scorer
from birchbark.score.scorer import Scorer


class BirchbarkRerank(BaseNodePostprocessor):
    """Returns the most relevant nodes, best first, with their scores.

    Each node's score is its probability of relevance, 0 to 1. The scored text is the one that
    LlamaIndex passes to embedding models.

    Attributes:
        model: The name or directory of a model (see `load_scorer`); it runs in this process.
            Defaults to `birchbark-minilm-l6`.
        top_n: Maximum number of nodes to return; None for all. Defaults to 2.
    """

    model: str = defaults.MODEL
    top_n: int | None = Field(default=2, ge=1)
    _scorer: Scorer = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Load the model."""
        super().model_post_init(context)
        self._scorer = load_scorer(self.model, session=dynamic_batcher())

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
        ranked = rank(query_bundle.query_str, texts, self._scorer, self.top_n)
        return [NodeWithScore(node=nodes[text.index].node, score=text.score) for text in ranked]
