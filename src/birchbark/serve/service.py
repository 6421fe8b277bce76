"""What does the service do for a request? Turns, budgets and threads around a Searcher."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from threading import Event, Lock
from typing import Any, TypeVar

from birchbark.checkpoint.heads import Classifier
from birchbark.combine.aggregate import Top
from birchbark.combine.interpolate import Interpolation
from birchbark.errors import ArtifactError, BirchbarkError, InputError, LateError
from birchbark.pipeline.answer import Answer
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.search import Watch
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.texts import RankedText, rank_texts
from birchbark.remember.remembering import beneath
from birchbark.score.attention import AttentionReader
from birchbark.score.bert import BertScorer
from birchbark.serve.gate import BusyError, Gate, Visit
from birchbark.serve.limits import Limits
from birchbark.serve.metrics import Metrics
from birchbark.serve.shapes import DocumentShape, SearchAnswer, SearchRequest
from birchbark.serve.shown import document_shape
from birchbark.serve.told import GoneError, Told
from birchbark.show.attention import attention_data

MOST_WRITES = 16  # that wait for each other
T = TypeVar("T")
QUICK_THREADS = 4  # for what needs no BERT
SCORING = 0.85  # share of a budget that scoring may take; then the answer is written and sent
NEARLY = 0.9  # of the time that anything may take: as much as can be hoped for
QUEUE = 0.25  # seconds that may pass before a thread begins, however small the budget
PATIENCE = 0.5  # share of a budget that is waited for a turn: what is left must suffice to read


class NotFoundError(BirchbarkError):
    """No such document."""


class TooMuchError(BirchbarkError):
    """More than can be read in the time that anything may take."""


class ClosedError(BirchbarkError):
    """Something that this service was not started for."""


class Service:
    """A searcher that many ask at once.

    embedding: the model that `by: embedding` ranks by, loaded when first asked for. writable:
    whether documents may be changed.
    """

    def __init__(
        self,
        searcher: Searcher,
        embedding: str | None = None,
        limits: Limits = Limits(),
        *,
        writable: bool = False,
    ) -> None:
        self.searcher, self.embedding = searcher, embedding
        self.limits, self.writable = limits, writable
        self.gate, self.metrics = Gate(limits), Metrics(lambda: searcher.scored)
        self._at_work = ThreadPoolExecutor(limits.at_work, "birchbark-bert")
        self._quick = ThreadPoolExecutor(QUICK_THREADS, "birchbark-quick")
        self._writing = ThreadPoolExecutor(1, "birchbark-write")
        self._writes = 0
        self._loading = Lock()
        self._embedding_ranker: Ranker | None = None
        self._attention: AttentionReader | None = None

    @property
    def model(self) -> str | None:
        """What the model that ranks first is called."""
        return self.searcher.rankers[0].scorer.name if self.searcher.rankers else None

    def check(self) -> None:
        """Raise BusyError or ArtifactError where a search would not be answered."""
        self.gate.check()
        if not self.searcher.is_there:
            raise ArtifactError("the index is gone")

    async def search(self, request: SearchRequest) -> SearchAnswer:
        """The answer; where time or capacity do not suffice, the best ranking that is known."""
        answers = [answer async for answer in self.stream(request, frames=False)]
        return answers[-1]

    async def stream(
        self, request: SearchRequest, *, frames: bool = True
    ) -> AsyncIterator[SearchAnswer]:
        """The first stage's answer, then better ones as they become known, then the last.

        frames: without them the last one alone.
        """
        begun = time.monotonic()
        budget = self.limits.budget if request.budget_ms is None else request.budget_ms / 1000
        budget = min(budget, self.limits.longest)
        choose = self._chosen_rankers(request)
        visit = await self.gate.come(None if choose is None else PATIENCE * budget)
        told = Told(request.query, begun, frames=frames)

        def search(watch: Watch) -> tuple[Answer, bool]:
            if time.monotonic() > begun + max(budget, QUEUE):
                raise self.gate.refusal()
            rankers = choose() if choose and visit.has_turn else ()
            left = begun + SCORING * budget - time.monotonic()
            reads = bool(rankers) and left > 0
            answer = self.searcher.search(
                request.query,
                request.top,
                left if reads else None,
                rankers=rankers if reads else None,
                filters=request.filters,
                watch=watch,
            )
            return answer, reads or choose is None

        pool = self._at_work if visit.has_turn else self._quick
        answer = None
        async for answer in told.answers(self._begun(visit, pool, partial(told.run, search))):
            yield answer
        if answer:
            self.metrics.searched(answer)

    async def document(self, doc_id: str, query: str | None) -> DocumentShape:
        """The document; for a query with the score of each of its segments."""

        def check() -> None:
            if self.searcher.index.find(doc_id) is None:
                raise NotFoundError("no such document")

        def plain() -> DocumentShape:
            check()
            (document,) = self.searcher.documents([doc_id])
            return document_shape(document)

        if query is None:
            return await self.quickly(plain)
        if not self.searcher.rankers:
            raise InputError("this service has no model", remedy="ask without a query")

        def tinted(left: float, watch: Callable[[], None]) -> DocumentShape:
            check()
            hit = self.searcher.evidence(doc_id, query, left, watch=watch)
            return document_shape(hit.document, hit.segments)

        return await self._with_turn(tinted)

    async def rerank(
        self, query: str, texts: list[str], *, counted: bool = True
    ) -> tuple[list[RankedText], int]:
        """All texts, best first, and how many tokens they have, 0 unless they are to be counted.

        LateError, TooMuchError or BusyError rather than scores that are made up.
        """
        if not self.searcher.rankers:
            raise InputError("this service has no model to rank by")
        scorer = self.searcher.rankers[0].scorer

        def read(left: float, watch: Callable[[], None]) -> tuple[list[RankedText], int]:
            ranked = rank_texts(query, texts, scorer, budget=left, watch=watch)
            return ranked, sum(map(len, scorer.encode([query, *texts]))) if counted else 0

        return await self._with_turn(read)

    @property
    def can_look(self) -> bool:
        """Whether there is a model whose attention says something of a score."""
        scorer = self._first_scorer
        return isinstance(scorer, BertScorer) and isinstance(scorer.checkpoint.head, Classifier)

    @property
    def _first_scorer(self) -> object:
        return beneath(self.searcher.rankers[0].scorer) if self.searcher.rankers else None

    async def attention(self, query: str, text: str) -> dict[str, Any]:
        """What the model looked at, as a page draws it; in float32, whatever it ranks in."""
        scorer = self._first_scorer
        if not isinstance(scorer, BertScorer):
            raise InputError("this service has no model to look into")
        checkpoint = scorer.checkpoint

        def read(left: float, watch: Callable[[], None]) -> dict[str, Any]:
            with self._loading:
                if self._attention is None:
                    self._attention = AttentionReader(checkpoint)
            return attention_data(self._attention.read(query, text))

        return await self._with_turn(read)

    async def write(self, change: Callable[[], T]) -> T:
        """What `change` gives, which is then on disk; one after the other."""
        if not self.writable:
            raise ClosedError("documents cannot be changed", remedy="birchbark serve --writable")
        if self._writes >= MOST_WRITES:
            raise BusyError("too many writes at once", found=f"{self._writes} waiting")
        self._writes += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._writing, change)
        finally:
            self._writes -= 1

    async def quickly(self, work: Callable[[], T]) -> T:
        """What `work` gives, which needs no BERT."""
        visit = await self.gate.come(None)
        return await self._begun(visit, self._quick, work)

    def close(self) -> None:
        """Wait for what is being done."""
        for pool in (self._at_work, self._quick, self._writing):
            pool.shutdown(wait=True)

    async def _with_turn(self, work: Callable[[float, Callable[[], None]], T]) -> T:
        """What `work` gives, which needs BERT; or BusyError.

        work: hears how many seconds are left, and asks again and again whether to go on: its second
        argument ends it where nobody waits any more.
        TooMuchError takes the place of LateError where a turn by itself had all the time there is.
        """
        gone = Event()

        def watch() -> None:
            if gone.is_set():
                raise GoneError

        longest = self.limits.longest
        end = time.monotonic() + longest
        visit = await self.gate.come(PATIENCE * longest)
        if not visit.has_turn:
            visit.leave()
            raise self.gate.refusal()
        whole = end - time.monotonic() > NEARLY * longest
        try:
            return await self._begun(
                visit, self._at_work, lambda: work(end - time.monotonic(), watch)
            )
        except LateError as late:
            if not (whole and visit.alone) or self._writes:
                raise
            wanted = f"what can be read in {longest:g} s"
            raise TooMuchError(late.what, found=late.found, wanted=wanted) from None
        finally:
            gone.set()

    def _begun(self, visit: Visit, pool: Executor, work: Callable[[], T]) -> asyncio.Future[T]:
        """`work`, in a thread; the visit lasts until that has ended, whoever waits for it."""
        loop = asyncio.get_running_loop()
        running = pool.submit(work)

        def ended(running: Future[T]) -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(visit.leave)

        running.add_done_callback(ended)
        return asyncio.wrap_future(running)

    def _chosen_rankers(self, request: SearchRequest) -> Callable[[], list[Ranker]] | None:
        """What gives the rankers that the request chooses, in a thread; None for none.

        Raises InputError for choices that would do nothing.
        """
        own = self.searcher.rankers
        names = ("depth", "first_stage_weight", "weights")
        said = [name for name in names if getattr(request, name) is not None]
        if request.by == "first_stage" and said:
            raise InputError(f"{said[0]} is for BERT", found="by: first_stage")
        if request.by == "embedding":
            if self.embedding is None or not own:
                raise InputError("there is no embedding here", remedy="birchbark serve --beside")
            if "first_stage_weight" in said:
                raise InputError("first_stage_weight is for BERT", found="by: embedding")
            return lambda: [_chosen(self._by_embedding(), request)]
        if request.by == "first_stage" or not own:
            return None
        if said and len(own) > 1:
            raise InputError(f"{said[0]} cannot be chosen: this service ranks in several stages")
        if "weights" in said and own[0].scorer.width > 1:
            raise InputError("weights do nothing: this model judges documents as a whole")
        return lambda: [_chosen(one, request) for one in own]

    def _by_embedding(self) -> Ranker:
        assert self.embedding
        with self._loading:
            if self._embedding_ranker is None:
                alone = replace(
                    self.searcher.rankers[0],
                    scorer=self.searcher.load(self.embedding),
                    embedding=None,
                    precise=None,
                    duo=None,
                    interpolation=Interpolation(0.0),
                )
                self._embedding_ranker = self.searcher.remember(alone)
        return self._embedding_ranker


def _chosen(ranker: Ranker, request: SearchRequest) -> Ranker:
    """`ranker` with what the request says of it."""
    chosen: dict[str, Any] = {}
    if request.depth is not None:
        chosen["depth"] = request.depth
    if request.weights is not None:
        chosen["aggregation"] = Top(tuple(request.weights))
    if request.first_stage_weight is not None:
        scale = ranker.interpolation.scale
        chosen["interpolation"] = Interpolation(request.first_stage_weight, scale)
    return replace(ranker, **chosen)
