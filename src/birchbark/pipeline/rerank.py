"""How is a run re-ranked?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from birchbark.arguments import check_instance, instances_of, shown, text_of
from birchbark.errors import InputError, require_at_least
from birchbark.index.index import Index
from birchbark.pipeline.answers.answer import Hit, SearchStats
from birchbark.pipeline.reading.document_reader import RankerReaders
from birchbark.pipeline.run_stages import StageResult, check_query_lengths, run_stages
from birchbark.pipeline.settings.ranker import Ranker, stages_of
from birchbark.records import Query, Ranking, Run
from birchbark.retrieve.engine import DocumentStore


@dataclass(frozen=True, slots=True)
class RerankedQuery:
    """What re-ranking one query has found. results: of each stage."""

    query_id: str
    results: Sequence[StageResult]

    @property
    def stats(self) -> SearchStats:
        """How much was scored, in all stages."""
        return SearchStats.of_stages(result.stats for result in self.results)

    def hits(self) -> list[Hit]:
        """Return the documents that the last stage re-ranked with their evidence, best first."""
        return self.results[-1].hits()

    def segment_scores(self, doc_id: str) -> list[float]:
        """Return the scores of all segments that the last stage read of a hit, best first.

        Only for hits that were scored. A model that scores whole documents gives a single score.
        """
        return self.results[-1].scoring.segment_scores(doc_id)


def rerank(
    store: DocumentStore,
    run: Run,
    queries: Iterable[Query],
    rankers: Ranker | Sequence[Ranker],
    *,
    top: int | None = None,
    tag: str | None = None,
    on_query: Callable[[RerankedQuery], object] = lambda query: None,
) -> Run:
    """Re-rank `run` for each of `queries`, in their order.

    A query without a ranking gets an empty one.

    Args:
        store: Returns documents by their ids; an `Index` will do.
        run: The run of the first stage.
        queries: All queries of the run, with their texts.
        rankers: One stage, or several. Each stage re-ranks the best documents of the stage before
            it and uses their scores as first-stage scores. Documents below a stage's depth keep
            their order below the re-ranked ones.
        top: Maximum number of documents per query; documents that cannot be among them are not
            scored. Defaults to None: all documents.
        tag: Tag of the new run. Defaults to None: the tag of `run`, then for each stage the kind of
            its scorer, and `duo` if it compares documents, joined by `+`.
        on_query: Called after each query. Does nothing by default.

    Returns:
        The re-ranked run.

    Raises:
        InputError: Before anything is scored, if there is no ranker, `top` is less than 1, the run
            has a query that is not in `queries`, documents to read that are not in the `Index`, or
            scores that cannot be scaled, a query is too long for a model, or duoBERT would need
            more comparisons than `Duo.max_comparisons`. Other stores find an unknown document when
            it is read.
    """
    if not callable(getattr(store, "documents", None)):
        raise InputError(
            "the store of the documents has the wrong type",
            wanted="an Index, or another object with a method documents",
            found=shown(store),
        )
    check_instance(run, Run, "the run")
    if tag is not None:
        text_of(tag, "the tag")
    queries = instances_of(queries, Query, "queries")
    stages = stages_of(rankers)
    _check(store, run, queries, stages, top)
    readers = [RankerReaders(store, ranker) for ranker in stages]
    rankings = {}
    for query in queries:
        ranking = run.rankings.get(query.query_id, Ranking.of([], []))
        rankings[query.query_id], results = run_stages(readers, query.text, ranking, top)
        on_query(RerankedQuery(query.query_id, results))
    kinds = [kind for r in stages for kind in (r.scorer.kind, *(["duo"] if r.duo else []))]
    return Run(rankings, tag or "+".join([run.tag, *kinds]))


def check_queries(run: Run, queries: Sequence[Query]) -> None:
    """Raise InputError if the run ranks a query that is not in `queries`, or one is there twice."""
    counts = Counter(query.query_id for query in queries)
    if repeated := [query_id for query_id, count in counts.items() if count > 1]:
        raise InputError(f"a second query with the id {repeated[0]}")
    texts = set(counts)
    if unknown := [query_id for query_id in run.rankings if query_id not in texts]:
        raise InputError(
            f"the run ranks query {unknown[0]}, which is not among the queries",
            found=f"{len(unknown)} missing",
            remedy="use the queries for which the run was made",
        )


def _check(
    store: DocumentStore,
    run: Run,
    queries: Sequence[Query],
    stages: Sequence[Ranker],
    top: int | None,
) -> None:
    """Raise InputError now for errors that would otherwise occur after hours of scoring."""
    if not stages:
        raise InputError("no ranker is given", wanted="one or more")
    check_queries(run, queries)
    if top is not None:
        require_at_least("top", top, 1)
    depth = max(ranker.depth for ranker in stages)
    for query in queries:
        ranking = run.rankings.get(query.query_id, Ranking.of([], []))
        try:
            if isinstance(store, Index):
                store.check_known(ranking.head(depth).doc_ids)
            check_query_lengths(stages, query.text)
            stages[0].interpolation.weighted_first_stage(ranking.head(stages[0].depth).scores)
        except InputError as error:
            raise error.at(f"query {query.query_id}") from None
    for ranker in stages:
        if ranker.duo:
            counts = [len(ranking.head(ranker.depth)) for ranking in run.rankings.values()]
            ranker.duo.check_comparisons(counts)
