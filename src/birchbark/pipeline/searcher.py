"""How does a program search an index repeatedly, while the index changes?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from threading import RLock
from typing import Literal, NamedTuple

from birchbark import defaults
from birchbark.arguments import check_instance, iterated, path_of, text_of
from birchbark.combine.aggregate import Mean
from birchbark.deadline import NO_TIME, Deadline
from birchbark.errors import DeadlineError, InputError
from birchbark.index.index import Index
from birchbark.index.origin import NewOrigin
from birchbark.index.sharded_writer import open_writer
from birchbark.index.shards import is_index
from birchbark.pipeline.answers.answer import Answer, Hit, SearchStats
from birchbark.pipeline.answers.facets import Facet, count_facets
from birchbark.pipeline.answers.search_notes import search_notes
from birchbark.pipeline.answers.snippets import Snippets
from birchbark.pipeline.load_rankers import make_ranker
from birchbark.pipeline.loaded_models import LoadedModels
from birchbark.pipeline.reading.topk import score_documents
from birchbark.pipeline.search import (
    OnProgress,
    deadline_for,
    search_with_readers,
    warm_up,
)
from birchbark.pipeline.settings.ranker import Ranker, stages_of
from birchbark.pipeline.settings.reading_plan import ReadingPlan
from birchbark.pipeline.snapshot import LastSnapshot, SearchSettings, Snapshot
from birchbark.pipeline.stage_options import StageOptions
from birchbark.pipeline.stored.vector_sets import searched_sets
from birchbark.pipeline.upkeep.update_index import AddedDocuments, Changes, add_documents
from birchbark.records import Document
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import FirstStage
from birchbark.retrieve.query_language import ParsedQuery, literal_query, parse_query
from birchbark.retrieve.remote_ranking import RemoteRankers
from birchbark.retrieve.spelling import correct_parsed
from birchbark.retrieve.vector_match import VectorMatch
from birchbark.score.dynamic_batching import dynamic_batcher
from birchbark.score.scorer import Scorer
from birchbark.score_cache.cached_scorer import ScoreCaches
from birchbark.score_cache.memory_cache import MemoryCache
from birchbark.segment.passages import Passages
from birchbark.segment.sentences import sentences
from birchbark.segment.truncate import Limit

SHOWN_SEGMENTS = 256  # of a document that is opened
QUICK_SECONDS = 1.0  # for other processes to rank, or to look for phrases, where nothing is scored


class DocumentEvidence(NamedTuple):
    """A document with the scores of its segments, and how much of it was scored."""

    hit: Hit
    stats: SearchStats


def _memory_cache(scorer: Scorer) -> MemoryCache:
    return MemoryCache(scorer.width)


def _parsed(snapshot: Snapshot, query: str | ParsedQuery) -> ParsedQuery:
    if isinstance(query, ParsedQuery):
        return query
    return parse_query(text_of(query, "the query"), snapshot.index.keywords)


class Searcher:
    """An index and its models, opened once, for searches from any number of threads.

    Each search sees the index's last commit, by this or another process; commits during a search do
    not affect it. Segments of concurrent searches are scored in shared batches, and scores are
    cached in memory (100 MB per model). Neither changes a score.

        from dataclasses import replace
        from birchbark import Searcher
        from birchbark.combine.aggregate import Top

        searcher = Searcher("notes.index")
        for hit in searcher.search("can I get my money back", top=3).hits:
            print(hit.document.doc_id, hit.score)
        faster = replace(searcher.rankers[0], depth=50, aggregation=Top((1.0, 0.5)))
        answer = searcher.search("can I get my money back", budget=0.2, rankers=faster)
        print(answer.stats.exact, [part.segment.text for part in answer.hits[0].segments])

    Args:
        index: The directory of the index, or an `Index`.
        model: The name or directory of a model, which ranks with the settings of `birchbark serve`:
            with the bundled embedding, by the default reading plan; or a `Ranker`, or one per
            stage; `()` for the first stage alone. Defaults to `birchbark-minilm-l6`, which is part
            of the package.
        first_stage: How candidates are found by terms. Defaults to `FirstStage()`: BM25.
        vector_match: How candidates are found or scored by stored vectors. Defaults to None: for
            re-ranking, half of the candidates are found by the vectors of the first ranker's
            embedding, or by static ones, if the index has them; a ranking by the first stage alone
            uses no vectors. `BY_TERMS` never uses vectors.
        loaded: Loads the models that are given by name, that of stored vectors among them. Defaults
            to None: with sessions that batch the segments of concurrent searches.
        remote: Processes that rank documents by their terms, see `birchbark cluster serve`.
            Defaults to None: this process ranks.

    Raises:
        InputError: There is no index in the directory, or it lacks the vectors.
        ArtifactError: The index is damaged.
        CheckpointError: The model does not exist or cannot be read.
    """

    def __init__(
        self,
        index: PathLike[str] | str,
        model: Path | str | Ranker | Sequence[Ranker] = defaults.MODEL,
        first_stage: FirstStage = FirstStage(),
        vector_match: VectorMatch | None = None,
        loaded: LoadedModels | None = None,
        remote: RemoteRankers | None = None,
    ) -> None:
        directory = path_of(index, "the directory of the index")
        self.directory = directory.absolute()  # the process may change its working directory
        self._write_lock, self._remote = RLock(), remote
        self.models = loaded or LoadedModels(session=dynamic_batcher())
        self._caches = ScoreCaches(_memory_cache)
        if isinstance(model, (str, Path)):
            model = make_ranker(StageOptions(model=str(model)), self.models, auto_int8=True)
        self.rankers = tuple(map(self.cache_scores, stages_of(model)))
        check_instance(first_stage, FirstStage, "the first stage")
        settings = SearchSettings(first_stage, vector_match, self.models.scorer, self.rankers)
        self._last = LastSnapshot(directory, settings)

    @property
    def index(self) -> Index:
        """A snapshot of the index as of its last commit; later commits do not change it."""
        return self._last.get().index

    @property
    def first_stage_name(self) -> str:
        """The tag of the first stage's runs, such as `bm25`."""
        return self._last.get().engine.name

    @property
    def vectors_model(self) -> str | None:
        """The model that computed the stored vectors that are searched; None if there are none.

        These are the vectors of `vector_match`, those that the first ranker uses, or else the
        index's first set.
        """
        snapshot = self._last.get()
        attachments = snapshot.index.attachments
        name = snapshot.nearest_set or next(iter(searched_sets(attachments)), None)
        return attachments[name].config.get("model") if name else None

    def warm_up(self) -> None:
        """Load everything that is loaded on first use, so that the first search is not slow."""
        warm_up(self._last.get().engine_for(bool(self.rankers)), self.rankers, "warm up")

    def parse(self, query: str, *, literal: bool = False) -> ParsedQuery:
        """Parse a query, to search for it or to tell what was understood.

        Args:
            query: The query; see docs/how-to/query-syntax.md for its operators.
            literal: Whether nothing in it is an operator, as for `-Wall`. Defaults to False.
        """
        if literal:
            return literal_query(text_of(query, "the query"))
        return _parsed(self._last.get(), query)

    def search(
        self,
        query: str | ParsedQuery,
        top: int = defaults.TOP,
        budget: float | None = None,
        *,
        rankers: Ranker | Sequence[Ranker] | None = None,
        filters: Mapping[str, str] | None = None,
        candidates: Literal["nearest", "terms"] | None = None,
        on_progress: OnProgress = lambda answer: None,
    ) -> Answer:
        """Return the best hits for a query, best first; see `birchbark.search`.

        Args:
            query: The query, or what `parse` returned for it. `"exact phrase"`, `-word`,
                `field:value`, `before:2024-05` and others restrict what is found, see
                docs/how-to/query-syntax.md; models read the query without them.
            top: Maximum number of hits; copies of a document are one. Defaults to 10.
            budget: Maximum time in seconds. Defaults to None: no limit.
            rankers: One or more stages to use instead of `Searcher.rankers`; `()` for the first
                stage alone. If they are derived from `Searcher.rankers` by `dataclasses.replace`,
                cached documents and scores are used again. Defaults to None: `Searcher.rankers`.
            filters: Keyword field → filter that all hits must meet, such as `pdf|html` or
                `2024-03..2024-05` (see `FirstStage`), in addition to the filters of the first
                stage. Defaults to None: no further filters.
            candidates: `nearest` for the documents whose stored vectors are nearest to the query's;
                `terms` to save time where vectors would find half of the candidates: the first
                stage alone finds them, and the answer is not exact. Defaults to None: by terms and
                vectors, as this searcher was opened.
            on_progress: Called after the first stage, if others follow, and whenever documents were
                scored, with a function that returns the answer so far. Does nothing by default.

        Returns:
            The hits, and how much was scored to find them. If time did not suffice to look for the
            query's phrases in all documents, those that were not read are left out, and the answer
            is not exact.

        Raises:
            InputError: As in `birchbark.search`; candidates are `nearest`, and the index has no
                vectors; the query has only exclusions and filters.
            ArtifactError: The index was replaced by one that does not fit this searcher.
        """
        deadline = deadline_for(budget)
        snapshot = self._last.get()
        parsed = _parsed(snapshot, query)
        stages = self.rankers if rankers is None else stages_of(rankers)
        readers = [snapshot.readers(ranker) for ranker in stages]
        usual = engine = snapshot.engine_for(bool(stages))
        if candidates == "nearest":
            usual = engine = snapshot.nearest()
        elif candidates == "terms":
            engine = snapshot.engine
        elif candidates is not None:
            raise InputError(
                "unknown candidates", wanted="nearest or terms", found=repr(candidates)
            )
        exact = engine is usual
        if filters:
            engine = engine.filtered(filters)
        engine, all_read = snapshot.narrowed(engine, parsed, deadline)
        # without time to score, there must still be some to rank
        ranked = Deadline(QUICK_SECONDS) if budget == NO_TIME else deadline
        remote = self._remote.search(lambda: ranked.remaining) if self._remote else None
        if remote:
            engine = engine.ranking_by(remote)
        terms = snapshot.terms
        answer = search_with_readers(
            engine, parsed.words, readers, top, deadline, terms=terms, on_progress=on_progress
        )
        if remote:
            answer = answer.without_shards(remote.missing)
        return answer if exact and all_read else answer.as_inexact()

    def facets(
        self,
        query: str | ParsedQuery,
        filters: Mapping[str, str] | None = None,
        budget: float | None = None,
        *,
        on_batch: Callable[[], object] = lambda: None,
    ) -> list[Facet]:
        """Count the values of keyword fields among a search's candidates.

        The fields are those that divide the candidates (see `count_facets`). The values of a field
        are counted among the candidates of a search without the filter of this field, so that they
        tell what else could be chosen.

        Args:
            query: The query.
            filters: The filters of the search. Defaults to None: none.
            budget: Maximum time in seconds. Defaults to None: no limit.
            on_batch: Called before each step; an exception that it raises ends the work. Does
                nothing by default.

        Raises:
            InputError: A filter is by a field that is not a keyword field.
            DeadlineError: The budget does not suffice.
        """
        snapshot, deadline = self._last.get(), Deadline(budget, on_batch=on_batch)
        parsed = _parsed(snapshot, query)
        depth = max((ranker.depth for ranker in self.rankers), default=defaults.RERANKING_DEPTH)
        keywords = snapshot.index.keywords

        def candidates(filters: Mapping[str, str]) -> list[Document]:
            deadline.check("the counts")
            usual = snapshot.engine_for(bool(self.rankers))
            engine = self._quick(snapshot, usual, parsed, filters, on_batch)
            found = list[Document]()
            for doc_id in engine.rank(parsed.words, depth).doc_ids:
                deadline.check("the counts")
                for document in engine.documents([doc_id]):
                    values = {k: x for k, x in document.fields.items() if k in keywords}
                    found.append(replace(document, fields=values))  # others may be long
            return found

        given = filters or {}
        allowed, facets = candidates(given), list[Facet]()
        for field in keywords:
            others = {name: text for name, text in given.items() if name != field}
            documents = allowed if len(others) == len(given) else candidates(others)
            facets += count_facets(documents, [field])
        return facets

    def _quick(
        self,
        snapshot: Snapshot,
        engine: IndexEngine,
        query: ParsedQuery,
        filters: Mapping[str, str] | None,
        on_batch: Callable[[], object] = lambda: None,
    ) -> IndexEngine:
        """Return the engine for a query where nothing is scored."""
        if filters:
            engine = engine.filtered(filters)
        engine, _ = snapshot.narrowed(engine, query, Deadline(QUICK_SECONDS, on_batch=on_batch))
        if self._remote:
            engine = engine.ranking_by(self._remote.search(lambda: QUICK_SECONDS))
        return engine

    def notes(
        self,
        query: str | ParsedQuery,
        answer: Answer,
        filters: Mapping[str, str] | None = None,
        budget: float | None = None,
        *,
        on_batch: Callable[[], object] = lambda: None,
    ) -> list[str]:
        """Say why a search found nothing, or only documents that probably do not answer the query.

        Args:
            query: The query.
            answer: What `search` returned for it.
            filters: The filters that it was given. Defaults to None: none.
            budget: Maximum time in seconds for a correction of spelling, without which the notes
                are returned if it does not suffice. Defaults to None: no limit.
            on_batch: Called before each step; an exception that it raises ends the work. Does
                nothing by default.

        Returns:
            Sentences for a person; none for most searches.
        """
        check_instance(answer, Answer, "the answer")
        snapshot, deadline = self._last.get(), Deadline(budget, on_batch=on_batch)
        parsed = _parsed(snapshot, query)
        engine = self._quick(snapshot, snapshot.engine, parsed, filters, on_batch)
        by_terms = bool(len(engine.rank(parsed.words, 1)))
        return search_notes(
            snapshot.index,
            parsed,
            filters or {},
            answer,
            by_terms=by_terms,
            check=lambda: deadline.check("the spelling"),
        )

    def correct(
        self,
        query: str | ParsedQuery,
        budget: float | None = None,
        *,
        on_batch: Callable[[], object] = lambda: None,
    ) -> str | None:
        """Return the query without its likely misspellings, None if none seems misspelt.

        Only words and phrases that are looked for are corrected.

        Args:
            query: The query.
            budget: Maximum time in seconds. Defaults to None: no limit.
            on_batch: Called before each step; an exception that it raises ends the work. Does
                nothing by default.

        Raises:
            DeadlineError: The budget does not suffice.
        """
        snapshot, deadline = self._last.get(), Deadline(budget, on_batch=on_batch)
        parsed = _parsed(snapshot, query)
        return correct_parsed(snapshot.index, parsed, lambda: deadline.check("the spelling"))

    def evidence(
        self,
        doc_id: str,
        query: str | ParsedQuery,
        budget: float | None = None,
        *,
        on_batch: Callable[[], object] = lambda: None,
    ) -> DocumentEvidence:
        """Return a document with the scores of its segments, computed by the first ranker.

        Where a search reads passages, these are the sentences.

        All segments have the same weight; the segment with the highest score comes first. At most
        256 are scored, those that contain most of the query's terms; of a document of more than
        10,000 characters, they are from the five parts of it that contain most of them. The best
        20 are marked, as those of a search are. A model of whole documents (PARADE) reads all, and
        their weights are its own.

        Args:
            doc_id: The document's id.
            query: The query.
            budget: Maximum time in seconds. Defaults to None: no limit.
            on_batch: Called before each batch; an exception that it raises ends the scoring. Does
                nothing by default.

        Returns:
            The document as a hit, whose `score` is the mean of the segment scores, or that of a
            model of whole documents, and how much of the document was scored.

        Raises:
            InputError: The document is unknown, the query is too long, or there is no ranker.
            DeadlineError: The budget does not suffice.
        """
        if not self.rankers:
            raise InputError("no model to score the document", remedy="Searcher(index, model)")
        snapshot, first = self._last.get(), self.rankers[0]
        parsed = _parsed(snapshot, query)
        whole = first.scorer.width > 1
        plan = ReadingPlan() if whole else ReadingPlan(segments=SHOWN_SEGMENTS)
        ranker = replace(
            first, aggregation=Mean(), embedding=None, plan=plan, duo=None, limit=Limit()
        )
        if isinstance(ranker.segmenter, Passages):
            ranker = replace(ranker, segmenter=sentences)
        read, deadline = parsed.words or str(parsed), Deadline(budget, on_batch=on_batch)
        scoring = score_documents(snapshot.readers(ranker), read, [doc_id], deadline)
        if not scoring.stats.exact:
            raise DeadlineError("time does not suffice for the document", where=doc_id)
        marked = Snippets(snapshot.terms, read, deadline).mark(scoring.hits()[0])
        return DocumentEvidence(marked, scoring.stats)

    def documents(self, doc_ids: Sequence[str]) -> list[Document]:
        """Return the documents with these ids, in the same order; InputError for an unknown id."""
        return self._last.get().index.documents(doc_ids)

    def add(
        self,
        documents: Iterable[Document],
        *,
        delete: Iterable[str] = (),
        leave_out: Collection[str] = (),
        origin: NewOrigin | None = None,
    ) -> AddedDocuments:
        """Add documents, all or none; a document with a known id replaces the existing one.

        When this returns, the documents are on disk, the next search sees them, and the index's
        attachments (token ids, vectors) and graphs include them. An attachment that lacked other
        documents before is not completed, unless it is `static`.

        Args:
            documents: The documents to add.
            delete: Ids of documents to delete at the same time, if they exist. Defaults to none.
            leave_out: Attachments (`tokens`, `vectors`, …) that are not completed, because
                something else will do it. Defaults to none.
            origin: What the index is to know of where the documents come from, as `sync_folder`
                gives it. Defaults to what it knows.

        Returns:
            How many documents were new, and how many were replaced.

        Raises:
            InputError: A document cannot be indexed, or the attachments were made by another
                version of their model; nothing has changed.
            ArtifactError: Another process is writing to the index.
        """
        with self._write_lock:
            return add_documents(
                self.directory,
                Changes(iterated(documents, "documents"), iterated(delete, "doc_ids"), origin),
                self.models.scorer,
                leave_out=leave_out,
            )

    def delete(self, doc_ids: Iterable[str]) -> int:
        """Delete documents and return how many existed; the change is then on disk."""
        with self._write_lock, open_writer(self.directory) as writer:
            return sum([writer.delete(doc_id) for doc_id in iterated(doc_ids, "doc_ids")])

    def writing(self) -> AbstractContextManager[object]:
        """Wait until no other thread writes, and have others wait; the thread itself can write."""
        return self._write_lock

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
