"""How is a request carried out, with admission, a time budget and a thread for the searcher?"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event, Lock
from typing import Any, Literal, TypeVar

from birchbark.checkpoint.heads import Classifier
from birchbark.deadline import NO_TIME, Deadline
from birchbark.errors import (
    ArtifactError,
    BirchbarkError,
    DeadlineError,
    InputError,
    UnknownDocumentError,
)
from birchbark.index.origin import NewOrigin
from birchbark.pipeline.answers.answer import Answer, Evidence
from birchbark.pipeline.rank_texts import RankedText, check_highlights, highlight, rank
from birchbark.pipeline.search import OnProgress
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.upkeep.update_index import AddedDocuments, Changes
from birchbark.records import Document
from birchbark.retrieve.query_language import ParsedQuery
from birchbark.score.attention import AttentionModel
from birchbark.score.bert_scorer import BertScorer
from birchbark.score.precision import Precision
from birchbark.score.token_limits import cut_text
from birchbark.score_cache.cached_scorer import uncached
from birchbark.serve.admission import AdmissionControl, BusyError, Slot
from birchbark.serve.answer_stream import AnswerStream, DisconnectedError
from birchbark.serve.background_sync import BackgroundSync
from birchbark.serve.background_vectors import BackgroundVectors
from birchbark.serve.choose_rankers import choose_rankers
from birchbark.serve.embed_texts import Embedded, embed_texts
from birchbark.serve.limits import Limits
from birchbark.serve.metrics import Metrics
from birchbark.serve.original_files import OriginalFiles
from birchbark.serve.schemas import (
    DocumentResponse,
    SearchRequest,
    SearchResponse,
    WriteResponse,
)
from birchbark.serve.serialize import serialize_document
from birchbark.serve.tracing import Span
from birchbark.serve.write_queue import WriteQueue
from birchbark.show.attention_page import attention_data

T = TypeVar("T")
Work = Callable[[float, Callable[[], None]], T]  # given seconds, and what to call before each step
QUICK_THREADS = 4  # for requests that do not score
RENDERING_THREADS = 2  # for requests that run a process
SCORING_SHARE = 0.85  # of a budget; the rest is for serialising and sending the answer
FULL_TIME_SHARE = 0.9  # of the maximum time: a request that had this share would fail again
MAX_QUEUE_SECONDS = 0.25  # a search waits for a thread this long, or for its budget if longer
MAX_WAIT_SHARE = 0.7  # of a budget, to wait for a scoring slot
MIN_SECONDS_FOR_VECTORS = 0.05  # to score: with less, vectors do not look for candidates
VECTORS_MARGIN = 2.0  # factor on the mean time to answer by stored vectors, which varies
MEAN_WEIGHT = 0.1  # of the latest answer in that mean; it falls by this share if none is given


class NotFoundError(BirchbarkError):
    """The document or file does not exist."""


@contextmanager
def known_document() -> Iterator[None]:
    """Raise NotFoundError if the document that is read in this block does not exist."""
    try:
        yield
    except UnknownDocumentError:
        raise NotFoundError("no such document") from None


class TooLargeError(BirchbarkError):
    """The request cannot be answered within the maximum time, even on an idle service."""


class DisabledError(BirchbarkError):
    """The service was started without this function."""


def _candidates(request: SearchRequest, seconds: float) -> Literal["nearest", "terms"] | None:
    """Return how candidates are found for a search that may score for so many seconds."""
    if request.by == "nearest":
        return "nearest"
    return "terms" if seconds < MIN_SECONDS_FOR_VECTORS else None


@contextmanager
def _while_awaited() -> Iterator[Callable[[], None]]:
    """Yield a function that raises DisconnectedError after the block, which awaits some work."""
    ended = Event()

    def check() -> None:
        if ended.is_set():
            raise DisconnectedError

    try:
        yield check
    finally:
        ended.set()


@dataclass(frozen=True, slots=True)
class Reranked:
    """Texts that were re-ranked.

    Attributes:
        texts: The texts, best first.
        sentences: The best sentences of each text, see `highlight`; empty if not asked for.
        tokens: The number of tokens of the query and all texts, 0 if they were not counted.
        truncated: The number of tokens of texts that were truncated, and not read.
    """

    texts: list[RankedText]
    sentences: list[list[Evidence]]
    tokens: int
    truncated: int


class Service:
    """Answers concurrent requests with one searcher.

    embedding_model: embeds texts of requests, and ranks searches with `by: embedding`; loaded when
    it is first needed; None to refuse both. writable: whether requests may change documents.
    background: computes missing vectors while no request is active; None to compute none. sync:
    reads changed files of the served folder; None to read none. files: the documents' files, if
    they come from a folder.
    """

    def __init__(
        self,
        searcher: Searcher,
        embedding_model: str | None = None,
        limits: Limits = Limits(),
        *,
        writable: bool = False,
        background: BackgroundVectors | None = None,
        sync: BackgroundSync | None = None,
        files: OriginalFiles | None = None,
    ) -> None:
        self.searcher, self.embedding_model = searcher, embedding_model
        self.limits, self.writable = limits, writable
        self.files = files or OriginalFiles(searcher.directory)
        self.admission = AdmissionControl(limits)
        self.metrics = Metrics(lambda: searcher.pairs_scored)
        self._background, self._sync = background, sync
        self._threads = [thread for thread in (background, sync) if thread]
        self._scoring_pool = ThreadPoolExecutor(limits.max_concurrent, "birchbark-score")
        self._quick_pool = ThreadPoolExecutor(QUICK_THREADS, "birchbark-quick")
        self._rendering_pool = ThreadPoolExecutor(RENDERING_THREADS, "birchbark-render")
        self._writes = WriteQueue(
            self._add_requested,
            lambda doc_id: searcher.index.find(doc_id) is not None,
            searcher.writing,
        )
        self._vectors_seconds = 0.0  # mean time to answer by stored vectors, without waiting
        self._active_writes = 0
        self._attention_lock = Lock()
        self._attention: AttentionModel | None = None

    @property
    def model(self) -> str | None:
        """The name of the first ranker's model."""
        return self.searcher.rankers[0].scorer.name if self.searcher.rankers else None

    @property
    def model_and_precision(self) -> tuple[str | None, Precision]:
        """The name alone of that model, or of the embedding if there is none, and its arithmetic.

        The name of a scorer also says what kind it is.
        """
        if not self.model:
            name = self.embedding_model
            return Path(name).name if name else None, Precision.FP32
        scorer = self._first_scorer
        name = scorer.checkpoint.name if isinstance(scorer, BertScorer) else self.model
        others = (p for p in Precision if p.suffix and name.endswith(p.suffix))
        precision = next(others, Precision.FP32)
        return name.removesuffix(precision.suffix), precision

    def check(self) -> None:
        """Raise BusyError or ArtifactError if a search would not be answered."""
        self.admission.check()
        if not self.searcher.index_exists:
            raise ArtifactError("the index no longer exists")
        self._check_documents()

    def _check_documents(self) -> None:
        """Raise BusyError if the first documents of the served folder are still being read."""
        if self.reading is not None and not len(self.searcher.index):
            found = f"{self.reading} so far"
            raise BusyError("the first documents of the folder are being read", found=found)

    @property
    def reading(self) -> int | None:
        """See `BackgroundSync`."""
        return self._sync.reading if self._sync else None

    @property
    def failing(self) -> list[str]:
        """What does not work in the background, and why; such failures do not affect searches."""
        return [thread.failing for thread in self._threads if thread.failing]

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Return the final answer, which is not exact if time or capacity did not suffice."""
        answers = [answer async for answer in self.stream(request, intermediate=False)]
        return answers[-1]

    async def stream(
        self, request: SearchRequest, *, intermediate: bool = True
    ) -> AsyncIterator[SearchResponse]:
        """Yield the first stage's answer, answers while documents are scored, and the final one.

        intermediate: if false, yield only the final answer.
        """
        self.admission.check()  # before it waits for a thread
        start = time.monotonic()
        budget = self.limits.budget if request.budget_ms is None else request.budget_ms / 1000
        budget = min(budget, self.limits.max_time)
        rankers, query, keywords = await asyncio.to_thread(self._prepare, request)
        with Span("search") as span:
            answer = None
            max_wait = None if rankers is None else MAX_WAIT_SHARE * budget
            async with self.admission.slot(max_wait) as slot:
                span.note(budget_seconds=budget, wait_seconds=time.monotonic() - start)
                stream = AnswerStream(
                    query, start, sort=request.sort, keywords=keywords, intermediate=intermediate
                )
                search = partial(self._search, request, stream, rankers, slot, start, budget)
                pool = self._scoring_pool if slot.may_score else self._quick_pool
                running = slot.submit(pool, partial(stream.run, search))
                async for answer in stream.answers(running):
                    yield answer
            if answer:
                self.metrics.count_search(answer)
                span.note(exact=answer.exact, hits=len(answer.hits), pairs=answer.pairs)

    def _prepare(
        self, request: SearchRequest
    ) -> tuple[Callable[[], list[Ranker]] | None, ParsedQuery, Sequence[str]]:
        """Return the rankers, see `choose_rankers`, the query, and the keyword fields.

        To be called in a thread, since it opens the index if that has changed.
        """
        self._check_documents()
        rankers = choose_rankers(self.searcher, self.embedding_model, request)
        query = self.searcher.parse(request.query, literal=request.literal)
        return rankers, query, self.searcher.index.keywords

    def _search(
        self,
        request: SearchRequest,
        stream: AnswerStream,
        rankers: Callable[[], Sequence[Ranker]] | None,
        slot: Slot,
        start: float,
        budget: float,
        on_progress: OnProgress,
    ) -> Answer:
        """Search in a thread of the slot's pool; BusyError if the thread came too late.

        rankers: loads the rankers; None for the first stage alone. start: when the request came.
        budget: its seconds.
        """
        if time.monotonic() > start + max(budget, MAX_QUEUE_SECONDS):
            raise self.admission.busy_error()
        stream.rankers = rankers() if rankers else ()
        now = time.monotonic()
        waited, remaining = now - start, 0.0
        if slot.may_score:
            usable = SCORING_SHARE * budget
            remaining = min(usable - waited, self.admission.fair_share(usable))
        run = partial(
            self.searcher.search,
            stream.query,
            request.top,
            filters=request.filters,
            candidates=_candidates(request, remaining),
        )
        by_vectors = bool(stream.rankers) and not slot.may_score
        if by_vectors and waited + VECTORS_MARGIN * self._vectors_seconds > budget:
            self._vectors_seconds *= 1 - MEAN_WEIGHT
            return run(NO_TIME, rankers=()).as_unscored()
        answer = run(max(remaining, NO_TIME), rankers=stream.rankers, on_progress=on_progress)
        if by_vectors:
            self._count_vectors_seconds(time.monotonic() - now)
        return answer

    def _count_vectors_seconds(self, seconds: float) -> None:
        """Update the mean time that a thread needs to answer by stored vectors."""
        mean = self._vectors_seconds or seconds
        self._vectors_seconds = mean + MEAN_WEIGHT * (seconds - mean)

    async def document(
        self, doc_id: str, query: str | None, *, literal: bool = False
    ) -> DocumentResponse:
        """Return a document; with a query, also its segments with their scores.

        literal: see `Searcher.parse`.

        Raises NotFoundError for an unknown document, and what `run_scoring` raises.
        """

        def read(seconds: float, on_step: Callable[[], None]) -> DocumentResponse:
            with known_document():
                (document,) = self.searcher.documents([doc_id])
            return serialize_document(document)

        if query is None:
            return await self.run_quick(read)
        if not self.searcher.rankers:
            raise InputError("this service has no model", remedy="leave out the query")

        def score(remaining: float, on_batch: Callable[[], None]) -> DocumentResponse:
            parsed = self.searcher.parse(query, literal=literal)
            with known_document():
                hit, stats = self.searcher.evidence(doc_id, parsed, remaining, on_batch=on_batch)
            read_query = parsed.words or str(parsed)
            return serialize_document(hit.document, hit.segments, stats, read_query)

        return await self.run_scoring(score)

    async def rerank(
        self,
        query: str,
        texts: list[str],
        *,
        top: int | None = None,
        evidence: bool = False,
        max_tokens: int | None = None,
        count_tokens: bool = True,
    ) -> Reranked:
        """Return the best texts and, if asked for, their best sentences.

        top: the number of texts to return; None for all. max_tokens: how many tokens of a text are
        read, 0 for those that the model's input has room for; None for all of them.
        count_tokens: if false, the number of tokens is 0.

        Raises DeadlineError, TooLargeError or BusyError if not all of them can be scored.
        """
        if not self.searcher.rankers:
            raise InputError("this service has no model to rank by")
        ranker = self.searcher.rankers[0]
        if evidence:  # before all texts are scored
            check_highlights(ranker)

        def score(remaining: float, on_batch: Callable[[], None]) -> Reranked:
            end = time.monotonic() + remaining
            read, truncated = texts, 0
            if max_tokens is not None:
                read_query, _ = cut_text(ranker.scorer, query, ranker.query_tokens)
                budget = max_tokens or ranker.scorer.token_budget(read_query)
                read = []
                for text in texts:
                    on_batch()
                    beginning, count = cut_text(ranker.scorer, text, budget)
                    read.append(beginning)
                    truncated += count
            ranked = rank(query, read, ranker, top, remaining, on_batch=on_batch)
            tokens = 0
            for text in [query, *read] if count_tokens else ():
                on_batch()
                tokens += len(ranker.scorer.encode([text])[0])
            sentences: list[list[Evidence]] = []
            if evidence:
                best = [text.text for text in ranked]
                left = max(0.0, end - time.monotonic())
                sentences = highlight(query, best, ranker, left, on_batch=on_batch)
            return Reranked(ranked, sentences, tokens, truncated)

        with Span("rerank") as span:
            span.note(texts=len(texts))
            return await self.run_scoring(score)

    async def embed(self, texts: list[str], **settings: Any) -> Embedded:
        """Return the vectors of texts by the embedding model. settings: see `embed_texts`.

        Raises TooLargeError or BusyError, too, if not all of them can be embedded.
        """
        model = self.embedding_model
        if model is None:
            raise InputError("this service has no embedding model")

        def embed(remaining: float, on_batch: Callable[[], None]) -> Embedded:
            scorer = self.searcher.models.scorer(model)
            return embed_texts(scorer, texts, Deadline(remaining, on_batch=on_batch), **settings)

        with Span("embed") as span:
            span.note(texts=len(texts))
            return await self.run_scoring(embed)

    @property
    def has_attention(self) -> bool:
        """Whether the first ranker's model is a BERT classifier, whose attention can be shown."""
        scorer = self._first_scorer
        return isinstance(scorer, BertScorer) and isinstance(scorer.checkpoint.head, Classifier)

    @property
    def _first_scorer(self) -> object:
        return uncached(self.searcher.rankers[0].scorer) if self.searcher.rankers else None

    async def attention(self, query: str, text: str) -> dict[str, Any]:
        """Return the model's attention in the format that the page draws, computed in float32."""
        scorer = self._first_scorer
        if not isinstance(scorer, BertScorer):
            raise InputError("this service has no model whose attention can be shown")
        checkpoint = scorer.checkpoint

        def read(remaining: float, on_batch: Callable[[], None]) -> dict[str, Any]:
            with self._attention_lock:
                if self._attention is None:
                    self._attention = AttentionModel(checkpoint)
            ranker = self.searcher.rankers[0]
            read_query, _ = cut_text(ranker.scorer, query, ranker.query_tokens)
            return attention_data(self._attention.attend(read_query, text))

        return await self.run_scoring(read)

    async def write(
        self, documents: Sequence[Document] = (), delete: Sequence[str] = ()
    ) -> WriteResponse:
        """Add and delete documents, all or none, and return how many.

        Raises DisabledError if the service is not writable, and BusyError if too many writes wait
        or the commit has not begun within the maximum time; nothing has changed then.
        """
        if not self.writable:
            raise DisabledError("documents cannot be changed", remedy="birchbark serve --writable")
        written = self._writes.submit(documents, delete)
        self._active_writes += 1
        try:
            response = asyncio.wrap_future(written)
            await asyncio.wait([response], timeout=self.limits.max_time)
            if written.cancel():
                raise BusyError("the write could not begin in time")
            return await response
        finally:
            self._active_writes -= 1

    async def run_quick(self, work: Work[T]) -> T:
        """Return the result of `work`, which does not score; DeadlineError after the maximum time.

        work: called with the seconds that it may take, the default budget at most, and a function
        to call before each step, which raises an exception if nobody waits for the result.
        """
        return await self._run_unscored(work, self._quick_pool)

    async def run_rendering(self, work: Work[T]) -> T:
        """Return what `run_quick` does, of work that waits for a process and keeps no search."""
        return await self._run_unscored(work, self._rendering_pool)

    async def _run_unscored(self, work: Work[T], pool: Executor) -> T:
        end = time.monotonic() + self.limits.max_time
        async with self.admission.slot(None) as slot:
            with _while_awaited() as check:

                def run() -> T:
                    check()  # it may have waited for a thread
                    return work(min(self.limits.budget, end - time.monotonic()), check)

                try:
                    async with asyncio.timeout(self.limits.max_time):
                        return await slot.submit(pool, run)
                except TimeoutError:
                    wanted = f"an answer within {self.limits.max_time:g} s"
                    raise DeadlineError("time does not suffice", wanted=wanted) from None

    def start(self) -> None:
        """Start to compute missing vectors while no request is active, and to watch the folder."""
        failures = {thread.name: partial(getattr, thread, "failures") for thread in self._threads}
        self.metrics.watch_background(failures)
        if background := self._background:
            self.metrics.watch_missing_vectors(lambda: background.missing)
            background.start_beside(self._count_active)
        if self._sync:
            self._sync.start_with(partial(self._add_read, self._sync))

    def add(
        self,
        documents: Iterable[Document],
        delete: Iterable[str] = (),
        origin: NewOrigin | None = None,
    ) -> AddedDocuments:
        """Add and delete documents; vectors that are computed in the background are left to it."""
        computed = self._background and self._background.set_name
        leave_out = [computed] if computed else ()
        return self.searcher.add(documents, delete=delete, leave_out=leave_out, origin=origin)

    def _add_requested(
        self, documents: Sequence[Document], delete: Sequence[str]
    ) -> AddedDocuments:
        """Do what a request asks for."""
        start = time.time_ns()
        added = self.add(documents, delete)
        if self._sync:
            written = [*(document.doc_id for document in documents), *delete]
            self._sync.note_written(written, start)
        return added

    def _add_read(self, sync: BackgroundSync, changes: Changes) -> AddedDocuments:
        """Do what files ask for, except where a request came after they were read."""
        with self.searcher.writing():
            return self.add(*sync.without_newer(changes))

    def _count_active(self) -> int:
        """Return the number of active requests; reading changed files counts as one."""
        return self.admission.active + (self.reading is not None)

    def close(self) -> None:
        """Wait until all threads have ended."""
        for thread in self._threads:
            thread.stop()
        self._writes.close()
        for pool in (self._scoring_pool, self._quick_pool, self._rendering_pool):
            pool.shutdown(wait=True)

    async def run_scoring(self, work: Work[T]) -> T:
        """Return the result of `work`, which scores; BusyError if no slot becomes free.

        work: called with the remaining seconds and a function to call before each batch, which
        raises an exception if nobody waits for the result. A DeadlineError becomes a TooLargeError
        if the request had nearly the maximum time, nothing else was scored meanwhile, and no write
        is under way.
        """
        max_time = self.limits.max_time
        end = time.monotonic() + max_time
        async with self.admission.slot(MAX_WAIT_SHARE * max_time) as slot:
            if not slot.may_score:
                raise self.admission.busy_error()
            had_full_time = end - time.monotonic() > FULL_TIME_SHARE * max_time
            try:
                with _while_awaited() as check:
                    return await slot.submit(
                        self._scoring_pool, lambda: work(end - time.monotonic(), check)
                    )
            except DeadlineError as late:
                if not (had_full_time and slot.exclusive) or self._active_writes:
                    raise
                wanted = f"what can be scored in {max_time:g} s"
                raise TooLargeError(late.what, found=late.found, wanted=wanted) from None
