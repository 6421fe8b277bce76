"""How does a program search an index repeatedly, while the index changes?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from types import EllipsisType
from typing import Literal, NamedTuple

from birchbark import defaults
from birchbark.combine.aggregate import Mean
from birchbark.errors import ArtifactError, DeadlineError, InputError
from birchbark.index.index import Index
from birchbark.index.layout import is_index
from birchbark.index.writer import IndexWriter
from birchbark.pipeline.answer import Answer, Hit, SearchStats
from birchbark.pipeline.deadline import Deadline
from birchbark.pipeline.dense_engine import DenseEngine, VectorMatch, open_engine, set_for
from birchbark.pipeline.facets import Facet, count_facets
from birchbark.pipeline.load_rankers import make_ranker
from birchbark.pipeline.loaded_models import LoadedModels
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.ranker_readers import RankerReaders, ReaderCaches
from birchbark.pipeline.reading_plan import ReadingPlan
from birchbark.pipeline.score_documents import score_documents
from birchbark.pipeline.search import OnProgress, deadline_for, search_with_readers, warm_up
from birchbark.pipeline.stage_options import StageOptions
from birchbark.pipeline.term_overlap import KnownTokens, TermIndex
from birchbark.pipeline.update_index import AddedDocuments, add_documents
from birchbark.pipeline.vector_sets import vector_sets
from birchbark.records import Document
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import FirstStage
from birchbark.retrieve.spelling import correct_query
from birchbark.score.dynamic_batching import dynamic_batcher
from birchbark.score.scorer import Scorer
from birchbark.score_cache.cached_scorer import ScoreCaches
from birchbark.score_cache.memory_cache import MemoryCache

SHOWN_SEGMENTS = 256  # of a document that is opened


class DocumentEvidence(NamedTuple):
    """A document with the scores of its segments, and how much of it was scored."""

    hit: Hit
    stats: SearchStats


def _memory_cache(scorer: Scorer) -> MemoryCache:
    return MemoryCache(scorer.width)


@dataclass(slots=True)
class _Snapshot:
    """The index as of one commit, with its engine and the document readers opened so far.

    engine: the first stage. for_rankers: the engine that finds candidates for the rankers. tokens:
    the tokens that readers remember. caches: by scoring key. Both are taken over from the previous
    snapshot if its documents are the same. nearest: the engine for searches by vectors alone,
    opened at the first of these.
    """

    index: Index
    engine: IndexEngine | DenseEngine
    for_rankers: IndexEngine | DenseEngine
    terms: TermIndex
    tokens: KnownTokens
    caches: dict[tuple[object, ...], ReaderCaches]
    readers: list[RankerReaders] = field(default_factory=list)
    nearest: DenseEngine | None = None


class Searcher:
    """An index and its models, opened once, for searches from any number of threads.

    Each search sees the index's last commit, by this or another process; commits during a search do
    not affect it. Segments of concurrent searches are scored in shared batches, and scores are
    cached in memory (100 MB per model). Neither changes a score.

        from dataclasses import replace
        from birchbark import Searcher, Top

        searcher = Searcher("notes.index")
        for hit in searcher.search("can I get my money back", top=3).hits:
            print(hit.document.doc_id, hit.score)
        faster = replace(searcher.rankers[0], depth=50, aggregation=Top((1.0, 0.5)))
        answer = searcher.search("can I get my money back", budget=0.2, rankers=faster)
        print(answer.stats.exact, [part.segment.text for part in answer.hits[0].segments])

    Args:
        index: The directory of the index.
        model: The name or directory of a model, which ranks with the settings of `birchbark serve`:
            with the bundled embedding, by the default reading plan; or a `Ranker`, or one per
            stage; `()` for the first stage alone. Defaults to `birchbark-minilm-l6`, which is part
            of the package.
        first_stage: How candidates are found by terms. Defaults to `FirstStage()`: BM25.
        vector_match: How candidates are found or scored by stored vectors. Defaults to None: for
            re-ranking, half of the candidates are found by the vectors of the first ranker's
            embedding, if the index has them; a ranking by the first stage alone uses no vectors.
            `BY_TERMS` never uses vectors.
        models: Loads the models that are given by name, that of stored vectors among them. Defaults
            to None: with sessions that batch the segments of concurrent searches.

    Raises:
        InputError: There is no index in the directory, or it lacks the vectors.
        ArtifactError: The index is damaged.
        CheckpointError: The model does not exist or cannot be read.
    """

    def __init__(
        self,
        index: Path | str,
        model: Path | str | Ranker | Sequence[Ranker] = defaults.MODEL,
        first_stage: FirstStage = FirstStage(),
        vector_match: VectorMatch | None = None,
        models: LoadedModels | None = None,
    ) -> None:
        self.directory = Path(index)
        self._open_lock, self._readers_lock, self._write_lock = Lock(), Lock(), Lock()
        self.models = models or LoadedModels(session=dynamic_batcher())
        self._caches = ScoreCaches(_memory_cache)
        if isinstance(model, Ranker):
            model = [model]
        elif isinstance(model, (str, Path)):
            model = [make_ranker(StageOptions(model=str(model)), self.models, auto_int8=True)]
        self.rankers = tuple(map(self.cache_scores, model))
        self._first_stage, self._vector_match = first_stage, vector_match
        self._snapshot = self._open(None)

    @property
    def index(self) -> Index:
        """A snapshot of the index as of its last commit; later commits do not change it."""
        return self._latest().index

    @property
    def first_stage_name(self) -> str:
        """The tag of the first stage's runs, such as `bm25`."""
        return self._latest().engine.name

    @property
    def vectors_model(self) -> str | None:
        """The model that computed the stored vectors that are searched; None if there are none.

        These are the vectors that the first ranker uses, or else the index's first set.
        """
        index = self.index
        for name in (set_for(index, self.rankers), *vector_sets(index.attachments)):
            if name:
                model: str | None = index.attachments[name].config.get("model")
                return model
        return None

    def warm_up(self) -> None:
        """Load everything that is loaded on first use, so that the first search is not slow."""
        warm_up(self._engine(self._latest(), bool(self.rankers)), self.rankers, "warm up")

    def search(
        self,
        query: str,
        top: int = defaults.TOP,
        budget: float | None = None,
        *,
        rankers: Ranker | Sequence[Ranker] | EllipsisType | None = ...,
        filters: Mapping[str, str] | None = None,
        candidates: Literal["nearest", "terms"] | None = None,
        on_progress: OnProgress = lambda answer: None,
    ) -> Answer:
        """Return the best hits for a query, best first; see `birchbark.search`.

        Args:
            query: The query.
            top: Maximum number of hits. Defaults to 10.
            budget: Maximum time in seconds. Defaults to None: no limit.
            rankers: One or more stages to use instead of `Searcher.rankers`; None for the first
                stage alone. If they are derived from `Searcher.rankers` by `dataclasses.replace`,
                cached documents and scores are used again. Defaults to `...`: `Searcher.rankers`.
            filters: Values that fields of all hits must have, in addition to the filters of the
                first stage. Defaults to None: no further filters.
            candidates: `nearest` for the documents whose stored vectors are nearest to the query's;
                `terms` to save time where vectors would find half of the candidates: the first
                stage alone finds them, and the answer is not exact. Defaults to None: by terms and
                vectors, as this searcher was opened.
            on_progress: Called after the first stage and whenever documents were scored, with a
                function that returns the answer so far. Does nothing by default.

        Returns:
            The hits, and how much was scored to find them.

        Raises:
            InputError: As in `birchbark.search`; candidates are `nearest`, and the index has no
                vectors.
            ArtifactError: The index was replaced by one that does not fit this searcher.
        """
        deadline = deadline_for(budget)
        snapshot = self._latest()
        if rankers is ...:
            stages: Sequence[Ranker] = self.rankers
        else:
            stages = [rankers] if isinstance(rankers, Ranker) else rankers or ()
        readers = [self._readers(snapshot, ranker) for ranker in stages]
        usual = engine = self._engine(snapshot, bool(stages))
        if candidates == "nearest":
            usual = engine = self._nearest(snapshot)
        elif candidates == "terms":
            engine = snapshot.engine
        exact = engine is usual
        if filters:
            engine = engine.filtered(filters)
        terms = snapshot.terms
        answer = search_with_readers(
            engine, query, readers, top, deadline, terms=terms, on_progress=on_progress
        )
        return answer if exact else answer.as_inexact()

    def facets(self, query: str, filters: Mapping[str, str] | None = None) -> list[Facet]:
        """Count the values of keyword fields among a search's candidates.

        The fields are those that divide the candidates (see `count_facets`).

        Raises InputError for a filter by a field that is not a keyword field.
        """
        snapshot = self._latest()
        engine = self._engine(snapshot, bool(self.rankers))
        if filters:
            engine = engine.filtered(filters)
        depth = max((ranker.depth for ranker in self.rankers), default=defaults.RERANKING_DEPTH)
        candidates = engine.rank(query, depth).doc_ids
        return count_facets(engine.documents(candidates), snapshot.index.keywords)

    def correct(self, query: str) -> str | None:
        """Return the query without its likely misspellings, None if none seems misspelt."""
        return correct_query(self._latest().index, query)

    def evidence(
        self,
        doc_id: str,
        query: str,
        budget: float | None = None,
        *,
        on_batch: Callable[[], object] = lambda: None,
    ) -> DocumentEvidence:
        """Return a document with the scores of its segments, computed by the first ranker.

        All segments have the same weight; the segment with the highest score comes first. Of a
        document with more than 256 segments, the 256 that contain most of the query's terms are
        scored.

        Args:
            doc_id: The document's id.
            query: The query.
            budget: Maximum time in seconds. Defaults to None: no limit.
            on_batch: Called before each batch; an exception that it raises ends the scoring. Does
                nothing by default.

        Returns:
            The document as a hit, whose `score` is the mean of the segment scores, and how much of
            the document was scored.

        Raises:
            InputError: The document is unknown, the query is too long, or there is no ranker.
            DeadlineError: The budget does not suffice.
        """
        if not self.rankers:
            raise InputError("no model to score the document", remedy="Searcher(index, model)")
        plan = ReadingPlan(segments=SHOWN_SEGMENTS)
        ranker = replace(self.rankers[0], aggregation=Mean(), embedding=None, plan=plan, duo=None)
        readers = self._readers(self._latest(), ranker)
        scoring = score_documents(readers, query, [doc_id], Deadline(budget, on_batch=on_batch))
        if not scoring.stats.exact:
            raise DeadlineError("time does not suffice for the document", where=doc_id)
        return DocumentEvidence(scoring.hits()[0], scoring.stats)

    def documents(self, doc_ids: Sequence[str]) -> list[Document]:
        """Return the documents with these ids, in the same order; InputError for an unknown id."""
        return self._latest().index.documents(doc_ids)

    def add(
        self,
        documents: Iterable[Document],
        *,
        delete: Iterable[str] = (),
        leave_out: Collection[str] = (),
    ) -> AddedDocuments:
        """Add documents, all or none; a document with a known id replaces the existing one.

        When this returns, the documents are on disk, the next search sees them, and the index's
        attachments (token ids, vectors) and graphs include them. An attachment that lacked other
        documents before is not completed.

        Args:
            documents: The documents to add.
            delete: Ids of documents to delete at the same time, if they exist. Defaults to none.
            leave_out: Attachments (`tokens`, `vectors`, …) that are not completed, because
                something else will do it. Defaults to none.

        Returns:
            How many documents were new, and how many were replaced.

        Raises:
            InputError: A document cannot be indexed, or the attachments were made by another
                version of their model; nothing has changed.
            ArtifactError: Another process is writing to the index.
        """
        with self._write_lock:
            return add_documents(
                *(self.directory, documents, self.models.scorer),
                delete=delete,
                leave_out=leave_out,
            )

    def delete(self, doc_ids: Iterable[str]) -> int:
        """Delete documents and return how many existed; the change is then on disk."""
        with self._write_lock, IndexWriter(self.directory) as writer:
            return sum([writer.delete(doc_id) for doc_id in doc_ids])

    def cache_scores(self, ranker: Ranker) -> Ranker:
        """Return a copy of the ranker whose scores this searcher caches in memory."""
        return ranker.map_scorers(self._caches.cached)

    @property
    def index_exists(self) -> bool:
        """Whether the directory still holds an index."""
        return is_index(self.directory)

    @property
    def pairs_scored(self) -> int:
        """Number of segments that the models have scored so far, without cached scores."""
        return sum(scorer.computed for scorer in self._caches.scorers)

    def _latest(self) -> _Snapshot:
        """Return the snapshot of the last commit."""
        if self._snapshot.index.outdated:
            with self._open_lock:
                if self._snapshot.index.outdated:
                    try:
                        self._snapshot = self._open(self._snapshot)
                    except InputError as error:  # not caused by the caller's input
                        raise ArtifactError(
                            "the index was replaced by one that does not fit this searcher",
                            found=error.what,
                            remedy="open it again",
                        ) from error
        return self._snapshot

    def _open(self, before: _Snapshot | None) -> _Snapshot:
        """Open the last commit; if it only changed attachments, with what is cached `before`."""
        index = Index(self.directory)
        stage, match = self._first_stage, self._vector_match
        cut = self._query_tokens
        load = self.models.scorer
        engine = for_rankers = open_engine(index, stage, match, load, query_tokens=cut)
        if match is None and self.rankers:
            chosen = open_engine(index, stage, match, load, self.rankers)
            for_rankers = chosen if isinstance(chosen, DenseEngine) else engine
        same = before is not None and before.index.same_documents(index)
        tokens, caches = (before.tokens, before.caches) if before and same else (KnownTokens(), {})
        return _Snapshot(index, engine, for_rankers, TermIndex(engine, tokens), tokens, caches)

    def _engine(self, snapshot: _Snapshot, reranked: bool) -> IndexEngine | DenseEngine:
        """Return the engine that finds candidates. reranked: whether BERT will re-rank them."""
        return snapshot.for_rankers if reranked else snapshot.engine

    @property
    def _query_tokens(self) -> int | None:
        """How many tokens of a query the models read; None for all."""
        return self.rankers[0].query_tokens if self.rankers else None

    def _nearest(self, snapshot: _Snapshot) -> DenseEngine:
        if snapshot.nearest is None:
            match = VectorMatch(vectors=set_for(snapshot.index, self.rankers))
            snapshot.nearest = DenseEngine(
                snapshot.index, self.models.scorer, match, self._first_stage, self._query_tokens
            )
        return snapshot.nearest

    def _readers(self, snapshot: _Snapshot, ranker: Ranker) -> RankerReaders:
        """Return the readers for this ranker; rankers with equal scoring keys share them."""
        with self._readers_lock:
            for readers in snapshot.readers:
                if readers.ranker.scoring_key == ranker.scoring_key:
                    return readers.with_ranker(ranker)
            new = ReaderCaches(tokens=snapshot.tokens)
            caches = snapshot.caches.setdefault(ranker.scoring_key, new)
            snapshot.readers.append(RankerReaders(snapshot.engine, ranker, caches))
            return snapshot.readers[-1]
