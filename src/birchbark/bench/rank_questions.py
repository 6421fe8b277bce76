"""How does a system answer the questions, in which time, and what of it does a person judge?"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from statistics import median

from birchbark.errors import InputError
from birchbark.pipeline.answers.answer import Hit
from birchbark.pipeline.run_stages import check_query_lengths
from birchbark.pipeline.searcher import Searcher
from birchbark.records import Query, Ranking, Run

RANKED = 10  # documents of each question
JUDGED = 5  # of these, by a person


@dataclass(frozen=True, slots=True)
class SystemRun:
    """What a system has found.

    Attributes:
        run: The ranking of each question.
        asked: Query id → the words that were ranked.
        seconds: Query id → the time that it took.
    """

    run: Run
    asked: Mapping[str, str]
    seconds: Mapping[str, float]

    @property
    def median_seconds(self) -> float:
        """The median time of a question."""
        return median(self.seconds.values())

    def of(self, questions: Iterable[Query]) -> SystemRun:
        """Return only what was found for these questions, in the same words, in their order."""
        same = [q.query_id for q in questions if self.asked.get(q.query_id) == q.text]
        return SystemRun(
            Run({query_id: self.run.rankings[query_id] for query_id in same}, self.run.tag),
            {query_id: self.asked[query_id] for query_id in same},
            {query_id: self.seconds[query_id] for query_id in same},
        )

    def joined(self, other: SystemRun) -> SystemRun:
        """Return both together."""
        return SystemRun(
            Run({**self.run.rankings, **other.run.rankings}, self.run.tag),
            {**self.asked, **other.asked},
            {**self.seconds, **other.seconds},
        )


def check_questions(searchers: Collection[Searcher], questions: Iterable[Query]) -> None:
    """Raise InputError for a question that one of the systems refuses; names it."""
    for query in questions:
        try:
            for searcher in searchers:
                check_query_lengths(searcher.rankers, query.text)
        except InputError as error:
            raise error.at(f"question {query.query_id}") from None


def rank_questions(
    searcher: Searcher,
    questions: Sequence[Query],
    tag: str,
    sources: Mapping[str, str],
    on_question: Callable[[], object] = lambda: None,
) -> SystemRun:
    """Return what `searcher` finds.

    sources: query_id → doc_id of a document that stands for its copies. on_question: called after
    each question.
    """
    searcher.warm_up()
    rankings, seconds = dict[str, Ranking](), dict[str, float]()
    for query in questions:
        started = time.perf_counter()
        literal = searcher.parse(query.text, literal=True)  # as `retrieve` takes it
        hits = searcher.search(literal, RANKED).hits
        seconds[query.query_id] = time.perf_counter() - started
        doc_ids = [_named(hit, sources.get(query.query_id)) for hit in hits]
        # scores that fall: those of documents that were not read may exceed those above them
        rankings[query.query_id] = Ranking.of(doc_ids, range(len(hits), 0, -1))
        on_question()
    return SystemRun(Run(rankings, tag), {q.query_id: q.text for q in questions}, seconds)


def _named(hit: Hit, source: str | None) -> str:
    return source if source in hit.copies else hit.document.doc_id


def pool(runs: Sequence[Run], questions: Sequence[Query]) -> dict[str, list[str]]:
    """Return query_id → the first JUDGED documents of every run, in an order that tells nothing."""
    pooled = {}
    for query in questions:
        rankings = [run.rankings[query.query_id] for run in runs if query.query_id in run.rankings]
        found = {doc_id for ranking in rankings for doc_id in ranking.doc_ids[:JUDGED]}
        pooled[query.query_id] = sorted(found, key=lambda d: _shuffled(query.query_id, d))
    return pooled


def _shuffled(query_id: str, doc_id: str) -> bytes:
    return blake2b(f"{query_id}\0{doc_id}".encode(), digest_size=8).digest()
