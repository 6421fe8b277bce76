"""Which grades do a run's top documents have, and how many are unjudged?"""

from __future__ import annotations

from collections import Counter

from birchbark.errors import require_at_least
from birchbark.records import Qrels, Run


def grades_at(qrels: Qrels, run: Run, depth: int) -> dict[int | None, int]:
    """Count the grades of the top `depth` documents for all judged queries (cord paper, table 4.8).

    Returns grade → number of documents. The first key, None, counts unjudged documents; grades
    follow in ascending order. Every grade in `qrels` has an entry, even if its count is 0. Raises
    InputError for a depth below 1.
    """
    require_at_least("depth", depth, 1)
    counts: Counter[int | None] = Counter()
    for query_id, grades in qrels.grades.items():
        ranking = run.rankings.get(query_id)
        counts.update(grades.get(doc_id) for doc_id in (ranking.doc_ids[:depth] if ranking else ()))
    known = {grade for grades in qrels.grades.values() for grade in grades.values()}
    return {grade: counts[grade] for grade in (None, *sorted(known))}
