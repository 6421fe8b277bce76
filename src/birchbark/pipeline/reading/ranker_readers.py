"""Which readers of documents, and of their terms, do the searches of one ranker share?"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from functools import cache, partial

from birchbark.errors import InputError
from birchbark.pipeline.reading.document_reader import DocumentReader, SplitCache
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.retrieve.engine import DocumentStore
from birchbark.retrieve.term_overlap import KnownTokens, TermIndex
from birchbark.score.bert_scorer import BertScorer
from birchbark.score.scorer import Scorer
from birchbark.score.token_embeddings import TokenEmbeddings
from birchbark.score_cache.cached_scorer import uncached


@dataclass(frozen=True, slots=True)
class ReaderCaches:
    """What document readers remember: one cache per scorer, and the tokens seen so far."""

    main: SplitCache = field(default_factory=SplitCache)
    embedding: SplitCache = field(default_factory=SplitCache)
    precise: SplitCache = field(default_factory=SplitCache)
    tokens: KnownTokens = field(default_factory=KnownTokens)


class RankerReaders:
    """A ranker with one document reader per scorer, over one store; shared by many queries."""

    def __init__(
        self, store: DocumentStore, ranker: Ranker, caches: ReaderCaches | None = None
    ) -> None:
        """caches: of readers with the same documents and an equal `scoring_key`."""
        self.ranker = ranker
        caches = caches or ReaderCaches()

        def reader(scorer: Scorer, cache: SplitCache) -> DocumentReader:
            return DocumentReader(store, scorer, ranker.segmenter, ranker.limit, cache)

        embedding, precise = ranker.embedding, ranker.precise
        self.main = reader(ranker.scorer, caches.main)
        self.embedding = reader(embedding, caches.embedding) if embedding else None
        fast = embedding and ranker.fast_embedding  # splits and encodes texts as the embedding does
        self.fast_embedding = reader(fast, caches.embedding) if fast else self.embedding
        self.precise = reader(precise, caches.precise) if precise else None
        self.terms = TermIndex(store, caches.tokens)
        # copies of these readers share the result
        self.token_embeddings = cache(partial(_token_embeddings, ranker))

    def with_ranker(self, ranker: Ranker) -> RankerReaders:
        """Return the same readers with a ranker that scores segments in the same way.

        Raises InputError for a ranker with another `scoring_key`.
        """
        if self.ranker.scoring_key != ranker.scoring_key:
            raise InputError("the ranker has other scorers, segments or limits than the readers")
        other = copy(self)
        other.ranker = ranker
        return other


def _token_embeddings(ranker: Ranker) -> TokenEmbeddings:
    """Return the token embeddings of the embedding model or, without one, of the main scorer."""
    scorer: object = uncached(ranker.embedding or ranker.scorer)
    if not isinstance(scorer, BertScorer):
        raise InputError(
            f"{(ranker.embedding or ranker.scorer).name} has no token embeddings to select by",
            wanted="a BERT model",
            remedy="--select terms",
        )
    return TokenEmbeddings(scorer)
