"""What does one stage make of a query's candidates? A race, then comparisons of the best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from birchbark.pipeline.answer import Hit, Work
from birchbark.pipeline.deadline import Deadline
from birchbark.pipeline.duo import Compared, compare
from birchbark.pipeline.race import Race, Readers
from birchbark.pipeline.ranker import Ranker
from birchbark.records import Query, Ranking


@dataclass(frozen=True, slots=True)
class Stage:
    """One query after a stage. best: the settled ones, in their new order. work: what it took."""

    best: Ranking
    work: Work
    race: Race
    compared: Compared | None = None

    @classmethod
    def run(
        cls,
        readers: Readers,
        query: Query,
        candidates: Ranking,
        top: int,
        deadline: Deadline | None = None,
        watch: Callable[[Stage], object] = lambda stage: None,
    ) -> Stage:
        """Find the `top` best of `candidates`, all of which may be read, or more to be compared.

        Nothing is compared where time did not suffice for the race. watch: called with what is
        known, whenever the race has settled some.
        """
        duo = readers.ranker.duo
        reach = max(top, duo.depth) if duo else top
        race = Race(readers, query, candidates, reach)
        race.run(deadline, lambda: watch(cls(race.best(), race.work, race)))
        if not duo or not race.work.exact or len(candidates) < 2:
            return cls(race.best(), race.work, race)
        compared = compare(duo, query.text, race.hits(duo.depth), deadline)
        work = race.work + compared.work
        if not compared.work.exact:
            return cls(race.best(), work, race)
        return cls(_ranked(compared, race.best()), work, race, compared)

    def hits(self) -> list[Hit]:
        """All that the race was for, in their order, with their evidence."""
        hits = self.race.hits()
        return [*self.compared.hits, *hits[len(self.compared.hits) :]] if self.compared else hits


def run_stages(
    readers: Sequence[Readers],
    query: Query,
    candidates: Ranking,
    top: int | None = None,
    deadline: Deadline | None = None,
    watch: Callable[[Ranking, list[Stage]], object] = lambda ranking, stages: None,
) -> tuple[Ranking, list[Stage]]:
    """The ranking after all stages, and what each made of its candidates.

    Each stage re-ranks the first of what the one before made, down to its depth; those below keep
    their order, under the others. top: only the best so many; the stages then look for no more than
    the later ones will read. Where time does not suffice the later stages are left out. watch:
    called with the same, as far as it is known, whenever documents were settled.
    """
    ranking = candidates
    done: list[Stage] = []
    for place, own in enumerate(readers):
        later = [after.ranker.depth for after in readers[place + 1 :]]
        wanted = max(top, *later) if top and later else top
        depth = own.ranker.depth
        head = ranking.head(depth)

        def seen(stage: Stage, before: Ranking = ranking) -> None:
            watch(before, [*done, stage])

        stage = Stage.run(own, query, head, wanted or depth, deadline, seen)
        done.append(stage)
        if not stage.work.exact:
            break
        all_settled = wanted is None or wanted >= len(head)
        ranking = with_rest(stage.best, ranking) if all_settled else stage.best
        ranking = ranking.head(wanted) if wanted else ranking
    return ranking, done


def check_stages(rankers: Sequence[Ranker], query: str) -> None:
    """Raise InputError for a query that leaves no room for text in one of the models."""
    for ranker in rankers:
        for scorer in (ranker.scorer, ranker.embedding, ranker.precise):
            if scorer:
                scorer.room(query)
        if ranker.duo:
            ranker.duo.duo.side_room(query)


def _ranked(compared: Compared, best: Ranking) -> Ranking:
    """`best` with its first documents in the order of comparisons.

    Equal scores of comparisons are told apart by a millionth, so that the order is kept.
    """
    scores = np.array(compared.scores, np.float32)
    for place in range(1, len(scores)):
        above = scores[place - 1]
        scores[place] = min(scores[place], above - np.float32(1e-6) * max(1, abs(above)))
    doc_ids = [hit.document.doc_id for hit in compared.hits]
    return with_rest(Ranking.of(doc_ids, scores), best)


def with_rest(head: Ranking, candidates: Ranking) -> Ranking:
    """`head` with the candidates below it in their order; their scores are moved under its own."""
    rest = candidates.doc_ids[len(head) :]
    if not rest:
        return head
    lowest = float(head.scores.min())
    below = lowest - np.arange(1, len(rest) + 1) * max(1e-3, abs(lowest) * 1e-3)
    return Ranking.of([*head.doc_ids, *rest], [*head.scores.tolist(), *below.tolist()])
