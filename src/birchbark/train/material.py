"""How do the pairs of a training become token ids and targets?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from birchbark.artifact import fingerprint
from birchbark.collection.intake import Intake
from birchbark.collection.pairs import read_pairs
from birchbark.errors import InputError
from birchbark.records import Ids, Pair
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.model import load_scorer
from birchbark.score.remembering import Remembering
from birchbark.score.scorer import Scorer
from birchbark.score.store import ScoreStore
from birchbark.score.tokenizer import Pieces
from birchbark.train.config import DataSet, Teacher, Training
from birchbark.train.examples import Pairs, held_apart

Tell = Callable[[str], None]
TOGETHER = 1000  # queries whose texts are embedded together


@dataclass(frozen=True, slots=True, eq=False)
class PairInputs:
    """Inputs of BERT for pairs, put together when they are asked for: most tokens of text each."""

    pairs: Pairs
    queries: Sequence[Ids]
    texts: Sequence[Ids]
    pieces: Pieces
    most: int

    @classmethod
    def of(cls, pairs: Pairs, pieces: Pieces, max_length: int) -> PairInputs:
        """max_length: of an input, with its special tokens."""
        return cls(
            pairs,
            pieces.encode(pairs.queries),
            pieces.encode(pairs.texts),
            pieces,
            max_length - pieces.extra_pair,
        )

    def __getitem__(self, number: int) -> tuple[Ids, Ids]:
        """Ids and types of a pair; a query has at most half of the room, the text what is left."""
        query = self.queries[self.pairs.query[number]][: self.most // 2]
        return self.pieces.pair(
            query, self.texts[self.pairs.text[number]][: self.most - len(query)]
        )

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each pair (n,), special tokens left out, before anything is cut."""
        query = np.array([len(q) for q in self.queries], np.int64)[self.pairs.query]
        return query + np.array([len(t) for t in self.texts], np.int64)[self.pairs.text]

    @property
    def cut(self) -> int:
        """How many pairs do not fit, and lose their end."""
        query = np.array([len(q) for q in self.queries], np.int64)[self.pairs.query]
        return int(((query > self.most // 2) | (self.lengths > self.most)).sum())


@dataclass(frozen=True, slots=True)
class Teachers:
    """Where it is kept what teachers say, so that it is asked for once.

    store: a score store's folder. write: false in a process that finds there what another asked.
    """

    store: Path
    write: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """One data set, ready to learn from.

    learnt: what is trained on, with targets (n,) float32. held: what it is validated on.
    facts: what the card says of it.
    """

    data: DataSet
    learnt: PairInputs
    targets: NDArray[np.float32]
    held: PairInputs
    facts: dict[str, object] = field(default_factory=dict)


def load_material(
    training: Training, root: Path, pieces: Pieces, teachers: Teachers, tell: Tell
) -> Iterator[Material]:
    """The data sets of `training`; their files lie below `root`."""
    read = [_read(data, [root / name for name in data.files]) for data in training.data]
    apart = [
        held_apart({pair.query for pair in pairs}, data.validation)
        for data, (pairs, _) in zip(training.data, read, strict=True)
    ]
    anywhere = {_spelt(text) for texts in apart for text in texts}
    for data, (pairs, intake), texts in zip(training.data, read, apart, strict=True):
        paths = [root / name for name in data.files]
        measured = set(texts[: data.validation_queries])
        learn = [pair for pair in pairs if _spelt(pair.query) not in anywhere]
        hold = [pair for pair in pairs if pair.query in measured]
        if not learn:
            raise InputError("nothing is left to learn from", where=data.name)
        learnt, held = Pairs.of(_chunks(learn, data.chunk)), Pairs.of(hold)
        queries = {pair.query for pair in pairs}
        inputs = PairInputs.of(learnt, pieces, training.max_length)
        held_inputs = PairInputs.of(held, pieces, training.max_length)
        targets, teacher = learnt.grades, None
        if data.teacher:
            tell(f"{data.name}: {data.teacher.model} scores {len(learnt):,} pairs")
            scorer = load_scorer(data.teacher.model)
            targets, cut = taught(learnt, data.teacher, scorer, teachers)
            teacher = {"model": data.teacher.model, "fingerprint": scorer.fingerprint, "cut": cut}
            if cut:
                tell(f"{data.name}: the teacher reads {cut:,} pairs without their end")
        facts: dict[str, object] = {
            "name": data.name,
            "licence": data.licence,
            "files": [{"name": p.name, "sha256": fingerprint(p)} for p in paths],
            "teacher": teacher,
            "skipped": len(intake.skipped),
            "left_aside": {"queries": len(queries) - len(learnt.queries) - len(held.queries)},
            "learnt": {"queries": len(learnt.queries), "pairs": len(learnt), "cut": inputs.cut},
            "held": {"queries": len(held.queries), "pairs": len(held), "cut": held_inputs.cut},
        }
        _tell(facts, intake, training.max_length, tell)
        yield Material(data, inputs, targets, held_inputs, facts)


def _spelt(text: str) -> str:
    return " ".join(text.split())


def _read(data: DataSet, paths: Sequence[Path]) -> tuple[list[Pair], Intake]:
    intake = Intake(skip_bad=data.skip_bad, remedy="skip_bad = true passes over it, and counts it")
    pairs = [
        pair
        for path in paths
        for pair in read_pairs(path, intake, data.columns, data.highest, data.unjudged)
    ]
    return pairs, intake


def _tell(facts: dict[str, object], intake: Intake, max_length: int, tell: Tell) -> None:
    for part in ("learnt", "held"):
        counts = facts[part]
        assert isinstance(counts, dict)
        if counts["pairs"]:
            use = "to learn from" if part == "learnt" else "to validate on"
            cut = f"; {counts['cut']:,} lose their end at {max_length} tokens"
            tell(
                f"{facts['name']}: {counts['pairs']:,} pairs of {counts['queries']:,} queries {use}"
                + (cut if counts["cut"] else "")
            )
    aside = facts["left_aside"]
    assert isinstance(aside, dict)
    if aside["queries"]:
        tell(f"{facts['name']}: {aside['queries']:,} queries are kept apart, and not validated on")
    if facts["skipped"]:
        tell(f"{facts['name']}: {facts['skipped']} bad records were passed over")
    for note, times in intake.notes.most_common():
        tell(f"{facts['name']}: {note} ({times:,} times)")


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


def _embed_together(
    scorer: EmbeddingScorer, scores: ScoreStore, asked: Mapping[str, Sequence[Ids]]
) -> None:
    """Embed the texts of many queries at once: those of one query alone make small batches."""
    new = [
        piece
        for query, pieces in asked.items()
        if not scores.find(scores.keys(query, pieces))[1].all()
        for piece in pieces
    ]
    scorer.embed(new)


def taught(
    pairs: Pairs, teacher: Teacher, scorer: Scorer, kept: Teachers
) -> tuple[NDArray[np.float32], int]:
    """What `teacher`, opened as `scorer`, says of each pair, (n,): scale · (score − shift).

    The score is a cosine (0 where it is negative), or a cross-encoder's log-odds. Texts that the
    teacher cannot read whole are cut to what it can; of how many pairs, is given besides.
    """
    cut = 0
    targets = np.empty(len(pairs), np.float32)
    with ScoreStore(kept.store, scorer, write=kept.write) as scores:
        remembering = Remembering(scorer, scores)
        texts = scorer.encode(pairs.texts)

        def pieces(place: int) -> list[Ids]:
            room = scorer.room(pairs.queries[place])
            return [texts[pairs.text[number]][:room] for number in pairs.by_query[place]]

        for start in range(0, len(pairs.queries), TOGETHER):
            some = range(start, min(start + TOGETHER, len(pairs.queries)))
            if isinstance(scorer, EmbeddingScorer):
                _embed_together(scorer, scores, {pairs.queries[q]: pieces(q) for q in some})
            for place in some:
                query, numbers = pairs.queries[place], pairs.by_query[place]
                targets[numbers] = remembering.score(query, pieces(place))
                room = scorer.room(query)
                cut += sum(len(texts[pairs.text[number]]) > room for number in numbers)
    if scorer.kind == "cross-encoder":
        shares = np.clip(targets.astype(np.float64), 1e-7, 1 - 1e-7)
        targets = np.log(shares / (1 - shares)).astype(np.float32)
    return np.float32(teacher.scale) * (targets - np.float32(teacher.shift)), cut
