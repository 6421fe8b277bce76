"""How are the candidates of one query re-ranked, stage by stage?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from birchbark.deadline import Deadline
from birchbark.pipeline.answers.answer import Hit, SearchStats
from birchbark.pipeline.compare_hits import compare_hits
from birchbark.pipeline.reading.document_reader import RankerReaders
from birchbark.pipeline.reading.topk import TopKScoring
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.records import Ranking
from birchbark.score.token_limits import cut_text


@dataclass(frozen=True, slots=True)
class StageResult:
    """The result of one stage for one query.

    best: the best scored documents. stage: the stage's number, beginning at 1. compared: the hits
    that were compared, best first.
    """

    best: Ranking
    stats: SearchStats
    scoring: TopKScoring
    stage: int
    compared: Sequence[Hit] = ()

    def hits(self) -> list[Hit]:
        """Return all hits of the stage with their evidence, best first."""
        hits = *self.compared, *self.scoring.hits()[len(self.compared) :]
        return [replace(hit, stage=self.stage) for hit in hits]


def run_stage(
    readers: RankerReaders,
    query: str,
    candidates: Ranking,
    top: int,
    deadline: Deadline | None = None,
    on_progress: Callable[[StageResult], object] = lambda result: None,
    stage: int = 1,
) -> StageResult:
    """Find the `top` best candidates, and compare the best of them if the ranker has a duo model.

    Nothing is compared if time did not suffice for scoring. on_progress: called with the result so
    far whenever documents were scored. stage: see StageResult.
    """
    duo = readers.ranker.duo
    scoring = TopKScoring(readers, query, candidates, max(top, duo.depth) if duo else top)

    def result() -> StageResult:
        return StageResult(scoring.best(), scoring.stats, scoring, stage)

    scoring.run(deadline, lambda: on_progress(result()))
    if not duo or not scoring.stats.exact or len(candidates) < 2:
        return result()
    cut, _ = cut_text(readers.ranker.scorer, query, readers.ranker.query_tokens)
    compared, stats = compare_hits(duo, cut, scoring.hits(duo.depth), deadline)
    best = _by_comparison(compared, scoring.best()) if compared else scoring.best()
    return StageResult(best, scoring.stats + stats, scoring, stage, compared)


def run_stages(
    readers: Sequence[RankerReaders],
    query: str,
    candidates: Ranking,
    top: int | None = None,
    deadline: Deadline | None = None,
    on_progress: Callable[[Ranking, list[StageResult]], object] = lambda ranking, results: None,
) -> tuple[Ranking, list[StageResult]]:
    """Return the ranking after the last stage, and the result of each stage.

    Each stage re-ranks the best documents of the stage before it, down to its own depth; documents
    below the depth keep their order below the re-ranked ones. If time does not suffice for a stage,
    its result does not change the ranking, and later stages are skipped.

    top: number of best documents to find; a stage then finds no more documents than the later
    stages read. None to rank all candidates. on_progress: called whenever documents were scored,
    with the ranking before the current stage and all results so far.
    """
    ranking = candidates
    results: list[StageResult] = []
    for number, stage_readers in enumerate(readers, 1):
        later_depths = [later.ranker.depth for later in readers[number:]]
        needed = max(top, *later_depths) if top and later_depths else top
        depth = stage_readers.ranker.depth
        head = ranking.head(depth)

        def report(result: StageResult, before: Ranking = ranking) -> None:
            on_progress(before, [*results, result])

        result = run_stage(stage_readers, query, head, needed or depth, deadline, report, number)
        results.append(result)
        if not result.stats.exact:
            break
        all_scored = needed is None or needed >= len(head)
        rest = ranking.doc_ids[len(result.best) :] if all_scored else ()
        ranking = result.best.followed_by(rest)
        ranking = ranking.head(needed) if needed else ranking
    return ranking, results


def check_query_lengths(rankers: Sequence[Ranker], query: str) -> None:
    """Raise InputError if the query is too long for one of the rankers' models."""
    for ranker in rankers:
        cut, _ = cut_text(ranker.scorer, query, ranker.query_tokens)
        for scorer in ranker.scorers:
            scorer.token_budget(cut)
        if ranker.duo:
            ranker.duo.model.side_token_budget(cut)


def _by_comparison(compared: Sequence[Hit], best: Ranking) -> Ranking:
    """Return `best` with the compared documents first, in the order of their comparisons.

    Equal scores of comparisons are lowered in steps of 1e-6, relative to the score, so that the
    order survives sorting by score.
    """
    scores = np.array([hit.compared for hit in compared], np.float32)
    for i in range(1, len(scores)):
        above = scores[i - 1]
        scores[i] = min(scores[i], above - np.float32(1e-6) * max(1, abs(above)))
    doc_ids = [hit.document.doc_id for hit in compared]
    return Ranking.of(doc_ids, scores).followed_by(best.doc_ids[len(doc_ids) :])
