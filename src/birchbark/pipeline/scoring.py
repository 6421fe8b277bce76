"""How are the segments of documents scored for one query, in batches, before time is up?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from birchbark.pipeline.deadline import Deadline
from birchbark.pipeline.reading import TOGETHER, Reader, Reading
from birchbark.records import Document, Float32s, Ids, Segment
from birchbark.remember.file import shaped
from birchbark.remember.remembering import Remembering, for_one_query

CHARACTERS = 500_000  # of documents scored together, at most: what memory must hold
HURRIED_CHARACTERS = 2_000  # the same under a deadline, so that some are settled when it comes
AROUND = 4  # special tokens around a segment, at most


class Scoring:
    """One query, read by one scorer. Equal segments are scored once."""

    def __init__(self, reader: Reader, query: str) -> None:
        """InputError if the query is too long for the scorer."""
        self._reader, self._query = reader, query
        self._room = reader.scorer.room(query)
        self._around = len(reader.scorer.spans(query)) + AROUND
        self._scorer = for_one_query(reader.scorer)

    @property
    def pairs(self) -> int:
        """Distinct segments that were scored so far."""
        return self._scorer.scored

    def known(self, doc_ids: Sequence[str]) -> list[Float32s | None]:
        """Scores of each document's segments, where vectors are kept of them."""
        return self._reader.scores(self._query, doc_ids)

    def shown(self, doc_ids: Sequence[str]) -> Iterator[tuple[Document, Sequence[Segment]]]:
        """Each document with the segments that were scored."""
        return self._reader.shown(doc_ids, self._room)

    def read(self, doc_ids: Sequence[str], deadline: Deadline) -> list[Reading]:
        """Readings of the first of these documents: as many as should be scored together."""
        left = HURRIED_CHARACTERS if deadline.exists else CHARACTERS
        readings = []
        together = 1 if deadline.exists else TOGETHER
        for reading in self._reader.read(doc_ids, self._room, together):
            readings.append(reading)
            left -= reading.size
            if left <= 0 or deadline.passed:
                break
        return readings

    def all(self, doc_ids: Sequence[str]) -> Iterator[Reading]:
        """A reading of each document, read as it is asked for."""
        return self._reader.read(doc_ids, self._room)

    def score(self, readings: Sequence[Reading], deadline: Deadline) -> list[Float32s] | None:
        """Scores of the segments of each document, or vectors; None where time sufficed for none.

        Where it suffices for some, of the first of them.
        """
        pieces = [piece for reading in readings for piece in reading.pieces]
        scores = score_in_time(self._scorer, self._query, pieces, self._around, deadline)
        ends = np.cumsum([len(reading.pieces) for reading in readings], dtype=np.intp)
        whole = int(np.searchsorted(ends, len(scores), side="right"))
        if readings and not whole:
            return None
        return [own.copy() for own in np.split(scores, ends[:whole])[:whole]]


def score_in_time(
    scorer: Remembering,
    query: str,
    pieces: Sequence[Ids],
    around: int,
    deadline: Deadline,
    *,
    all_or_none: bool = False,
) -> Float32s:
    """Scores of `pieces`, in batches; under a deadline of the first of them, as far as it allows.

    A batch that may not end in time is not begun. Without a deadline the shortest are scored first;
    under one all are in their order, so that what is known in the end is of whole documents.
    around: tokens that an input has beside a piece. all_or_none: nothing is begun, either, when it
    is foreseen that the rest cannot end in time.
    """
    lengths = np.array([len(piece) + around for piece in pieces], np.int64)
    scores = np.empty((len(pieces), *shaped(scorer.width)), np.float32)
    waiting = np.arange(len(pieces)) if deadline.exists else np.argsort(lengths, kind="stable")
    while len(waiting):
        batch = waiting[: deadline.allows(lengths[waiting])]
        in_vain = all_or_none and not deadline.suffices(int(lengths[waiting].sum()))
        if not len(batch) or in_vain:
            return scores[: waiting[0]]
        before = _computed(scorer)
        scores[batch] = scorer.score(query, [pieces[i] for i in batch])
        share = (_computed(scorer) - before) / len(batch)  # what was known says nothing of speed
        deadline.scored(share * int(lengths[batch].sum()))
        waiting = waiting[len(batch) :]
    return scores


def _computed(scorer: Remembering) -> int:
    """How many were scored so far that no store knew."""
    inner = scorer.scorer
    return inner.scored if isinstance(inner, Remembering) else scorer.scored
