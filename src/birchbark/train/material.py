"""How do the pairs of a training become token ids and targets?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from birchbark.checkpoint.tokenizer import Pieces
from birchbark.collection.apart import held_apart
from birchbark.collection.documents import read_collection
from birchbark.collection.intake import Intake
from birchbark.collection.irds import fingerprint, place
from birchbark.collection.judged import by_segments, judged_pairs
from birchbark.collection.pairs import read_pairs
from birchbark.collection.qrels import read_qrels
from birchbark.collection.queries import read_queries
from birchbark.errors import InputError
from birchbark.records import Document, Ids, Pair, Qrels
from birchbark.segment.fit import fit
from birchbark.segment.named import parse_segmenter
from birchbark.train.config import DataSet, Training
from birchbark.train.examples import Pairs

Tell = Callable[[str], None]
PASSAGES = 16  # of a document are read, where nothing else is said
COMPARED = 10  # pairs of a query that are compared with each other to validate


class Reads(Enum):
    """What shares an input of BERT."""

    PAIR = "a query and a text, or one of its passages"
    TWO_TEXTS = "a query and two texts"
    TEXT = "a text alone"
    APART = "nothing: query and text are two inputs"


@dataclass(frozen=True, slots=True, eq=False)
class PairInputs:
    """Inputs of BERT for pairs, put together when they are asked for: most tokens of text each.

    asked: tokens of a query at most. passages: of a document, at most so many are read. reads: what
    shares an input.
    """

    pairs: Pairs
    queries: Sequence[Ids]
    texts: Sequence[Ids]
    pieces: Pieces
    most: int
    asked: int
    passages: int = 1
    reads: Reads = Reads.PAIR

    @classmethod
    def of(
        cls,
        pairs: Pairs,
        pieces: Pieces,
        max_length: int,
        query_length: int | None = None,
        *,
        passages: int = 1,
        reads: Reads = Reads.PAIR,
    ) -> PairInputs:
        """max_length: of an input, with its special tokens. query_length: None for half of it.

        Where query and text are apart, None lets the query be as long as an input.
        """
        single = reads in (Reads.TEXT, Reads.APART)
        most = max_length - (pieces.extra_single if single else pieces.extra_pair)
        usual, highest = (most, most) if reads is Reads.APART else (most // 2, most - 1)
        asked = 0 if reads is Reads.TEXT else min(query_length or usual, highest)
        return cls(
            pairs,
            pieces.encode(pairs.queries),
            pieces.encode(pairs.texts),
            pieces,
            most,
            asked,
            passages,
            reads,
        )

    def __getitem__(self, number: int) -> list[tuple[Ids, Ids]]:
        """Ids and types of a pair's inputs, one for each of its passages.

        The text has what the query leaves.
        """
        if self.reads is Reads.TEXT:
            ids = self.pieces.single(self._passage(number)[: self.most])
            return [(ids, np.zeros_like(ids))]
        query = self._asking(number)
        if self.reads is Reads.APART:
            both = self.pieces.single(query), self.pieces.single(self._passage(number)[: self.most])
            return [(ids, np.zeros_like(ids)) for ids in both]
        return [
            self.pieces.pair(query, self.texts[text][: self.most - len(query)])
            for text in self.pairs.passages(number)[: self.passages]
        ]

    def sides(self, number: int) -> list[tuple[int, int]]:
        """Where query and text stand in a pair's input, or the text alone: see Pieces.sides."""
        text = len(self._passage(number))
        if self.reads is Reads.TEXT:
            return self.pieces.sides(None, min(text, self.most))
        query = len(self._asking(number))
        return self.pieces.sides(query, min(text, self.most - query))

    def _asking(self, number: int) -> Ids:
        query: Ids = self.queries[self.pairs.query[number]]
        return query[: self.asked]

    def _passage(self, number: int) -> Ids:
        passage: Ids = self.texts[self.pairs.passages(number)[0]]
        return passage

    def comparison(self, number: int, other: int) -> tuple[Ids, Ids]:
        """Ids and types of an input that compares two pairs of one query, the first text first.

        Each text has half of what the query leaves.
        """
        query = self._asking(number)
        texts = [self._passage(n) for n in (number, other)]
        side = (self.most - len(query) - self._between) // 2
        return self.pieces.pair(query, self.pieces.joined(texts[0][:side], texts[1][:side]))

    @property
    def _between(self) -> int:
        """Special tokens between two texts."""
        none = np.empty(0, np.int32)
        return len(self.pieces.joined(none, none))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each pair (n,), special tokens left out, as they are read."""
        if not len(self.pairs):
            return np.empty(0, np.int64)
        whole = np.minimum(self._whole, self.most)
        if self.reads is Reads.APART:
            texts = np.minimum(self._whole - self._query, self.most)
            whole = np.minimum(self._query, self.asked) + texts
        read = np.where(self._read, whole, 0)
        return np.add.reduceat(read, self.pairs.starts[:-1])

    @property
    def _counts(self) -> NDArray[np.int64]:
        """Passages of each pair (n,)."""
        return np.diff(self.pairs.starts)

    @property
    def _query(self) -> NDArray[np.int64]:
        """Tokens of the query of each passage; none where texts stand alone."""
        query = np.array([len(q) for q in self.queries], np.int64)[self.pairs.query]
        query = query * (self.reads is not Reads.TEXT)
        return np.repeat(query, self._counts)

    @property
    def _whole(self) -> NDArray[np.int64]:
        """Tokens of each passage and its query, before anything is cut."""
        return self._query + np.array([len(t) for t in self.texts], np.int64)[self.pairs.text]

    @property
    def counts(self) -> dict[str, int]:
        """What the card says of them."""
        pairs = self.pairs
        found = {"queries": len(pairs.queries), "pairs": len(pairs), "cut": self.cut}
        more = {"passages": len(pairs.text), "shortened": self.shortened}
        return found | (more if len(pairs.text) > len(pairs) else {})

    @property
    def cut(self) -> int:
        """How many pairs do not fit: query or text, or a passage that is read, loses its end."""
        if not len(self.pairs):
            return 0
        query = np.minimum(self._query, self.asked)
        room = self.most - (0 if self.reads is Reads.APART else query)
        if self.reads is Reads.TWO_TEXTS:
            room = (room - self._between) // 2
        cut = (self._query > query) | (self._whole - self._query > room)
        return int(np.logical_or.reduceat(cut & self._read, self.pairs.starts[:-1]).sum())

    @property
    def shortened(self) -> int:
        """How many pairs have more passages than are read."""
        return int((self._counts > self.passages).sum())

    @property
    def _read(self) -> NDArray[np.bool_]:
        """Which passages are read."""
        starts = np.repeat(self.pairs.starts[:-1], self._counts)
        found: NDArray[np.bool_] = np.arange(len(self.pairs.text)) - starts < self.passages
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """One data set, ready to learn from.

    learnt: what is trained on. targets: of each aim (n,) float32: grades, or what its teacher says
    (teaching.py). held: what it is validated on. facts: what the card says of it.
    """

    data: DataSet
    learnt: PairInputs
    targets: tuple[NDArray[np.float32], ...]
    held: PairInputs
    facts: Mapping[str, object] = field(default_factory=dict)


def load_material(training: Training, root: Path, pieces: Pieces, tell: Tell) -> Iterator[Material]:
    """The data sets of `training`; their files lie below `root`.

    Raises InputError for bad pairs, and for a set of which nothing is left to learn from.
    """
    room, reads = training.max_length - pieces.extra_single, _reads(training)
    read = [
        _read(data, root, partial(_fitting, room=room, pieces=pieces)) for data in training.data
    ]
    if training.masking and reads is not Reads.TEXT:
        read = [(_relevant(pairs, intake, pieces), intake) for pairs, intake in read]
    sides = split([pairs for pairs, _ in read], training.data)
    for data, (pairs, intake), (learn, hold) in zip(training.data, read, sides, strict=True):
        if not learn:
            raise InputError("nothing is left to learn from", where=data.name)
        learnt, held = (
            PairInputs.of(
                Pairs.of(some, training.shaping.parade is not None),
                *(pieces, training.max_length, training.query_length),
                passages=data.passages or PASSAGES,
                reads=reads,
            )
            for some in (_chunks(learn, data.chunk), hold)
        )
        aside = len({pair.query for pair in pairs}) - sum(
            len(inputs.pairs.queries) for inputs in (learnt, held)
        )
        if training.shaping.parade and len(learnt.pairs.text) == len(learnt.pairs):
            raise InputError(
                "each document has one passage: there is nothing to aggregate",
                where=data.name,
                remedy='segments = "windows:150/50", or files with a row for each passage',
            )
        _tell_pairs(data.name, learnt, held, training.max_length, tell)
        _tell_left(data.name, intake, aside, tell)
        facts: dict[str, object] = {
            "name": data.name,
            "licence": data.licence,
            "files": [
                {"name": Path(name).name, "sha256": fingerprint(place(root, name))}
                for name in data.files
            ],
            "teachers": [],
            "skipped": len(intake.skipped),
            "queries_left_aside": aside,
            "learnt": learnt.counts,
            "held": held.counts,
        }
        yield Material(data, learnt, (learnt.pairs.grades,) * len(data.aims), held, facts)


def _reads(training: Training) -> Reads:
    """What shares an input of a training's network."""
    if any(data.texts for data in training.data):
        return Reads.TEXT
    if training.shaping.duo:
        return Reads.TWO_TEXTS
    return Reads.APART if training.shaping.pooling else Reads.PAIR


