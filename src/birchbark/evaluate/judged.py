"""What did the judges say of the documents at the top of a run, and of how many nothing?"""

from __future__ import annotations

from collections import Counter

from birchbark.errors import InputError
from birchbark.records import Qrels, Run


def grades_at(qrels: Qrels, run: Run, depth: int) -> dict[int | None, int]:
    """Grade → documents with it among the first `depth` of each judged query; None: unjudged.

    Unjudged first, then by rising grade; grades of the judgments that no such document has count 0.
    Raises InputError for a depth below 1. The cord paper's table 4.8 and figure 4.7.
    """
    if depth < 1:
        raise InputError("depth is out of range", wanted="1 or more", found=str(depth))
    found: Counter[int | None] = Counter()
    for query_id, grades in qrels.grades.items():
        ranking = run.rankings.get(query_id)
        found.update(grades.get(doc_id) for doc_id in (ranking.doc_ids[:depth] if ranking else ()))
    known = {grade for grades in qrels.grades.values() for grade in grades.values()}
    return {grade: found[grade] for grade in (None, *sorted(known))}
