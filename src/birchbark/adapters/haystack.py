"""How does a Haystack pipeline re-rank by birchbark? A ranker component, in this process."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict

from birchbark.checkpoint.named import DEFAULT_MODEL
from birchbark.pipeline.texts import rank_texts
from birchbark.score.model import load_scorer
from birchbark.score.scorer import Scorer
from birchbark.score.together import together


@component
class BirchbarkRanker:
    """Keeps the `top_k` most relevant documents, best first; all of them for None.

    model: as `load_scorer` takes it. A document's score becomes its probability of relevance, 0 to
    1. Documents without text are read as empty ones.
    """

    def __init__(self, model: str = DEFAULT_MODEL, top_k: int | None = 10) -> None:
        self.model, self.top_k = model, top_k
        self._scorer: Scorer | None = None

    def warm_up(self) -> None:
        """Open the model; the first run does so, where nobody did before."""
        if self._scorer is None:
            self._scorer = load_scorer(self.model, session=together())

    def to_dict(self) -> dict[str, Any]:
        """See Haystack."""
        made: dict[str, Any] = default_to_dict(self, model=self.model, top_k=self.top_k)
        return made

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> BirchbarkRanker:
        """See Haystack."""
        made: BirchbarkRanker = default_from_dict(cls, data)
        return made

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, documents: list[Document], top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """The documents, best first. top_k: instead of this component's."""
        self.warm_up()
        assert self._scorer
        texts = [one.content or "" for one in documents]
        ranked = rank_texts(query, texts, self._scorer, self.top_k if top_k is None else top_k)
        return {"documents": [replace(documents[one.place], score=one.score) for one in ranked]}