def split(
    sets: Sequence[Sequence[Pair]], how: Sequence[DataSet]
) -> list[tuple[list[Pair], list[Pair]]]:
    """Of each set, pairs to learn from and pairs to validate on.

    What one set keeps apart, none learns; white space does not tell queries apart.
    """
    apart = [
        held_apart({pair.query for pair in pairs}, data.validation)
        for pairs, data in zip(sets, how, strict=True)
    ]
    anywhere = {_spelt(query) for queries in apart for query in queries}
    sides = []
    for pairs, data, queries in zip(sets, how, apart, strict=True):
        measured = set(queries[: data.validation_queries])
        learn = [pair for pair in pairs if _spelt(pair.query) not in anywhere]
        sides.append((learn, [pair for pair in pairs if pair.query in measured]))
    return sides


def _spelt(text: str) -> str:
    return " ".join(text.split())


def _tell_pairs(
    name: str, learnt: PairInputs, held: PairInputs, max_length: int, tell: Tell
) -> None:
    for inputs, use in ((learnt, "to learn from"), (held, "to validate on")):
        if pairs := len(inputs.pairs):
            cut = f"; {inputs.cut:,} lose their end at {max_length} tokens" if inputs.cut else ""
            if left := inputs.shortened:
                cut += f"; of {left:,} the first {inputs.passages} passages are read"
            if (passages := len(inputs.pairs.text)) > pairs:
                cut = f", {passages / pairs:.1f} passages each{cut}"
            what, of = (
                ("texts", "documents") if inputs.reads is Reads.TEXT else ("pairs", "queries")
            )
            tell(f"{name}: {pairs:,} {what} of {len(inputs.pairs.queries):,} {of} {use}{cut}")
    left = sum(max(0, len(own) - COMPARED) for own in held.pairs.by_query)
    if held.reads is Reads.TWO_TEXTS and left:
        tell(f"{name}: {left:,} of them are left out: at most {COMPARED} of a query are compared")


