"""How are documents scored for a query without a first stage?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from birchbark.combine.interpolate import Interpolation
from birchbark.deadline import Deadline
from birchbark.pipeline.reading.exact_topk import TopKScoring
from birchbark.pipeline.reading.ranker_readers import RankerReaders
from birchbark.records import Ranking


def score_documents(
    readers: RankerReaders,
    query: str,
    doc_ids: Sequence[str],
    deadline: Deadline | None = None,
) -> TopKScoring:
    """Score all documents by their evidence alone.

    The ranker's depth does not count, nor how many documents or pairs its reading plan has.
    First-stage scores do not count, and no documents are compared. Return the finished scoring,
    with the methods `best` and `hits`; its stats are not exact if time did not suffice for all
    documents. Raises InputError for an unknown document and if the query is too long for a scorer.
    """
    plan = replace(readers.ranker.plan, documents=None, pairs=None)
    ranker = replace(readers.ranker, interpolation=Interpolation(0.0), plan=plan, duo=None)
    first_stage = Ranking.of(doc_ids, [0.0] * len(doc_ids))
    scoring = TopKScoring(
        readers.with_ranker(ranker), query, first_stage, len(doc_ids), in_rounds=False
    )
    scoring.run(deadline)
    return scoring
