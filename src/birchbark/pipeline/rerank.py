"""How is a whole run ranked anew?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from birchbark.errors import InputError
from birchbark.pipeline.answer import Answer, Work
from birchbark.pipeline.duo import Compared, compare
from birchbark.pipeline.race import Race, Readers
from birchbark.pipeline.ranker import Ranker
from birchbark.records import Query, Ranking, Run
from birchbark.retrieve.engine import DocumentStore


def rerank(
    store: DocumentStore,
    run: Run,
    queries: Sequence[Query],
    ranker: Ranker,
    *,
    top: int | None = None,
    tag: str | None = None,
    report: Callable[[str, Work], object] = lambda query_id, work: None,
) -> Run:
    """`run` re-ranked for each of `queries`, in their order.

    top: only the best so many of each, scoring no document that cannot be among them; by default
    all candidates, those below the ranker's depth under the others. report: called after each query
    with its id and the work that it took. Raises InputError if the run has a query that is not in
    `queries`. A query without ranking gets an empty one.
    """
    texts = {query.query_id for query in queries}
    if unknown := [query_id for query_id in run.rankings if query_id not in texts]:
        raise InputError(
            f"the run ranks a query without a text: {unknown[0]}",
            found=f"{len(unknown)} such queries",
            remedy="give the queries that the run was made for",
        )
    if top is not None and top < 1:
        raise InputError("top is out of range", wanted="1 or more", found=str(top))
    for query in queries:  # before any work is done
        try:
            for scorer in filter(None, (ranker.scorer, ranker.embedding, ranker.precise)):
                scorer.room(query.text)
        except InputError as error:
            raise error.at(f"query {query.query_id}") from None
    duo = ranker.duo
    if duo:
        counts = (len(one.head(ranker.depth)) for one in run.rankings.values())
        duo.check_cost(counts)
    readers = Readers(store, ranker)
    rankings = {}
    for query in queries:
        candidates = run.rankings.get(query.query_id, Ranking.of([], []))
        reach = max(top, duo.depth if duo else 0) if top else ranker.depth
        race = Race(readers, query, candidates.head(ranker.depth), ranker, reach)
        race.run()
        best, work = race.best(), race.work
        if duo:
            compared = compare(duo, query.text, race.hits(duo.depth))
            best, work = _with_compared(compared, best), work + compared.work
        rankings[query.query_id] = best.head(top) if top else with_rest(best, candidates)
        report(query.query_id, work)
    kinds = [run.tag, ranker.scorer.kind, *(["duo"] if duo else [])]
    return Run(rankings, tag or "+".join(kinds))


def _with_compared(compared: Compared, best: Ranking) -> Ranking:
    """`best` with its first documents in the order of comparisons.

    Equal scores of comparisons are told apart in the run, so that the order is kept.
    """
    scores = np.array(compared.scores, np.float32)
    for place in range(1, len(scores)):
        below = np.nextafter(scores[place - 1], np.float32(-np.inf))
        scores[place] = min(scores[place], below)
    doc_ids = [hit.document.doc_id for hit in compared.hits]
    return with_rest(Ranking.of(doc_ids, scores), best)


def settle(readers: Readers, query: Query, candidates: Ranking, ranker: Ranker) -> Answer:
    """All of `candidates`, best first, with their evidence, whatever the ranker's depth."""
    race = Race(readers, query, candidates, ranker, len(candidates))
    race.run()
    return Answer(tuple(race.hits()), race.work)


def with_rest(head: Ranking, candidates: Ranking) -> Ranking:
    """`head` with the candidates below it in their order; their scores are moved under its own."""
    rest = candidates.doc_ids[len(head) :]
    if not rest:
        return head
    lowest = float(head.scores.min())
    below = lowest - np.arange(1, len(rest) + 1) * max(1e-3, abs(lowest) * 1e-3)
    return Ranking.of([*head.doc_ids, *rest], [*head.scores.tolist(), *below.tolist()])
