"""How are the best documents ranked anew by comparing them, two by two? A stage after the race.

Of each document the segment that counted most is read (monoBERT's best passage), cut to what the
model can read of each of two texts. Nogueira et al. 2019; k1 (k1 − 1) comparisons at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from birchbark.combine.pairwise import Pairwise
from birchbark.errors import InputError
from birchbark.pipeline.answer import Hit, Work
from birchbark.pipeline.deadline import Deadline
from birchbark.pipeline.scoring import AROUND, score_in_time
from birchbark.remember.remembering import for_one_query
from birchbark.score.duo import DuoScorer
from birchbark.score.scorer import Scorer


@dataclass(frozen=True, slots=True)
class Duo:
    """All choices of this stage.

    duo: joins texts. scorer: scores what is joined; the same, or one around it that remembers.
    depth: k1, how many of the best documents are compared. most: comparisons that may be made in
    all; None for any number.
    """

    duo: DuoScorer
    scorer: Scorer
    depth: int = 10
    pairwise: Pairwise = field(default_factory=Pairwise)
    most: int | None = None

    def __post_init__(self) -> None:
        if self.depth < 2:
            raise InputError(
                "fewer than two documents cannot be compared",
                wanted="a depth of 2 or more",
                found=str(self.depth),
            )

    def check_cost(self, candidates: Iterable[int]) -> int:
        """How many comparisons so many candidates of each query need; InputError if too many."""
        counts = [min(self.depth, number) for number in candidates]
        pairs = sum(count * self.pairwise.each(count) for count in counts)
        if self.most is not None and pairs > self.most:
            raise InputError(
                "too many comparisons",
                wanted=f"at most {self.most:,}",
                found=f"{pairs:,}",
                remedy="a smaller depth, or sample:M",
            )
        return pairs


@dataclass(frozen=True, slots=True)
class Compared:
    """Documents in their new order, scores of the comparisons, and what was done for it."""

    hits: tuple[Hit, ...]
    scores: tuple[float, ...]
    work: Work


def compare(
    duo: Duo, query: str, hits: Sequence[Hit], deadline: Deadline | None = None
) -> Compared:
    """Two hits or more, best first, by comparisons; of equal ones the first stays first.

    Where time does not suffice for all comparisons, they stay as they were, without scores.
    """
    deadline = deadline or Deadline(None)
    room = duo.duo.side_room(query)
    whole = duo.scorer.encode([_read(hit) for hit in hits])
    pieces = [piece[:room] for piece in whole]
    lost = sum(len(piece) - len(read) for piece, read in zip(whole, pieces, strict=True))
    asked = duo.pairwise.asked(len(hits), query)
    joined = [duo.duo.joined(pieces[i], pieces[j]) for i, j in asked]
    scorer = for_one_query(duo.scorer)
    around = len(duo.scorer.spans(query)) + AROUND
    found = score_in_time(scorer, query, joined, around, deadline, all_or_none=True)
    if len(found) < len(joined):
        made = scorer.scored + scorer.known
        return Compared(tuple(hits), (), Work(comparisons=made, unread_compared=lost, exact=False))
    p = np.full((len(hits), len(hits)), np.nan)
    p[tuple(np.array(asked).T)] = found
    scores = duo.pairwise.scores(p)
    order = np.argsort(-scores, kind="stable").tolist()
    return Compared(
        tuple(replace(hits[place], compared=float(scores[place])) for place in order),
        tuple(scores[order].tolist()),
        Work(comparisons=len(asked), unread_compared=lost),
    )


def _read(hit: Hit) -> str:
    """What stands for a document: its best segment; all of it where none was scored."""
    return hit.segments[0].segment.text if hit.segments else hit.document.contents
