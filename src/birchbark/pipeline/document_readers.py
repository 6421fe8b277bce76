"""Which readers of documents, and of their terms, do the searches of one ranker share?"""

from __future__ import annotations

from copy import copy
from functools import cache, partial

from birchbark.errors import InputError
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.read_documents import DocumentReader
from birchbark.pipeline.term_overlap import TermIndex
from birchbark.retrieve.engine import DocumentStore
from birchbark.score.bert_scorer import BertScorer
from birchbark.score.scorer import Scorer
from birchbark.score.token_embeddings import TokenEmbeddings
from birchbark.score_cache.cached_scorer import uncached


class DocumentReaders:
    """A ranker with one document reader per scorer, over one store; shared by many queries."""

    def __init__(self, store: DocumentStore, ranker: Ranker) -> None:
        self.ranker = ranker

        def reader(scorer: Scorer) -> DocumentReader:
            return DocumentReader(store, scorer, ranker.segmenter, ranker.limit)

        self.main = reader(ranker.scorer)
        self.embedding = reader(ranker.embedding) if ranker.embedding else None
        self.precise = reader(ranker.precise) if ranker.precise else None
        self.terms = TermIndex(store)
        # copies of these readers share the result
        self.token_embeddings = cache(partial(_token_embeddings, ranker))

    def with_ranker(self, ranker: Ranker) -> DocumentReaders:
        """Return the same readers with a ranker that scores segments in the same way.

        Raises InputError for a ranker with another `scoring_key`.
        """
        if self.ranker.scoring_key != ranker.scoring_key:
            raise InputError("the ranker has other scorers, segments or limits than the readers")
        other = copy(self)
        other.ranker = ranker
        return other


def _token_embeddings(ranker: Ranker) -> TokenEmbeddings:
    """Return the token embeddings of the embedding or, without one, of the main scorer."""
    scorer: object = uncached(ranker.embedding or ranker.scorer)
    if not isinstance(scorer, BertScorer):
        raise InputError(
            f"{(ranker.embedding or ranker.scorer).name} has no token embeddings to select by",
            wanted="a BERT model",
            remedy="select by terms",
        )
    return TokenEmbeddings(scorer)
