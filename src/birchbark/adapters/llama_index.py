"""How does a LlamaIndex application re-rank by birchbark? A node postprocessor, in this process."""

from __future__ import annotations

from typing import Any

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from pydantic import Field, PrivateAttr

from birchbark.checkpoint.named import DEFAULT_MODEL
from birchbark.errors import InputError
from birchbark.pipeline.texts import rank_texts
from birchbark.score.model import load_scorer
from birchbark.score.scorer import Scorer
from birchbark.score.together import together


class BirchbarkRerank(BaseNodePostprocessor):
    """Keeps the `top_n` most relevant nodes, best first; all of them for None.

    model: as `load_scorer` takes it. A node's score becomes its probability of relevance, 0 to 1.
    What is read is what LlamaIndex shows an embedding of the node.
    """

    model: str = DEFAULT_MODEL
    top_n: int | None = Field(default=2, ge=1)
    _scorer: Scorer = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Open the model."""
        super().model_post_init(context)
        self._scorer = load_scorer(self.model, session=together())

    @classmethod
    def class_name(cls) -> str:
        """See LlamaIndex."""
        return "BirchbarkRerank"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise InputError("nodes cannot be re-ranked without a query", wanted="query_bundle")
        texts = [one.node.get_content(metadata_mode=MetadataMode.EMBED) for one in nodes]
        ranked = rank_texts(query_bundle.query_str, texts, self._scorer, self.top_n)
        return [NodeWithScore(node=nodes[one.place].node, score=one.score) for one in ranked]
