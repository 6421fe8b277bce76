"""What does the service do for a request? Turns, budgets and threads around a Searcher."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from birchbark.combine.aggregate import Top
from birchbark.combine.interpolate import Interpolation
from birchbark.errors import BirchbarkError, InputError
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.texts import RankedText, rank_texts
from birchbark.score.attention import Attention, AttentionReader
from birchbark.score.model import load_scorer
from birchbark.score.together import together
from birchbark.serve.gate import Gate
from birchbark.serve.limits import Limits
from birchbark.serve.metrics import Metrics
from birchbark.serve.shapes import DocumentShape, SearchAnswer, SearchRequest
from birchbark.serve.shown import document_shape
from birchbark.serve.told import Told

T = TypeVar("T")
QUICK_THREADS = 4  # for what needs no BERT
PATIENCE = 0.5  # share of a budget that is waited for a turn: what is left must suffice to read


class NotFoundError(BirchbarkError):
    """No such document."""


class ClosedError(BirchbarkError):
    """Something that this service was not started for."""


class Service:
    """A searcher that many ask at once.

    model: the name of the main model, for attention; embedding: of the one that `by: embedding`
    ranks by, loaded when first asked for. writable: whether documents may be changed.
    """

    def __init__(
        self,
        searcher: Searcher,
        model: str,
        embedding: str | None = None,
        limits: Limits = Limits(),
        *,
        writable: bool = False,
    ) -> None:
        self.searcher, self.model, self.embedding = searcher, model, embedding
        self.limits, self.writable = limits, writable
        self.gate, self.metrics = Gate(limits), Metrics()
        self._at_work = ThreadPoolExecutor(limits.at_work, "birchbark-bert")
        self._quick = ThreadPoolExecutor(QUICK_THREADS, "birchbark-quick")
        self._writing = ThreadPoolExecutor(1, "birchbark-write")
        self._embedding_ranker: Ranker | None = None
        self._attention: AttentionReader | None = None
        self._loading = asyncio.Lock()

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
        rankers = await self._rankers(request)
        async with self.gate.entered(PATIENCE * budget if rankers else 0) as has_turn:
            waited = time.monotonic() - begun
            left = budget - waited
            reads = bool(rankers) and has_turn and left > 0
            run = partial(
                self.searcher.search,
                request.query,
                request.top,
                left if reads else None,
                rankers=rankers if reads else None,
                filters=request.filters,
            )
            cut_short = bool(rankers) and not reads
            told = Told(request.query, begun, waited, frames=frames, cut_short=cut_short)
            answer = None
            async for answer in told.of(self._at_work if reads else self._quick, run):
                yield answer
        if answer:
            self.metrics.searched(answer)

    async def document(self, doc_id: str, query: str | None) -> DocumentShape:
        """The document; for a query with the score of each of its segments."""
        if self.searcher.index.find(doc_id) is None:
            raise NotFoundError("no such document")
        if query is None:
            return await self._quickly(partial(self._document, doc_id))
        if not self.searcher.rankers:
            raise InputError("this service has no model", remedy="ask without a query")
        return await self._with_turn(partial(self._tinted, doc_id, query))

    async def rerank(self, query: str, texts: list[str]) -> list[RankedText]:
        """All texts, best first; LateError, or BusyError, rather than scores that are made up."""
        if not self.searcher.rankers:
            raise InputError("this service has no model to rank by")
        scorer = self.searcher.rankers[0].scorer
        budget = self.limits.longest
        return await self._with_turn(partial(rank_texts, query, texts, scorer, budget=budget))

    async def attention(self, query: str, text: str) -> Attention:
        """What the model looked at."""

        def read() -> Attention:
            if self._attention is None:
                self._attention = AttentionReader(self.model)
            return self._attention.read(query, text)

        return await self._with_turn(read)

    async def write(self, change: Callable[[], T]) -> T:
        """What `change` gives, which is then on disk; one after the other."""
        if not self.writable:
            raise ClosedError("documents cannot be changed", remedy="birchbark serve --writable")
        return await asyncio.get_running_loop().run_in_executor(self._writing, change)

    def close(self) -> None:
        """Wait for what is being done."""
        for pool in (self._at_work, self._quick, self._writing):
            pool.shutdown(wait=True)

    async def _quickly(self, work: Callable[[], T]) -> T:
        async with self.gate.entered(0):
            return await asyncio.get_running_loop().run_in_executor(self._quick, work)

    async def _with_turn(self, work: Callable[[], T]) -> T:
        """What `work` gives, which needs BERT; BusyError where no turn comes."""
        async with self.gate.entered(self.limits.longest) as has_turn:
            if not has_turn:
                raise self.gate.refusal()
            return await asyncio.get_running_loop().run_in_executor(self._at_work, work)

    async def _rankers(self, request: SearchRequest) -> tuple[Ranker, ...]:
        """Those of the searcher, with what the request chooses otherwise; none for BM25 alone."""
        names = ("depth", "first_stage_weight", "weights")
        said = [name for name in names if getattr(request, name) is not None]
        if request.by == "first_stage":
            if said:
                raise InputError(f"{said[0]} is for BERT", found="by: first_stage")
            return ()
        if request.by == "embedding":
            return (_chosen(await self._by_embedding(), request, alone=True),)
        if said and len(self.searcher.rankers) > 1:
            raise InputError(f"{said[0]} cannot be chosen: this service ranks in several stages")
        return tuple(_chosen(one, request, alone=False) for one in self.searcher.rankers)

    async def _by_embedding(self) -> Ranker:
        if self.embedding is None or not self.searcher.rankers:
            raise InputError(
                "this service has no embedding", remedy="birchbark serve --beside MODEL"
            )
        name = self.embedding
        async with self._loading:
            if self._embedding_ranker is None:
                load = partial(load_scorer, name, session=together())
                scorer = await asyncio.get_running_loop().run_in_executor(self._quick, load)
                alone = replace(
                    self.searcher.rankers[0],
                    scorer=scorer,
                    embedding=None,
                    precise=None,
                    duo=None,
                    interpolation=Interpolation(0.0),
                )
                self._embedding_ranker = self.searcher.remember(alone)
        return self._embedding_ranker

    def _document(self, doc_id: str) -> DocumentShape:
        (document,) = self.searcher.documents([doc_id])
        return document_shape(document)

    def _tinted(self, doc_id: str, query: str) -> DocumentShape:
        hit = self.searcher.evidence(doc_id, query, self.limits.longest)
        return document_shape(hit.document, hit.segments)


def _chosen(ranker: Ranker, request: SearchRequest, *, alone: bool) -> Ranker:
    """`ranker` with what the request says of it. alone: whether the first stage has no part."""
    chosen: dict[str, Any] = {}
    if request.depth is not None:
        chosen["depth"] = request.depth
    if request.weights is not None:
        chosen["aggregation"] = Top(tuple(request.weights))
    if request.first_stage_weight is not None and not alone:
        scale = ranker.interpolation.scale
        chosen["interpolation"] = Interpolation(request.first_stage_weight, scale)
    return replace(ranker, **chosen)
