"""How does a system answer the questions, in which time, and what of it does a person judge?"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from statistics import median

from birchbark.pipeline.answers.answer import Hit
from birchbark.pipeline.searcher import Searcher
from birchbark.records import Query, Ranking, Run

RANKED = 10  # documents of each question
JUDGED = 5  # of these, by a person


def rank_questions(
    searcher: Searcher,
    questions: Sequence[Query],
    tag: str,
    sources: Mapping[str, str],
    on_question: Callable[[], object] = lambda: None,
) -> tuple[Run, float]:
    """Return the run of what `searcher` finds, and the median seconds of a question.

    sources: query_id → doc_id of a document that stands for its copies. on_question: called after
    each question.
    """
    searcher.warm_up()
    rankings, seconds = dict[str, Ranking](), list[float]()
    for query in questions:
        started = time.perf_counter()
        hits = searcher.search(query.text, RANKED).hits
        seconds.append(time.perf_counter() - started)
        doc_ids = [_named(hit, sources.get(query.query_id)) for hit in hits]
        rankings[query.query_id] = Ranking.of(doc_ids, [hit.score for hit in hits])
        on_question()
    return Run(rankings, tag), median(seconds)


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
