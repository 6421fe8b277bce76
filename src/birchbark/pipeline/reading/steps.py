"""How is each step of a search carried out, and what of it is recorded in the table?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from birchbark.combine.aggregate import bounds_from_below
from birchbark.deadline import Deadline
from birchbark.pipeline.answers.answer import Snippet
from birchbark.pipeline.reading.candidates import Candidates
from birchbark.pipeline.reading.choose import SPLITTING_SHARE, SegmentChoice
from birchbark.pipeline.reading.document_reader import RankerReaders
from birchbark.pipeline.reading.query_scoring import DocumentReading, QueryScoring
from birchbark.pipeline.reading.schedule import Action, Progress, Step, reading_order
from birchbark.records import Document, Float32s, Segment, best_first
from birchbark.segment.truncate import Limit

RESCORED_SEGMENTS = 5  # per document, at most
EMBEDDING_SHARE = 0.5  # of the remaining time, before and after the first page, to embed documents
DEADLINE_DOCUMENTS = 10  # embedded at once under a deadline


class Steps:
    """Reads documents for one query.

    What it finds is recorded in a table of candidates, and how far it has come in its progress.
    """

    def __init__(self, readers: RankerReaders, query: str, *, in_rounds: bool) -> None:
        """in_rounds: whether documents may be read in rounds under a deadline.

        Raises InputError if the query is too long for one of the ranker's scorers.
        """
        ranker = self._ranker = readers.ranker
        self._main = QueryScoring(readers.main, query)
        # the embedding with its stored vectors, and the same or a faster copy that reads documents
        self._vectors, self._embedding = (
            QueryScoring(reader, query) if reader else None
            for reader in (readers.embedding, readers.fast_embedding)
        )
        self._static = QueryScoring(readers.static, query) if readers.static else None
        self._precise = QueryScoring(readers.precise, query) if readers.precise else None
        self._choice = SegmentChoice(
            query,
            readers.terms,
            self._main,
            self._vectors,
            self._static,
        )
        self._in_rounds = in_rounds
        # whether segments can be chosen; if not, documents are read from beginning to end
        self._can_choose = ranker.scorer.width == 1 and ranker.limit == Limit()
        # how many segments the embedding reads of a document without vectors; None for all
        self._embedded_segments = ranker.plan.embedded if self._can_choose else None
        self._counts_in_part = ranker.scorer.width == 1 and bounds_from_below(ranker.aggregation)
        self._embedding_time: Deadline | None = None  # until when the embedding may read

    def rounds(self, deadline: Deadline) -> bool:
        """Return whether documents are read in rounds."""
        return deadline.exists and self._in_rounds and self._can_choose and self._counts_in_part

    @property
    def pairs(self) -> tuple[int, int]:
        """Number of segments that were read in all, and by the embedding."""
        embedded = self._embedding.pairs if self._embedding else 0
        return embedded + sum(x.pairs for x in (self._main, self._precise) if x), embedded

    def carry_out(
        self, step: Step, table: Candidates, progress: Progress, deadline: Deadline
    ) -> bool:
        """Carry out a step; return whether an answer so far is worth showing after it.

        It is when the main scorer has read all that it was to read, and when the embedding's
        evidence is complete, which is known with the plan.
        """
        match step.action:
            case Action.VECTORS:
                self._compare_stored_vectors(table, progress, deadline)
            case Action.EMBED:
                self._embedding_time = self._embedding_time or deadline.part(EMBEDDING_SHARE)
                self._embed(table, progress, step.positions, self._embedding_time)
            case Action.PAGE:
                self._embedding_time, progress.page_read = None, True
                opened = self._open(table, progress, step.positions, deadline)
                self._score_next(table, opened, step.count, deadline)
                return True
            case Action.PLAN:
                self._apply_plan(table, progress, deadline)
                return self._ranker.embedding is not None
            case Action.READ:
                return self._read(table, progress, step, deadline)
            case Action.RESCORE:
                self._rescore(table, progress, step.positions, deadline)
            case Action.STOP:
                progress.out_of_time.add(Action.READ)
        return False

    def unread(
        self, table: Candidates, positions: Sequence[int]
    ) -> tuple[list[Document], list[Snippet | None]]:
        """Return documents, and the best segment of each by the embedding if it has read any."""
        documents = self._main.reader.documents([table.doc_ids[i] for i in positions])
        return documents, self._choice.snippets(table, positions)

    def segments(
        self, table: Candidates, positions: Sequence[int]
    ) -> dict[int, tuple[Document, Sequence[Segment]]]:
        """Map positions to documents with the segments read, in the order of their scores."""
        kept = {i: known for i in positions if (known := table.reading(i).segments) is not None}
        others = [i for i in positions if i not in kept]
        split = self._main.segments([table.doc_ids[i] for i in others])
        found = dict(zip(others, split, strict=True))
        documents = self._main.reader.documents([table.doc_ids[i] for i in kept])
        found |= zip(kept, zip(documents, kept.values(), strict=True), strict=True)
        for position, (document, segments) in list(found.items()):
            if not (reading := table.reading(position)).complete:
                found[position] = document, [segments[i] for i in reading.known]
        return found

    # The embedding

    def _compare_stored_vectors(
        self, table: Candidates, progress: Progress, deadline: Deadline
    ) -> None:
        """Compare the query with the embedding's stored vectors, and list documents without."""
        progress.vectors_compared = True
        if not self._vectors:
            return
        missing = list[int]()
        for position, scores in enumerate(self._vectors.vector_scores(table.doc_ids)):
            if scores is None:
                missing.append(position)
            else:
                progress.by_vectors += 1
                table.add_embedding_of_all(position, scores)
        missing = self._compare_static_vectors(table, missing, known=progress.by_vectors)
        if deadline.exists and self._embedded_segments is None:
            short = self._choice.without_long(table, missing)
            progress.left_out = len(short) < len(missing)
            missing = short
        progress.missing, progress.without_vectors = missing, len(missing)

    def _compare_static_vectors(
        self, table: Candidates, missing: list[int], *, known: int
    ) -> list[int]:
        """Return the documents that the embedding reads, the most promising first.

        missing: those without its vectors. known: how many others have some. Evidence by static
        vectors counts for the others; what has neither is assumed (`assume_embedding`).
        """
        if not self._static or not missing:
            static: list[Float32s | None] = [None] * len(missing)
        else:
            static = self._static.vector_scores([table.doc_ids[i] for i in missing])
        unknown = []
        for position, scores in zip(missing, static, strict=True):
            if scores is None:
                unknown.append(position)
            else:
                table.add_embedding_of_all(position, scores, static=True)
        if unknown and (known or len(unknown) < len(missing)):
            table.assume_embedding(unknown)
        if len(unknown) == len(missing):
            return missing
        wanted = set(missing)
        promising = [i for i in reading_order(table, embedding=True) if i in wanted]
        few = set(promising[: self._ranker.plan.embedded_documents]).union(unknown)
        return [i for i in promising if i in few]

    def _embed(
        self, table: Candidates, progress: Progress, positions: Sequence[int], deadline: Deadline
    ) -> None:
        """Have the embedding read as many of the first documents as go together."""
        if self._embedded_segments is None:
            read = self._embed_whole(table, positions, deadline)
        else:
            read = self._embed_chosen(table, positions, self._embedded_segments, deadline)
        if progress.by_vectors or table.has_static:
            for position, scores in zip(positions, read, strict=False):
                table.complete_embedding(position, len(scores))
        del progress.missing[: len(read)]
        if not read:
            progress.out_of_time.add(Action.EMBED)

    def _embed_whole(
        self, table: Candidates, positions: Sequence[int], deadline: Deadline
    ) -> list[Float32s]:
        """Have the embedding read all segments of the first documents; return their scores."""
        assert self._embedding
        batch = self._embedding.read_batch([table.doc_ids[i] for i in positions], deadline)
        read = self._embedding.score([document.token_ids for document in batch], deadline)
        for position, scores in zip(positions, read, strict=False):
            table.add_embedding_of_all(position, scores)
        return read

    def _embed_chosen(
        self, table: Candidates, positions: Sequence[int], count: int, deadline: Deadline
    ) -> list[Float32s]:
        """Have the embedding read some segments of the first documents; return their scores."""
        assert self._embedding
        ahead = positions[:DEADLINE_DOCUMENTS] if deadline.exists else positions
        later = self._ranker.plan.segments or 0
        chosen = self._choice.to_embed(table, ahead, count, later, deadline)
        read = self._embedding.score([one.token_ids for one in chosen], deadline)
        for position, one, scores in zip(positions, chosen, read, strict=False):
            table.rank_chosen(position, one.chosen, scores)
            table.add_embedding(position, scores)
        return read

    # The plan

    def _apply_plan(self, table: Candidates, progress: Progress, deadline: Deadline) -> None:
        """Set which documents may be read; what was read of them before counts."""
        plan = self._ranker.plan
        by_embedding = bool(self._ranker.embedding_share)
        planned = reading_order(table, embedding=by_embedding)[: plan.documents]
        if plan.pairs is not None:
            enough = deadline.part(SPLITTING_SHARE)
            pairs, segments = plan.pairs, plan.segments
            within, in_time = self._choice.within(table, planned, pairs, segments, enough)
            planned = within or planned[:1]
            if not in_time:
                progress.out_of_time.add(Action.PLAN)
        begun, admitted = table.opened(), set(planned)
        out_of_time = progress.missing or Action.PLAN in progress.out_of_time
        table.admit([*planned, *begun] if out_of_time else planned)
        for position in begun:
            if table.readable[position] and table.count_read(position):
                done = table.reading(position).complete
                table.set_score(position, final=done or position not in admitted)
        for position, scores in enumerate(self._main.vector_scores(table.doc_ids)):
            if scores is not None and table.readable[position]:
                progress.by_vectors += 1
                table.readings[position] = DocumentReading.of_vectors(scores)
                table.record_split(position, len(scores))
                table.set_score(position)
        progress.planned = True

    # The main scorer

    def _read(self, table: Candidates, progress: Progress, step: Step, deadline: Deadline) -> bool:
        """Read documents further; true if all that was to be read was scored in time."""
        positions = list(step.positions)
        if deadline.exists and not self._chooses(deadline):
            new = [i for i in positions if table.readings[i] is None]
            long = set(new).difference(self._choice.without_long(table, new))
            progress.left_out |= bool(long)
            table.readable[list(long)] = False
            positions = [i for i in positions if i not in long]
            if not positions:
                return False
        opened = self._open(table, progress, positions, deadline)
        if table.tighten(opened) and step.count is None and not deadline.passed:
            return False  # another document may have the highest bound now
        in_time = self._score_next(table, opened, step.count, deadline)
        if not in_time:
            progress.out_of_time.add(Action.READ)
        return in_time

    def _chooses(self, deadline: Deadline) -> bool:
        """Return whether segments are chosen: if rounds are allowed, or the plan limits them."""
        in_rounds = deadline.exists and self._in_rounds
        return self._can_choose and (self._ranker.plan.segments is not None or in_rounds)

    def _open(
        self, table: Candidates, progress: Progress, positions: Sequence[int], deadline: Deadline
    ) -> list[int]:
        """Return those that can be read, as many of the first as should be read together."""
        plan = self._ranker.plan
        missing = [i for i in positions if table.readings[i] is None]
        if missing and self._chooses(deadline):
            for position, one in self._choice.to_read(table, missing, plan.segments, deadline):
                table.readings[position] = DocumentReading(one.token_ids, one.order, one.segments)
                if plan.segments is None and table.unsplit[position]:
                    progress.left_out = True
        elif missing:
            batch = self._main.read_batch([table.doc_ids[i] for i in missing], deadline)
            width = self._ranker.scorer.width
            for position, encoded in zip(missing, batch, strict=False):
                table.record_split(position, len(encoded.token_ids))
                table.readings[position] = DocumentReading.of_whole(encoded, width)
        return [i for i in positions if table.readings[i] is not None]

    def _score_next(
        self, table: Candidates, positions: Sequence[int], count: int | None, deadline: Deadline
    ) -> bool:
        """Score the next segments, all if count is None; false if out of time or none given."""
        wanted = [table.reading(i).next(count) for i in positions]
        token_ids = [ids for of_one in wanted for ids in of_one]
        scored, begin = self._main.score_encoded(token_ids, deadline), 0
        for position, of_one in zip(positions, wanted, strict=True):
            scores, begin = scored[begin : begin + len(of_one)], begin + len(of_one)
            if len(scores) or not of_one:
                reading = table.reading(position)
                reading.add(scores)
                if reading.complete or self._counts_in_part:
                    table.set_score(position, final=reading.complete)
        return bool(positions) and len(scored) == begin

    def _rescore(
        self, table: Candidates, progress: Progress, positions: Sequence[int], deadline: Deadline
    ) -> None:
        """Score the segments again that contribute most to the best documents."""
        assert self._precise
        progress.rescored = True
        documents, selected = [], []
        for position in positions:
            contributions = table.contributions(position)  # (segments,)
            top = np.array(best_first(contributions, RESCORED_SEGMENTS), np.intp)
            selected.append(top[contributions[top] > 0])
            token_ids = table.reading(position).token_ids
            if not token_ids:
                (encoded,) = self._main.read([table.doc_ids[position]])
                token_ids = encoded.token_ids
            documents.append([token_ids[i] for i in selected[-1]])
        rescored = self._precise.score(documents, deadline)
        if len(rescored) < len(documents):
            progress.out_of_time.add(Action.RESCORE)
            return
        for position, segments, scores in zip(positions, selected, rescored, strict=True):
            table.reading(position).scores[segments] = scores
            table.set_score(position)
