"""What does a teacher say of the pairs that are learnt from, so that it need be asked but once?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from birchbark.device.session import session_on
from birchbark.errors import InputError
from birchbark.records import Float32s, Ids
from birchbark.remember.remembering import Remembering
from birchbark.remember.store import ScoreStore
from birchbark.score.bert import ApartScorer
from birchbark.score.model import load_scorer
from birchbark.score.scorer import Scorer
from birchbark.train.config import Teacher
from birchbark.train.course import Course
from birchbark.train.examples import Numbers, Pairs
from birchbark.train.material import Material, Tell

TOGETHER = 1 << 19  # characters of texts that are scored before they are kept, about
Asked = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Teachers:
    """Where it is kept what teachers say, so that it is asked for once.

    store: a score store's folder. device: which teachers run on. write: false in a process that
    finds there what another asked. asked: hears how many pairs of a data set have been
    answered, and how many there are.
    """

    store: Path
    device: str = "cpu"
    write: bool = True
    asked: Asked = lambda pairs, of: None


def teach(
    materials: Sequence[Material], course: Course, kept: Teachers, tell: Tell
) -> list[Material]:
    """`materials` with what their teachers say of each pair that `course` will learn from.

    Of other pairs nobody asks: their targets are NaN. Those without a teacher stay as they are.
    """
    if not any(one.data.teachers for one in materials):
        return list(materials)
    return [
        _taught(one, learnt, kept, tell)
        for one, learnt in zip(materials, course.learnt(), strict=True)
    ]


def _taught(material: Material, learnt: Numbers, kept: Teachers, tell: Tell) -> Material:
    targets, said = list(material.targets), []
    known: dict[Teacher, Float32s] = {}  # several losses may have one teacher
    for number, aim in enumerate(material.data.aims):
        if aim.teacher and aim.teacher not in known:
            answers = [
                _answers(material, model, aim.teacher, learnt, kept, tell)
                for model in aim.teacher.models
            ]
            values = [values for values, _ in answers]
            known[aim.teacher] = np.mean(values, axis=0, dtype=np.float32)
            said += [facts for _, facts in answers]
        if aim.teacher:
            targets[number] = known[aim.teacher]
    facts = {**material.facts, "teachers": said}
    return replace(material, targets=tuple(targets), facts=facts)


def _answers(
    material: Material, model: str, teacher: Teacher, learnt: Numbers, kept: Teachers, tell: Tell
) -> tuple[NDArray[np.float32], dict[str, object]]:
    """Targets by one model, and what the card says of it."""
    name, pairs = material.data.name, material.learnt.pairs
    tell(f"{name}: {model} scores {len(learnt):,} of {len(pairs):,} pairs")
    scorer = load_scorer(model, pooling=teacher.pooling, session=session_on(kept.device))
    if scorer.width > 1:
        raise InputError("this model judges documents, and no text alone", where=f"teacher {model}")
    targets, cut = taught(pairs, learnt, teacher, scorer, kept)
    if cut:
        tell(f"{name}: the teacher reads {cut:,} pairs without their end")
    facts: dict[str, object] = {"model": model, "fingerprint": scorer.fingerprint, "cut": cut}
    return targets, facts | ({"pooling": teacher.pooling.mode} if teacher.pooling else {})


def taught(
    pairs: Pairs, learnt: Numbers, teacher: Teacher, scorer: Scorer, kept: Teachers
) -> tuple[NDArray[np.float32], int]:
    """What `teacher`, opened as `scorer`, says of `pairs`: scale · (score − shift), (n,).

    NaN for those that are not among the numbers `learnt`. The score is a cosine or MaxSim (0 where
    it is negative), or a cross-encoder's log-odds. Texts that the teacher cannot read whole are cut
    to what it can; of how many pairs, is given besides.
    """
    cut = done = 0
    targets = np.full(len(pairs), np.nan, np.float32)
    own = pairs.text[pairs.starts[:-1]]  # a teacher's pairs have one text each
    with ScoreStore(kept.store, scorer, write=kept.write) as scores:
        remembering = Remembering(scorer, scores)
        for numbers in _together(pairs, learnt):
            texts = np.unique(own[np.concatenate(numbers)]).tolist()
            encoded = scorer.encode([pairs.texts[text] for text in texts])
            ids = dict(zip(texts, encoded, strict=True))
            asked: list[tuple[str, list[Ids]]] = []
            for some in numbers:
                query = pairs.queries[pairs.query[some[0]]]
                whole, room = [ids[text] for text in own[some].tolist()], scorer.room(query)
                asked.append((query, [piece[:room] for piece in whole]))
                cut += sum(len(piece) > room for piece in whole)
            if isinstance(scorer, ApartScorer):
                _read_ahead(scorer, scores, asked)
            for (query, pieces), some in zip(asked, numbers, strict=True):
                targets[some] = remembering.score(query, pieces)
                done += len(some)
                kept.asked(done, len(learnt))
    if scorer.kind == "cross-encoder":
        shares = np.clip(targets.astype(np.float64), 1e-7, 1 - 1e-7)
        targets = np.log(shares / (1 - shares)).astype(np.float32)
    return np.float32(teacher.scale) * (targets - np.float32(teacher.shift)), cut


def _together(pairs: Pairs, learnt: Numbers) -> Iterator[list[Numbers]]:
    """The numbers of each query's pairs among `learnt`, some queries at a time."""
    wanted = np.zeros(len(pairs), bool)
    wanted[learnt] = True
    sizes = np.array([len(text) for text in pairs.texts], np.int64)[pairs.text[pairs.starts[:-1]]]
    waiting: list[Numbers] = []
    size = 0
    for of_query in pairs.by_query:
        some = of_query[wanted[of_query]]
        ends = np.cumsum(sizes[some])
        for part in np.split(some, np.flatnonzero(np.diff(ends // TOGETHER)) + 1):
            if len(part):
                waiting.append(part)
                size += int(sizes[part].sum())
            if size >= TOGETHER:
                yield waiting
                waiting, size = [], 0
    if waiting:
        yield waiting


def _read_ahead(
    scorer: ApartScorer, scores: ScoreStore, asked: Sequence[tuple[str, list[Ids]]]
) -> None:
    """Read the texts of many queries at once: those of one query alone make small batches."""
    new = [
        (query, pieces)
        for query, pieces in asked
        if not scores.find(scores.keys(query, pieces))[1].all()
    ]
    queries = scorer.encode([query for query, _ in new])
    scorer.read_ahead([*queries, *(piece for _, pieces in new for piece in pieces)])
