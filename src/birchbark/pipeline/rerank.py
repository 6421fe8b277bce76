"""How is a whole run ranked anew?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from birchbark.errors import InputError
from birchbark.pipeline.answer import Answer, Work
from birchbark.pipeline.race import Race, Readers
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.stage import check_stages, run_stages
from birchbark.records import Query, Ranking, Run
from birchbark.retrieve.engine import DocumentStore


def rerank(
    store: DocumentStore,
    run: Run,
    queries: Sequence[Query],
    rankers: Ranker | Sequence[Ranker],
    *,
    top: int | None = None,
    tag: str | None = None,
    report: Callable[[str, Work], object] = lambda query_id, work: None,
) -> Run:
    """`run` re-ranked for each of `queries`, in their order.

    rankers: one, or several stages, each of which re-ranks the best of what the one before made,
    whose scores are its first stage's; candidates below its depth keep their order, under the
    others. top: only the best so many of each, scoring no document that cannot be among them; all
    by default.
    report: called after each query with its id and the work that it took. Raises InputError if the
    run has a query that is not in `queries`. A query without ranking gets an empty one.
    """
    stages = [rankers] if isinstance(rankers, Ranker) else list(rankers)
    _check(run, queries, stages, top)
    readers = [Readers(store, ranker) for ranker in stages]
    rankings = {}
    for query in queries:
        ranking = run.rankings.get(query.query_id, Ranking.of([], []))
        rankings[query.query_id], done = run_stages(readers, query, ranking, top)
        report(query.query_id, sum((stage.work for stage in done), Work()))
    kinds = [kind for r in stages for kind in (r.scorer.kind, *(["duo"] if r.duo else []))]
    return Run(rankings, tag or "+".join([run.tag, *kinds]))


def _check(run: Run, queries: Sequence[Query], stages: Sequence[Ranker], top: int | None) -> None:
    """Refuse, before any work is done, what could not be done to its end."""
    if not stages:
        raise InputError("no stage to rank by")
    texts = {query.query_id for query in queries}
    if unknown := [query_id for query_id in run.rankings if query_id not in texts]:
        raise InputError(
            f"the run ranks a query without a text: {unknown[0]}",
            found=f"{len(unknown)} such queries",
            remedy="give the queries that the run was made for",
        )
    if top is not None and top < 1:
        raise InputError("top is out of range", wanted="1 or more", found=str(top))
    for query in queries:
        try:
            check_stages(stages, query.text)
        except InputError as error:
            raise error.at(f"query {query.query_id}") from None
    for ranker in stages:
        if ranker.duo:
            ranker.duo.check_cost(len(one.head(ranker.depth)) for one in run.rankings.values())


def settle(readers: Readers, query: Query, candidates: Ranking) -> Answer:
    """All of `candidates`, best first, with their evidence, whatever the ranker's depth."""
    race = Race(readers, query, candidates, len(candidates))
    race.run()
    return Answer(tuple(race.hits()), race.work)