def _tell_left(name: str, intake: Intake, aside: int, tell: Tell) -> None:
    """What is neither learnt from nor validated on, and what else a user should know."""
    if aside:
        tell(f"{name}: {aside:,} queries are kept apart, and not validated on")
    if intake.skipped:
        tell(f"{name}: {len(intake.skipped)} bad records were passed over")
    for note, times in intake.notes.most_common():
        tell(f"{name}: {note} ({times:,} times)")


def _relevant(pairs: Sequence[Pair], intake: Intake, pieces: Pieces) -> list[Pair]:
    """Those that are, and of which either side has a token; the others are noted."""
    found = [pair for pair in pairs if pair.relevance]
    if left := len(pairs) - len(found):
        intake.notes["pair that is not relevant, left out"] += left
    texts = list(dict.fromkeys(text for pair in found for text in (pair.query, pair.text)))
    empty = {t for t, ids in zip(texts, pieces.encode(texts), strict=True) if not len(ids)}
    whole = [pair for pair in found if pair.query not in empty and pair.text not in empty]
    if left := len(found) - len(whole):
        intake.notes["pair of which a side has no token, left out"] += left
    return whole


def _fitting(
    documents: Iterable[Document], data: DataSet, intake: Intake, room: int, pieces: Pieces
) -> list[Pair]:
    """Each document's segments, cut so that they fit; in the query's place stands the doc_id.

    Those of which no token is left (zero-width characters) are noted in `intake`, and left out.
    """
    segmenter, found = parse_segmenter(data.segments), []
    for document in documents:
        for parts in fit(segmenter(document), room, pieces.encode, pieces.spans):
            name = document.doc_id
            for segment, ids in parts:
                if len(ids):
                    found.append(Pair(name, name, name, segment.text, 1))
                else:
                    intake.note("text without a token, left out")
    return found


def _read(
    data: DataSet, root: Path, fitting: Callable[[Iterable[Document], DataSet, Intake], list[Pair]]
) -> tuple[list[Pair], Intake]:
    """The pairs of a set. fitting: makes pairs of texts that stand alone."""
    intake = Intake(skip_bad=data.skip_bad, remedy="skip_bad = true passes over it, and counts it")
    files = [place(root, name) for name in data.files]
    if data.texts:
        documents_read = read_collection(str(files[0]), intake, data.format or None)
        return fitting(documents_read, data, intake), intake
    if data.judged:
        documents, queries, qrels = files
        judged = read_qrels(qrels)
        _check_grades(judged, data.highest, str(qrels))
        collection = read_collection(str(documents), intake, data.format or None)
        texts = by_segments(parse_segmenter(data.segments))
        asked = read_queries(queries)
        return list(judged_pairs(asked, judged, collection, intake, texts)), intake
    pairs = [
        pair
        for file in files
        for pair in read_pairs(file, intake, data.columns, data.highest, data.unjudged)
    ]
    return pairs, intake


def _check_grades(qrels: Qrels, highest: int, where: str) -> None:
    found = max((g for grades in qrels.grades.values() for g in grades.values()), default=0)
    if found > highest:
        raise InputError(
            "relevance is too high",
            where=where,
            wanted=f"0 to {highest}",
            found=str(found),
            remedy="set `highest`",
        )


def _chunks(pairs: Sequence[Pair], words: int | None) -> Iterator[Pair]:
    """Texts cut into pieces of so many words, each with the grade of the whole (birch's MARCO*)."""
    for pair in pairs:
        parts = pair.text.split() if words else []
        if words is None or len(parts) <= words:
            yield pair
            continue
        for start in range(0, len(parts), words):
            text = " ".join(parts[start : start + words])
            yield Pair(pair.query_id, pair.query, pair.doc_id, text, pair.relevance)
