"""Which stores and scorers have exactly the scores that a test writes into its documents?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from birchbark.records import Document, Float32s, Ids
from conftest import WordScorer


class Shelf:
    """A document store in which each word is a segment that contains its own score."""

    def __init__(self, documents: Sequence[Sequence[float]]) -> None:
        self.texts = {
            f"d{i}": " ".join(f"{i}:{j}:{score!r}" for j, score in enumerate(scores))
            for i, scores in enumerate(documents)
        }

    def documents(self, doc_ids: Sequence[str]) -> list[Document]:
        return [Document(d, {"text": self.texts[d]}) for d in doc_ids]


class Written(WordScorer):
    """Returns the score written in a segment; a segment takes a second of a simulated clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def score(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
        self.now += len(token_ids)
        return np.array([float(self.text(p).split(":")[2]) for p in token_ids], np.float32)
