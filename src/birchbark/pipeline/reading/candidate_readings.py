"""What does the main scorer read of one query's candidates, and what has it read so far?"""

from __future__ import annotations

from collections.abc import Sequence

from birchbark.deadline import Deadline
from birchbark.pipeline.reading.document_reading import Reading
from birchbark.pipeline.reading.score_segments import SegmentScoring
from birchbark.pipeline.reading.select_segments import SegmentChoice
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.records import Document, Segment


class Readings:
    """The readings of one query's candidates, by their positions in the ranking before.

    Attributes:
        by_position: The readings that were opened.
        left_out: Whether the plan asks for something that will not be read, since it would take
            longer than a search may.
    """

    def __init__(
        self,
        ranker: Ranker,
        doc_ids: Sequence[str],
        scoring: SegmentScoring,
        choice: SegmentChoice,
        *,
        chooses: bool,
        in_rounds: bool,
    ) -> None:
        """Open nothing yet.

        choice: chooses segments. chooses: whether that is possible; if not, documents are read from
        beginning to end. in_rounds: whether segments are chosen under a deadline even if the plan
        asks for all of them.
        """
        self.by_position: dict[int, Reading] = {}
        self.left_out = False
        self._ranker, self._doc_ids = ranker, doc_ids
        self._scoring, self._choice = scoring, choice
        self._can_choose, self._in_rounds = chooses, in_rounds

    def chooses(self, deadline: Deadline) -> bool:
        """Return whether segments are chosen, instead of reading documents to the end."""
        in_rounds = deadline.exists and self._in_rounds
        return self._can_choose and (self._ranker.plan.segments is not None or in_rounds)

    def count(self, position: int) -> int:
        """Return how many segments have been read of a document."""
        reading = self.by_position.get(position)
        return reading.read if reading else 0

    def too_long(self, positions: Sequence[int]) -> set[int]:
        """Return the documents that are not begun, and too long to be read before a deadline."""
        new = [i for i in positions if i not in self.by_position]
        long = set(new).difference(self._choice.without_long(new))
        self.left_out = self.left_out or bool(long)
        return long

    def open(self, positions: Sequence[int], deadline: Deadline) -> list[int]:
        """Prepare the readings of as many of the first documents as should be read together.

        Returns the positions that can be read.
        """
        missing = [i for i in positions if i not in self.by_position]
        plan = self._ranker.plan
        if not missing:
            return list(positions)
        if self.chooses(deadline):
            for position, one in self._choice.to_read(missing, plan.segments, deadline):
                self.by_position[position] = Reading(one.encoded, one.order, one.segments)
                if plan.segments is None and self._choice.unsplit(position):
                    self.left_out = True
        else:
            doc_ids = [self._doc_ids[i] for i in missing]
            batch = self._scoring.read_batch(doc_ids, deadline)
            for position, encoded in zip(missing, batch, strict=False):
                order = range(len(encoded.token_ids))
                width = self._ranker.scorer.width
                self._choice.count(position, len(order))
                self.by_position[position] = Reading(encoded, order, width=width)
        return [i for i in positions if i in self.by_position]

    def read(
        self, positions: Sequence[int], count: int | None, deadline: Deadline
    ) -> tuple[list[int], bool]:
        """Read the next `count` segments of each document, all if None.

        Returns the positions that have been read further, or had nothing to read, and whether these
        are all: false if time does not suffice, or there is nothing to read.
        """
        wanted = [self.by_position[i].next(count) for i in positions]
        scored = self._scoring.score_encoded([ids for of_one in wanted for ids in of_one], deadline)
        read, begin = [], 0
        for position, of_one in zip(positions, wanted, strict=True):
            scores = scored[begin : begin + len(of_one)]
            if len(scores) or not of_one:
                self.by_position[position].add(scores)
                read.append(position)
            begin += len(of_one)
        return read, bool(positions) and len(scored) == begin

    def segments(self, positions: Sequence[int]) -> dict[int, tuple[Document, Sequence[Segment]]]:
        """Map positions to documents with the segments that have been read.

        The segments are in the order of their scores.
        """
        readings = {p: reading for p in positions if (reading := self.by_position.get(p))}
        split = {p: r.segments for p, r in readings.items() if r.segments is not None}
        others = [position for position in positions if position not in split]
        read = self._scoring.segments([self._doc_ids[position] for position in others])
        found = dict(zip(others, read, strict=True))
        documents = self._scoring.documents([self._doc_ids[position] for position in split])
        found |= zip(split, zip(documents, split.values(), strict=True), strict=True)
        for position, reading in readings.items():
            if not reading.complete:
                document, segments = found[position]
                found[position] = document, [segments[i] for i in reading.known]
        return found
