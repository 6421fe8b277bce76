"""Which stores and scorers have exactly the scores that a test writes into its documents?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from birchbark.pipeline.reading.document_reader import DocumentReader
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.records import Document, Float32s, Ids
from conftest import WordScorer

QUERY = "birch bark"


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

    field = 2

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def score(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
        self.now += len(token_ids)
        return np.array([float(self.text(p).split(":")[self.field]) for p in token_ids], np.float32)


class Library(Shelf):
    """A document store in which each word is a segment with the scores that two models give it.

    documents: the segments of each document, each with its score by the first model, its score by
    the embedding, and how many of the query's terms it contains.
    """

    def __init__(self, documents: Sequence[Sequence[tuple[float, float, int]]]) -> None:
        self.texts = {
            f"d{i}": " ".join(
                f"{i}:{j}:{score!r}:{embedding!r}:{'+'.join(QUERY.split()[:terms])}"
                for j, (score, embedding, terms) in enumerate(segments)
            )
            for i, segments in enumerate(documents)
        }


class WrittenEmbedding(Written):
    """Returns the score by the embedding that is written in a segment of a Library."""

    field = 3


class StoredVectors(DocumentReader):
    """A reader that knows the scores of some documents without a model."""

    def __init__(self, store: Library, ranker: Ranker, scorer: Written, stored: set[str]) -> None:
        super().__init__(store, scorer, ranker.segmenter, ranker.limit)
        self._field, self._stored = scorer.field, stored

    def vector_scores(self, query: str, doc_ids: Sequence[str]) -> list[Float32s | None]:
        return [self._scores(d) if d in self._stored else None for d in doc_ids]

    def _scores(self, doc_id: str) -> Float32s:
        (document,) = self.documents([doc_id])
        scores = [float(word.split(":")[self._field]) for word in document.text.split()]
        return np.array(scores, np.float32)
