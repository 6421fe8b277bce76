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
from birchbark.score.duo import DuoScorer
from birchbark.score.remembering import Known, Remembering
from birchbark.score.scorer import Scorer

TOGETHER = 32  # comparisons that are made at once: what a kill costs, and a deadline waits for


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
    """`hits`, best first, by comparisons; of equal ones the first stays first.

    Where time does not suffice for all comparisons, they stay as they were.
    """
    deadline = deadline or Deadline(None)
    if len(hits) < 2:
        return Compared(tuple(hits), (0.0,) * len(hits), Work())
    room = duo.duo.side_room(query)
    whole = duo.scorer.encode([_read(hit) for hit in hits])
    pieces = [piece[:room] for piece in whole]
    lost = [len(piece) - room for piece in whole if len(piece) > room]
    asked = duo.pairwise.asked(len(hits), query)
    p = np.full((len(hits), len(hits)), np.nan)
    scorer = Remembering(duo.scorer, Known())
    for start in range(0, len(asked), TOGETHER):
        if deadline.passed:
            return Compared(tuple(hits), (0.0,) * len(hits), Work(comparisons=start, exact=False))
        some = asked[start : start + TOGETHER]
        joined = [duo.duo.joined(pieces[i], pieces[j]) for i, j in some]
        p[tuple(np.array(some).T)] = scorer.score(query, joined)
    scores = duo.pairwise.scores(p)
    order = np.argsort(-scores, kind="stable").tolist()
    return Compared(
        tuple(replace(hits[place], compared=float(scores[place])) for place in order),
        tuple(scores[order].tolist()),
        Work(comparisons=len(asked), unread_tokens=sum(lost), unread_documents=len(lost)),
    )


def _read(hit: Hit) -> str:
    """What stands for a document: its best segment; all of it where none was scored."""
    return hit.segments[0].segment.text if hit.segments else hit.document.contents
