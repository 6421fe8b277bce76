"""Which documents of a run become training negatives?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from birchbark.errors import InputError
from birchbark.pairs.seeded_sampling import sample
from birchbark.records import Qrels, Run


@dataclass(frozen=True, slots=True)
class RankRange:
    """Ranks from `first` to `last`, counted from 1, both included.

    last: None for the end of the ranking.
    """

    first: int = 1
    last: int | None = None

    def __post_init__(self) -> None:
        if self.first < 1 or (self.last is not None and self.last < self.first):
            raise InputError(
                "ranks are out of range",
                wanted="FIRST-LAST with 1 ≤ FIRST ≤ LAST",
                found=str(self),
            )

    @property
    def count(self) -> int | None:
        """The number of ranks; None for a range without an end."""
        return None if self.last is None else self.last - self.first + 1

    def __str__(self) -> str:
        return f"{self.first}-{'' if self.last is None else self.last}"

    def doc_ids(self, run: Run, qrels: Qrels) -> dict[str, Sequence[str]]:
        """Return the documents at these ranks, best first, for each judged query of the run.

        Raises InputError if the run has no documents for these queries, or none at these ranks.
        """
        rankings = {q: r.doc_ids for q, r in run.rankings.items() if q in qrels.grades}
        deepest = max(map(len, rankings.values()), default=0)
        if not deepest:
            raise InputError(
                "the run ranks nothing for the judged queries",
                found=f"{len(run.rankings)} queries without judgments",
                remedy="check that run and judgments have the same query ids",
            )
        if deepest < self.first:
            raise InputError(
                "the run does not reach these ranks",
                wanted=f"documents at ranks {self}",
                found=f"at most {deepest} documents per query",
                remedy="retrieve with a larger --depth, or choose ranks nearer the top",
            )
        return {q: doc_ids[self.first - 1 : self.last] for q, doc_ids in rankings.items()}


def run_negatives(
    qrels: Qrels, run: Run, ranks: RankRange, count: int, seed: int
) -> dict[str, list[str]]:
    """Sample up to `count` unjudged documents at these ranks for each ranked query of `qrels`."""
    return {
        query_id: sample(
            [d for d in doc_ids if d not in qrels.grades[query_id]], count, seed, query_id
        )
        for query_id, doc_ids in ranks.doc_ids(run, qrels).items()
    }


def ranked_qrels(qrels: Qrels, run: Run, ranks: RankRange) -> Qrels:
    """Return qrels of exactly the documents at these ranks, with grade 0 for unjudged documents.

    Steensland 2021 made training data in this way from ranks 1-40 of BM25.
    """
    return Qrels(
        {
            query_id: {d: qrels.grades[query_id].get(d, 0) for d in doc_ids}
            for query_id, doc_ids in ranks.doc_ids(run, qrels).items()
            if doc_ids
        }
    )
