"""What is read next, given the table of candidates, the ranker's plan and whether time is up?

next_step is a pure function of the table and the progress: it reads nothing and changes nothing.
The steps of a search are

1. VECTORS: the query is compared with the embedding's stored vectors, and with static vectors of
   the other documents;
2. EMBED: the embedding reads documents without stored vectors, of those with static ones the most
   promising;
3. PAGE: in between, if documents are read in rounds, the main scorer reads a segment of each of
   the first documents, so that the first page has evidence at once;
4. PLAN: the reading plan is applied: it says which documents the main scorer may read;
5. READ: the main scorer reads documents that can still be among the best, until none is left;
6. RESCORE: a more precise scorer reads the best segments of the best documents; as lower scores may
   admit other documents, 5 follows again, once.

Without a deadline a document is read to its end before the next one. Under a deadline documents are
read in rounds, if what is read of a document counts before it is complete: first the best segment
of each of the first ones, then that of the next ones, then the second best segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from birchbark.pipeline.reading.candidates import Candidates
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.records import best_first

FIRST_PAGE = 10  # documents of which something is read before the plan is known
LOOKAHEAD = 2  # documents scored together, although the first may make the second unnecessary
LOOKAHEAD_SEGMENTS = 60  # the same where the plan reads few segments of each: in larger batches


class Action(Enum):
    """What a step does; see above. STOP: the time is up, although something is left to read."""

    VECTORS = auto()
    EMBED = auto()
    PAGE = auto()
    PLAN = auto()
    READ = auto()
    RESCORE = auto()
    STOP = auto()


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what is done with which documents, in order of preference.

    count: how many segments of each document are read; None for all.
    """

    action: Action
    positions: Sequence[int] = ()
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for a whole search.

    top: the number of best documents to find. rounds: whether documents are read in rounds.
    """

    ranker: Ranker
    top: int
    rounds: bool

    @property
    def k(self) -> int:
        """The number of documents that must be certain: more than `top` if some are rescored."""
        return max(self.top, self.ranker.rescore_depth) if self.ranker.precise else self.top


@dataclass(slots=True)
class Progress:
    """How far a search has come; the loop owns it, and the steps record it.

    vectors_compared, page_read, planned, rescored: whether these steps are done. by_vectors: how
    many documents stored vectors have scored. missing: the documents without stored vectors that
    the embedding is to read and has not read yet. without_vectors: how many it is to read in all.
    out_of_time:
    the action for which time did not suffice; the actions after it are tried all the same, except
    after READ and RESCORE, which end the search. left_out: whether the plan asks for something that
    takes longer than a search may.
    """

    vectors_compared: bool = False
    by_vectors: int = 0
    missing: list[int] = field(default_factory=list)
    without_vectors: int = 0
    page_read: bool = False
    planned: bool = False
    rescored: bool = False
    out_of_time: set[Action] = field(default_factory=set)
    left_out: bool = False

    @property
    def ended(self) -> bool:
        """Whether nothing more is read for lack of time."""
        return bool(self.out_of_time & {Action.READ, Action.RESCORE})


def next_step(table: Candidates, progress: Progress, rules: Rules, *, passed: bool) -> Step | None:
    """Return the next step of a search; None at its end. passed: whether the deadline is over."""
    if progress.ended:
        return None
    if not progress.vectors_compared:
        return Step(Action.VECTORS)
    if not progress.planned:
        return _before_plan(table, progress, rules) or Step(Action.PLAN)
    if contenders := table.contenders(rules.k):
        return Step(Action.STOP) if passed else _read(table, contenders, rules)
    if rules.ranker.precise and not progress.rescored and complete(table, progress):
        best = table.best(rules.ranker.rescore_depth)
        return Step(Action.RESCORE, table.positions(best.doc_ids))
    return None


def complete(table: Candidates, progress: Progress) -> bool:
    """Whether everything that was to be read before this step was read."""
    return table.split_in_time and not (progress.out_of_time or progress.left_out)


def reading_order(table: Candidates, *, embedding: bool) -> list[int]:
    """Return the positions of all candidates in the order in which the plan admits them.

    They are ordered by first stage and embedding, but the j best by the embedding alone come after
    the 2 j best at the latest: the first stage gives its best candidate full marks, even if that
    has only the commonest of the query's words. embedding: whether its evidence counts.
    """
    order = table.by_prior()
    if not embedding:
        return order
    mixed: list[int] = []
    for place, position in enumerate(best_first(table.embedding)):
        mixed += [*order[2 * place : 2 * place + 2], position]
    return list(dict.fromkeys(mixed))


def _before_plan(table: Candidates, progress: Progress, rules: Rules) -> Step | None:
    """Return what the embedding reads next, or the first page; None if both are done."""
    if not progress.missing or Action.EMBED in progress.out_of_time:
        return None
    if not rules.rounds or progress.page_read:
        return Step(Action.EMBED, tuple(progress.missing))
    later = max(0, progress.without_vectors - FIRST_PAGE)
    if len(progress.missing) > later:
        return Step(Action.EMBED, tuple(progress.missing[: len(progress.missing) - later]))
    missing = set(progress.missing)
    known = [position for position in table.by_prior() if position not in missing]
    return Step(Action.PAGE, known[:FIRST_PAGE], 1)


def _read(table: Candidates, contenders: Sequence[int], rules: Rules) -> Step:
    """Return which of the contenders are read next, and how far."""
    if rules.rounds:
        done = [table.count_read(position) for position in contenders]
        least = min(done)
        ahead = [i for i, count in zip(contenders, done, strict=True) if count == least]
        return Step(Action.READ, ahead[: max(LOOKAHEAD, rules.top)], 1)
    segments = rules.ranker.plan.segments or LOOKAHEAD_SEGMENTS
    lookahead = max(LOOKAHEAD, LOOKAHEAD_SEGMENTS // segments)
    return Step(Action.READ, contenders[: max(lookahead, rules.top - len(table.opened()))])
