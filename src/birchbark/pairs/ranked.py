"""Which documents does a run give to train on: negatives drawn from its ranks, or all of them?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from birchbark.errors import InputError
from birchbark.pairs.draw import drawn
from birchbark.records import Qrels, Run


@dataclass(frozen=True, slots=True)
class Ranks:
    """Ranks of a run, from 1, both ends included; without `last` to the end of each ranking."""

    first: int = 1
    last: int | None = None

    def __post_init__(self) -> None:
        if self.first < 1 or (self.last is not None and self.last < self.first):
            raise InputError(
                "ranks are out of range",
                wanted="FIRST-LAST from 1 on, the smaller rank first",
                found=str(self),
            )

    @property
    def count(self) -> int | None:
        """How many ranks these are; None without an end."""
        return None if self.last is None else self.last - self.first + 1

    def __str__(self) -> str:
        return f"{self.first}-{'' if self.last is None else self.last}"

    def documents(self, run: Run, qrels: Qrels) -> dict[str, Sequence[str]]:
        """What `run` has at these ranks for each judged query, best first.

        Raises InputError if it ranks nothing for any of these queries, or nothing so far down.
        """
        rankings = {q: r.doc_ids for q, r in run.rankings.items() if q in qrels.grades}
        deepest = max(map(len, rankings.values()), default=0)
        if not deepest:
            raise InputError(
                "the run ranks nothing for the judged queries",
                found=f"{len(run.rankings)} other queries",
                remedy="do run and judgments belong together?",
            )
        if deepest < self.first:
            raise InputError(
                "the run does not reach these ranks",
                wanted=f"documents at ranks {self}",
                found=f"{deepest} documents at most for a query",
                remedy="retrieve with a larger --depth, or take lower ranks",
            )
        return {q: doc_ids[self.first - 1 : self.last] for q, doc_ids in rankings.items()}


def from_ranks(qrels: Qrels, run: Run, ranks: Ranks, count: int, seed: int) -> dict[str, list[str]]:
    """For each ranked query of `qrels` up to `count` unjudged documents of these ranks, drawn."""
    return {
        query_id: drawn(
            [d for d in doc_ids if d not in qrels.grades[query_id]], count, seed, query_id
        )
        for query_id, doc_ids in ranks.documents(run, qrels).items()
    }


def all_ranked(qrels: Qrels, run: Run, ranks: Ranks) -> Qrels:
    """Grades of all documents at these ranks, and of no others; 0 for those nobody judged.

    So Steensland 2021 (the passages paper) made training data: ranks 1-40 of BM25.
    """
    return Qrels(
        {
            query_id: {d: qrels.grades[query_id].get(d, 0) for d in doc_ids}
            for query_id, doc_ids in ranks.documents(run, qrels).items()
            if doc_ids
        }
    )
