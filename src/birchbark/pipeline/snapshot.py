"""What do the searches of one state of an index share? Its engines and document readers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from birchbark.deadline import Deadline
from birchbark.errors import ArtifactError, InputError
from birchbark.index.index import Index
from birchbark.index.shards import is_index
from birchbark.pipeline.dense_engine import DenseEngine
from birchbark.pipeline.open_engine import dense_engine, open_engine, set_for
from birchbark.pipeline.reading.document_reader import RankerReaders, ReaderCaches
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.retrieve.allowed_documents import KnownPhrases, allowed_documents
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import FirstStage
from birchbark.retrieve.match import ALL
from birchbark.retrieve.query_language import ParsedQuery
from birchbark.retrieve.term_overlap import KnownTokens, TermIndex
from birchbark.retrieve.vector_match import VectorMatch
from birchbark.score.scorer import Scorer

PHRASE_SHARE = 0.5  # of a search's time, to look for phrases in documents
PHRASE_SECONDS = 0.05  # that are taken for it in any case


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """How a searcher finds candidates.

    match: None to choose, see `open_engine`. load: see `open_engine`. rankers: the searcher's.
    """

    stage: FirstStage
    match: VectorMatch | None
    load: Callable[[str], Scorer]
    rankers: Sequence[Ranker]


class Snapshot:
    """An index as of one commit.

    Attributes:
        index: The index.
        engine: The first stage, which ranks without rankers.
        for_rankers: The engine that finds candidates for the rankers.
        terms: How rare terms are, and the tokens that readers remember.
    """

    def __init__(
        self, directory: Path, settings: SearchSettings, before: Snapshot | None = None
    ) -> None:
        """Open the last commit.

        before: the snapshot before, whose caches are used if its documents are the same. Raises the
        errors of `Index` and `open_engine`.
        """
        self.index = index = Index(directory)
        self._settings, self._lock = settings, Lock()
        stage, match, rankers = settings.stage, settings.match, settings.rankers
        self.engine = self.for_rankers = open_engine(index, stage, match, settings.load, rankers)
        if match is None and isinstance(self.for_rankers, DenseEngine):
            self.engine = IndexEngine(index, stage)
        same = before is not None and before.index.same_documents(index)
        self._tokens: KnownTokens = before._tokens if before and same else KnownTokens()
        self._caches: dict[tuple[object, ...], ReaderCaches] = (
            before._caches if before and same else {}
        )
        self._readers: dict[tuple[object, ...], RankerReaders] = {}
        self._nearest: DenseEngine | None = None
        self._phrases: KnownPhrases = before._phrases if before and same else KnownPhrases()
        self.terms = TermIndex(self.engine, self._tokens)

    def engine_for(self, reranked: bool) -> IndexEngine:
        """Return the engine that finds candidates. reranked: whether BERT will re-rank them."""
        return self.for_rankers if reranked else self.engine

    @property
    def nearest_set(self) -> str | None:
        """The set of vectors that `nearest` searches; None for the index's first one.

        It is the one that is given, or else that of the first ranker.
        """
        match = self._settings.match
        given = match.vectors if match else None
        return given or set_for(self.index, self._settings.rankers)

    def nearest(self) -> DenseEngine:
        """Return the engine for searches by vectors alone; InputError if there are no vectors."""
        if self._nearest is None:
            settings = self._settings
            tokens = settings.match.query_tokens if settings.match else None
            match = VectorMatch(vectors=self.nearest_set, query_tokens=tokens)
            self._nearest = dense_engine(
                self.index, settings.stage, match, settings.load, settings.rankers
            )
        return self._nearest

    def narrowed(
        self, engine: IndexEngine, query: ParsedQuery, deadline: Deadline
    ) -> tuple[IndexEngine, bool]:
        """Return an engine with only the documents that a query's operators allow.

        Also returns whether time sufficed to look for its phrases in all documents. InputError for
        a malformed filter, and for a query that has nothing but exclusions and filters.
        """
        if not query.restricted:
            return engine, True
        if not query.words:
            raise InputError(
                "the query has nothing to search for: it only leaves documents out",
                found=str(query),
                remedy="add a word, or search for it literally; --literal, or literal in requests",
            )
        seconds = max(PHRASE_SECONDS, PHRASE_SHARE * deadline.remaining)
        until = Deadline(seconds if deadline.exists else None)

        def is_late() -> bool:
            deadline.on_batch()
            return until.passed

        allowed = allowed_documents(self.index, query, is_late, self._phrases)
        only_stop_words = query.phrases and not self.index.analyzer.terms(query.words)
        return engine.allowing(allowed.masks, ALL if only_stop_words else None), allowed.exact

    def readers(self, ranker: Ranker) -> RankerReaders:
        """Return the readers for this ranker; rankers with equal scoring keys share them."""
        with self._lock:
            key = ranker.scoring_key
            if key not in self._readers:
                caches = self._caches.setdefault(key, ReaderCaches(tokens=self._tokens))
                self._readers[key] = RankerReaders(self.engine, ranker, caches)
            return self._readers[key].with_ranker(ranker)


class LastSnapshot:
    """The snapshot of the last commit, opened again when there is a new one."""

    def __init__(self, directory: Path, settings: SearchSettings) -> None:
        self._directory = directory.absolute()  # the process may change its working directory
        self._settings, self._lock = settings, Lock()
        self._snapshot = Snapshot(directory, settings)

    def get(self) -> Snapshot:
        """Return the snapshot; ArtifactError if another index has taken the place of this one."""
        if self._snapshot.index.outdated:
            with self._lock:
                if self._snapshot.index.outdated:
                    try:
                        self._snapshot = Snapshot(self._directory, self._settings, self._snapshot)
                    except InputError as error:  # not caused by the caller's input
                        what = "replaced by one that does not fit this searcher"
                        if not is_index(self._directory):
                            what = "deleted"
                        raise ArtifactError(
                            f"the index was {what}", found=error.what, remedy="open it again"
                        ) from error
        return self._snapshot
