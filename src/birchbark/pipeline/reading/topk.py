"""How are the best candidates found without reading candidates that cannot be among them?

Each document has an upper bound: its weighted first-stage score, the evidence by the embedding, and
the highest evidence that its segments could have with scores in [0, 1]. Documents are read, those
with the highest bounds first, until no other document can be among the `top` best. The result
has the same documents, order and scores as if everything had been read that the ranker's reading
plan asks for.

The loop is here: schedule.py chooses the next step, steps.py carries it out, and what it finds is
recorded in the table of candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from birchbark.combine.interpolate import Interpolation
from birchbark.deadline import Deadline
from birchbark.pipeline.answers.answer import Hit, SearchStats
from birchbark.pipeline.reading.candidates import Candidates
from birchbark.pipeline.reading.document_reader import RankerReaders
from birchbark.pipeline.reading.schedule import Progress, Rules, complete, next_step
from birchbark.pipeline.reading.steps import Steps
from birchbark.records import Ranking
from birchbark.score.token_limits import cut_text


class TopKScoring:
    """Scores the candidates of one query until the best are certain."""

    def __init__(
        self,
        readers: RankerReaders,
        query: str,
        candidates: Ranking,
        top: int,
        *,
        in_rounds: bool = True,
    ) -> None:
        """top: the number of best documents to find; all are scored if it is len(candidates).

        in_rounds: whether documents are read in rounds under a deadline. Raises InputError if the
        query is too long for one of the ranker's scorers.
        """
        self._ranker = readers.ranker
        query, self._cut_tokens = cut_text(self._ranker.scorer, query, self._ranker.query_tokens)
        self._top = min(top, len(candidates))
        self._steps = Steps(readers, query, in_rounds=in_rounds)
        self._table, self._progress = Candidates(self._ranker, candidates), Progress()
        self._exact = False

    def run(
        self, deadline: Deadline | None = None, on_progress: Callable[[], object] = lambda: None
    ) -> None:
        """Read documents until the `top` best are certain or the time is up.

        on_progress: called whenever the main scorer has read documents, and when the evidence of
        the embedding is complete.
        """
        deadline = deadline or Deadline(None)
        table, progress = self._table, self._progress
        rules = Rules(self._ranker, self._top, self._steps.rounds(deadline))
        while step := next_step(table, progress, rules, passed=deadline.passed):
            if self._steps.carry_out(step, table, progress, deadline):
                on_progress()
        self._exact = complete(table, progress)

    def best(self) -> Ranking:
        """Return the `top` best documents, with their scores.

        Documents that the reading plan leaves out follow the others with lower scores. Without
        enough time, only documents of which something was read are returned.
        """
        best = self._table.best(self._top)
        if not self._exact or len(best) == self._top:
            return best
        scored, doc_ids = set(best.doc_ids), self._table.doc_ids
        rest = [doc_ids[i] for i in self._table.by_prior() if doc_ids[i] not in scored]
        return best.followed_by(rest[: self._top - len(best)])

    def hits(self, max_hits: int | None = None) -> list[Hit]:
        """Return the best documents with their evidence.

        Documents of which nothing was read follow, in the order of first stage and embedding.
        max_hits: the maximum number of hits; `top` by default.
        """
        table, count = self._table, self._top if max_hits is None else min(max_hits, self._top)
        scored = table.positions(table.best(count).doc_ids)
        known = set(scored)
        unread = [i for i in table.by_prior() if i not in known][: count - len(scored)]
        segments = self._steps.segments(table, scored)
        hits = [table.hit(position, *segments[position]) for position in scored]
        return [*hits, *map(table.unread_hit, unread, *self._steps.unread(table, unread))]

    def segment_scores(self, doc_id: str) -> list[float]:
        """Return the scores of the segments that were read of a scored document, best first."""
        (position,) = self._table.positions([doc_id])
        return self._table.known_scores(position)

    @property
    def stats(self) -> SearchStats:
        """How much has been scored so far."""
        table = self._table
        readings = [reading for i in table.opened() if (reading := table.reading(i)).read]
        truncated = [reading.truncated for reading in readings if reading.truncated]
        pairs, embedded = self._steps.pairs
        segments, unsplit = table.totals
        return SearchStats(
            candidates=len(table),
            scored=table.scored,
            by_vectors=self._progress.by_vectors,
            pairs=pairs,
            embedded=embedded,
            segments=segments,
            unsplit_characters=unsplit,
            cut_query_tokens=self._cut_tokens,
            truncated_tokens=sum(truncated),
            truncated_documents=len(truncated),
            exact=self._exact,
        )


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
