"""What are the best hits for one query, and why?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from birchbark.errors import InputError
from birchbark.pipeline.answer import Answer, Hit, Work
from birchbark.pipeline.deadline import Deadline
from birchbark.pipeline.race import Readers
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.stage import Stage, check_stages, run_stages
from birchbark.records import Document, Query, Ranking
from birchbark.retrieve.engine import Engine

Watch = Callable[[Callable[[], Answer]], object]


def search(
    engine: Engine,
    text: str,
    rankers: Ranker | Sequence[Ranker] | None,
    top: int = 10,
    budget: float | None = None,
    *,
    watch: Watch = lambda answer: None,
) -> Answer:
    """The `top` best hits for `text`, best first: first stage, then candidates re-ranked.

    rankers: one, or several stages, each of which re-ranks the best of what the one before made,
    down to its depth; those below keep their order, under the others. Those that cannot be among
    the best are not scored. Without a ranker the first stage has the last word, and hits have no
    evidence. budget: seconds; where they do not suffice, documents that were not settled keep the
    first stage's order, under those that were, and the answer says so. watch: called with a
    function that gives the answer so far: after the first stage, and whenever documents were
    settled; that answer's work is not exact. Raises InputError for a query that leaves no room for
    text, and for too many comparisons, before anything is scored.
    """
    stages = [rankers] if isinstance(rankers, Ranker) else rankers or ()
    deadline = deadline_in(budget)
    readers = [Readers(engine, ranker) for ranker in stages]
    return search_by(engine, text, readers, top, deadline, watch=watch)


def deadline_in(budget: float | None) -> Deadline:
    """The deadline that `search` keeps; InputError for a budget that is none."""
    if budget is not None and not budget > 0:
        raise InputError("budget is out of range", wanted="seconds above 0", found=str(budget))
    return Deadline(budget)


def search_by(
    engine: Engine,
    text: str,
    readers: Sequence[Readers],
    top: int,
    deadline: Deadline,
    *,
    watch: Watch = lambda answer: None,
) -> Answer:
    """As `search`, by readers that were made before, of the engine's documents."""
    if top < 1:
        raise InputError("top is out of range", wanted="1 or more", found=str(top))
    if not readers:
        return Answer(tuple(_first_hits(engine, engine.rank(text, top), settled=True)), Work())
    stages = [own.ranker for own in readers]
    check_stages(stages, text)
    query = Query("", text)
    candidates = engine.rank(text, max(top, *(ranker.depth for ranker in stages)))
    for ranker in stages:
        if ranker.duo:
            ranker.duo.check_cost([min(len(candidates), ranker.depth)])

    def answer(ranking: Ranking, done: Sequence[Stage]) -> Answer:
        work = sum((stage.work for stage in done), Work())
        return Answer(tuple(_hits(engine, ranking, done, top)), work)

    head = candidates.head(top)
    begun = Work(candidates=min(len(candidates), stages[0].depth), exact=False)
    watch(lambda: Answer(tuple(_first_hits(engine, head, settled=False)), begun))
    ranking, done = run_stages(
        readers, query, candidates, top, deadline, lambda *found: watch(partial(answer, *found))
    )
    return answer(ranking, done)


def _first_hits(engine: Engine, ranking: Ranking, *, settled: bool) -> Iterator[Hit]:
    """Hits as the first stage ranks them."""
    documents = engine.documents(ranking.doc_ids)
    for document, score in zip(documents, ranking.scores.tolist(), strict=True):
        yield Hit(document, score, score, 0.0, (), settled=settled)


def _hits(engine: Engine, ranking: Ranking, done: Sequence[Stage], top: int) -> list[Hit]:
    """The `top` best, each as the last stage that read it explains it.

    ranking: after the last stage that had time enough; others are there to fill up.
    """
    found = {hit.document.doc_id: hit for hit in done[-1].hits()}
    doc_ids = list(dict.fromkeys([*found, *ranking.doc_ids]))[:top]
    for stage in done[-2::-1] if len(found) < len(doc_ids) else ():
        found = {hit.document.doc_id: hit for hit in stage.hits()} | found
    unread = dict(zip(ranking.doc_ids, ranking.scores.tolist(), strict=True))
    unread = {doc_id: unread[doc_id] for doc_id in doc_ids if doc_id not in found}
    rest = Ranking.of(list(unread), list(unread.values()))
    found |= {hit.document.doc_id: hit for hit in _first_hits(engine, rest, settled=False)}
    return [found[doc_id] for doc_id in doc_ids]


def warm_up(engine: Engine, rankers: Sequence[Ranker], text: str) -> None:
    """Load what is loaded on first use, so that a first answer is as fast as the next."""
    engine.rank(text, 1)
    for ranker in rankers:
        ranker.segmenter(Document("", {"text": "A sentence. Another."}))
        ranker.scorer.score(text, ranker.scorer.encode([""]))
        if ranker.duo:
            duo = ranker.duo.duo
            duo.score(text, [duo.joined(*duo.encode(["", ""]))])
