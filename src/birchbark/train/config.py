"""What does a training ask for? A TOML file, read strictly, as one value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from birchbark.checkpoint.heads import Pooling, parse_pooling
from birchbark.collection.pairs import Columns
from birchbark.errors import InputError
from birchbark.section import Section
from birchbark.segment.named import parse_segmenter
from birchbark.train.examples import Draw
from birchbark.train.masking import LIKELIHOOD, Masking
from birchbark.train.matching import Matching
from birchbark.train.objectives import Objective
from birchbark.train.shaping import Shaping

JUDGED = "documents", "queries", "qrels"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Teacher:
    """Whose scores are the targets: scale · (score − shift) of each pair, as log-odds.

    The score is the cosine of an embedding model, or a cross-encoder's log-odds; of several models
    the mean of theirs. pooling: as `load_scorer`, for models without one that they state, or for
    late interaction; then the score is MaxSim.
    """

    models: tuple[str, ...]
    scale: float = 1.0
    shift: float = 0.0
    pooling: Pooling | None = None


@dataclass(frozen=True, slots=True)
class Aim:
    """One of the losses whose sum is minimised. teacher: None where targets are grades."""

    objective: Objective
    teacher: Teacher | None = None
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class DataSet:
    """A set of pairs, and what is learnt from it.

    files: below the data root, of pairs, read as one set; or where `judged` is true, the documents,
    queries and judgments of a collection, whose every judged document makes a pair; or where
    `texts` is true, the documents alone, cut so that they fit; format: of the
    documents, where their name does not tell; segments: what is made of each, a pair for each of
    them. passages: PARADE learns from at most so many of a document; None for 16.
    chunk: texts are cut into pieces of so many words,
    each with the grade of the whole; None leaves them whole. validation: share of the queries kept
    apart, of which at most `validation_queries` are measured. aims: what is minimised. weight: of
    its losses. skip_bad: pass over bad records, and count them. licence: what the card says of it.
    """

    name: str
    files: tuple[str, ...]
    judged: bool
    texts: bool
    format: str
    segments: str
    passages: int | None
    columns: Columns
    highest: int
    unjudged: int | None
    skip_bad: bool
    licence: str
    chunk: int | None
    validation: float
    validation_queries: int | None
    draw: Draw
    aims: tuple[Aim, ...]
    weight: float

    def learns_from(self, grades: NDArray[np.float32]) -> bool:
        """Whether a list with these grades has a loss that can be lowered."""
        return not self.aims or any(aim.objective.learns_from(grades) for aim in self.aims)

    @property
    def teachers(self) -> tuple[Teacher, ...]:
        """Whose answers are learnt from."""
        return tuple(aim.teacher for aim in self.aims if aim.teacher)


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long and how fast is learnt.

    epochs or steps: one of them. batch: lists of a step and process; accumulate: so many batches
    make one step. rate: the highest learning rate; it rises for `warmup` (a share of all steps if
    below 1, else steps), and falls linearly to 0, or stays where `decay` is false. clip: largest
    norm of the gradient. precision: fp32, or bf16 for products. checkpoint: the state is kept every
    so many steps, and at each validation.
    """

    epochs: int | None
    steps: int | None
    batch: int
    accumulate: int
    rate: float
    warmup: float
    decay: bool
    weight_decay: float
    clip: float
    precision: str
    checkpoint: int | None


@dataclass(frozen=True, slots=True)
class Validation:
    """When is the model measured on queries kept apart, and when is it enough?

    every: steps; None for the end of each epoch. patience: after so many times without a better
    value it ends; None never.
    """

    measure: str
    every: int | None
    patience: int | None


@dataclass(frozen=True, slots=True)
class Training:
    """All that a training depends on, besides data, base and machine.

    base: a model as `--model` takes it. max_length: tokens of an input, special tokens included.
    query_length: tokens of a query at most; None for half of them. matching: what else is learnt of
    a teacher; None without one. masking: what is hidden and learnt; None where relevance is.
    values: the file as it was read, without its grid.
    """

    path: Path
    title: str
    base: str
    seed: int
    shaping: Shaping
    max_length: int
    query_length: int | None
    data: tuple[DataSet, ...]
    schedule: Schedule
    validation: Validation
    matching: Matching | None
    masking: Masking | None
    values: Mapping[str, Any]

    @property
    def teachers(self) -> tuple[str, ...]:
        """All models that are learnt from, each once."""
        asked = [model for data in self.data for one in data.teachers for model in one.models]
        return tuple(dict.fromkeys([*asked, *([self.matching.teacher] if self.matching else [])]))


def read_training(values: Mapping[str, Any], path: Path) -> Training:
    """The training that `values`, the contents of the file at `path`, ask for.

    Raises InputError for any fault, naming the file and the key.
    """
    top = Section(values, str(path))
    match = top.section("match", {})
    matching = _read(match, _matching) if match.keys else None
    masking = _read(top.section("masked"), _masking) if "masked" in top.keys else None
    aims = _aims(top)
    if "objective" not in top.keys and not masking:
        aims = (Aim(Objective()),)
    elif not aims and not matching and not masking:
        wanted = "one, or a table [match] or [masked]"
        raise InputError("no objective", where=top.where(), wanted=wanted)
    draw = _read(top.section("lists", {}), _draw)
    usual = LIKELIHOOD if masking else "AP"
    training = Training(
        path=path,
        title=top.text("title"),
        base=top.text("base"),
        seed=top.whole("seed", 0),
        shaping=_read(top.section("model", {}), _shaping),
        max_length=top.whole("max_length", 256, least=8),
        query_length=top.whole("query_length", None, least=1),
        data=tuple(_read(s, _data_set, aims, draw) for s in top.sections("data")),
        schedule=_read(top.section("schedule"), _schedule),
        validation=_read(top.section("validation", {}), _validation, usual),
        matching=matching,
        masking=masking,
        values=dict(values),
    )
    top.end()
    if training.validation.patience and not (masking or any(data.aims for data in training.data)):
        raise InputError(
            "patience needs an objective: what a table [match] teaches alone is not measured",
            where=top.where("validation"),
        )
    kinds = {aim.objective.kind for data in training.data for aim in data.aims}
    if "duo" in kinds:
        training = replace(training, shaping=replace(training.shaping, duo=True))
        if len(kinds) > 1 or training.shaping.parade:
            raise InputError(
                "objective duo stands alone: its model reads two texts",
                where=top.where(),
                found=", ".join(sorted(kinds)),
            )
    _check_parade(training)
    _check_bi_encoder(training)
    _check_masked(training)
    if masking:
        training = replace(training, shaping=replace(training.shaping, masked=True))
    names = [data.name for data in training.data]
    if not names or len(set(names)) < len(names):
        raise InputError(
            "data sets are missing or share a name",
            where=top.where("data"),
            wanted="[[data]] with a name, and files or documents, each",
        )
    return training


def _check_parade(training: Training) -> None:
    """Refuse what cannot be learnt from documents as a whole."""
    if training.shaping.parade and training.teachers:
        raise InputError(
            "teachers judge texts, PARADE learns from documents",
            where=f"{training.path}: model.parade",
            remedy="teach a cross-encoder, and train PARADE from it",
        )
    if not training.shaping.parade and any(data.passages for data in training.data):
        raise InputError(
            "passages does nothing without model.parade", where=f"{training.path}: data"
        )
    if training.shaping.parade and any(data.chunk for data in training.data):
        raise InputError("chunk makes texts of documents", where=str(training.path))


def _check_bi_encoder(training: Training) -> None:
    """Refuse what a bi-encoder cannot learn: its cosines have no zero and no states of pairs."""
    if not training.shaping.pooling:
        return
    where = f"{training.path}: model.pooling"
    if training.matching or training.masking or training.shaping.duo:
        raise InputError("a bi-encoder stands alone", where=where, found="match, masked or duo")
    for aim in (aim for data in training.data for aim in data.aims):
        if not aim.objective.compares:
            raise InputError(
                "a bi-encoder learns from texts that are compared",
                where=where,
                found=f"objective {aim.objective.kind}",
                remedy='objective = { kind = "softmax" }, with lists of several texts',
            )


def _check_masked(training: Training) -> None:
    """Refuse what hidden tokens cannot be learnt from, and texts for anything else."""
    masking = training.masking
    alone = masking is not None and masking.query is None
    for data in training.data:
        where = f"{training.path}: data {data.name}"
        if data.texts and not alone:
            wanted = "queries and qrels; or a table [masked] without query"
            raise InputError("nothing is asked of these documents", where=where, wanted=wanted)
        if alone and not data.texts:
            raise InputError("texts stand alone", where=where, wanted="documents, and nothing else")
        if masking and (data.aims or data.chunk or data.draw.each != "pair"):
            raise InputError(
                "[masked] stands alone", where=where, found="objective, lists or chunk"
            )
    if (training.validation.measure == LIKELIHOOD) != bool(masking):
        wanted = f"{LIKELIHOOD}, and for nothing else" if masking else "a measure of rankings"
        where = f"{training.path}: validation.measure"
        raise InputError("what is hidden is measured otherwise", where=where, wanted=wanted)
    if masking and (training.matching or training.shaping.parade or training.shaping.duo):
        raise InputError("[masked] stands alone", where=str(training.path))


def _masking(section: Section) -> Masking:
    usual = Masking()
    return Masking(section.number("share", usual.share), section.number("query", None))


def _read(section: Section, make: Callable[..., T], *others: Any) -> T:
    """What `make` makes of `section`; its faults are told with their place, no key is left over."""
    try:
        made = make(section, *others)
    except InputError as fault:
        raise fault.at(section.where()) from None
    section.end()
    return made


def _shaping(section: Section) -> Shaping:
    return Shaping(
        section.whole("layers", None, least=1),
        section.text("learns", "all"),
        section.number("dropout", 0.1),
        section.wholes("from_layers", (), least=1),
        section.whole("hidden", None, least=1),
        section.whole("heads", None, least=1),
        section.whole("intermediate", None, least=1),
        section.text("parade", None),
        section.text("pooling", None),
    )


def _matching(section: Section) -> Matching:
    return Matching(
        section.text("teacher"),
        section.number("embeddings", 1.0),
        section.number("hidden", 1.0),
        section.number("attention", 1.0),
        section.wholes("layers", (), least=1),
    )


def _aims(section: Section) -> tuple[Aim, ...]:
    """The key `objective`, a table or several; none where it is missing."""
    return tuple(_read(one, _aim) for one in section.table_or_tables("objective"))


def _aim(section: Section) -> Aim:
    usual = Objective(section.text("kind", "pointwise"))
    settings = {name: section.number(name, getattr(usual, name)) for name in usual.settings}
    objective, weight = Objective(usual.kind, **settings), _above(section, "weight", 1.0)
    if not objective.soft:
        if "teacher" in section.keys:
            raise InputError(f"objective {objective.kind} has no teacher")
        return Aim(objective, None, weight)
    models = section.text_or_texts("teacher", ())
    if not models:
        raise InputError(f"objective {objective.kind} needs a teacher")
    scale, shift = section.number("scale", 1.0), section.number("shift", 0.0)
    pooling = section.text("pooling", None)
    pooled = parse_pooling(pooling) if pooling else None
    return Aim(objective, Teacher(models, scale, shift, pooled), weight)


def _draw(section: Section) -> Draw:
    each = section.text("each", "pair")
    return Draw(
        each,
        section.whole("texts", 1 if each == "pair" else 8, least=1),
        section.whole("take", None, least=1),
    )


def _columns(section: Section) -> Columns:
    names = Columns()
    return Columns(
        section.text("query_id", names.query_id),
        section.text("query", names.query),
        section.text("doc_id", names.doc_id),
        section.text("text", names.text),
        section.text("relevance", names.relevance),
    )


def _data_set(section: Section, usual: tuple[Aim, ...], usual_draw: Draw) -> DataSet:
    aims = _aims(section) if "objective" in section.keys else usual
    lists = _read(section.section("lists", {}), _draw) if "lists" in section.keys else usual_draw
    validation = section.number("validation", 0.0)
    if not 0 <= validation < 1:
        raise InputError(
            "share of queries is out of range", wanted="0 up to 1", found=str(validation)
        )
    compare = [aim.objective.kind for aim in aims if aim.objective.compares]
    if compare and lists.each == "pair":
        raise InputError(
            f"objective {compare[0]} compares texts of one query",
            remedy='lists = { each = "positive", texts = 8 }, or each = "query"',
        )
    documents = "documents" in section.keys
    judged = documents and bool({"queries", "qrels"} & set(section.keys))
    named = JUDGED if judged else JUDGED[:1]
    return DataSet(
        name=section.text("name"),
        files=tuple(map(section.text, named)) if documents else section.texts("files"),
        judged=judged,
        texts=documents and not judged,
        format=section.text("format", "") if documents else "",
        segments=_segments(section) if documents else "whole",
        passages=section.whole("passages", None, least=1),
        columns=Columns() if documents else _read(section.section("columns", {}), _columns),
        highest=section.whole("highest", 1, least=1),
        unjudged=None if documents else section.whole("unjudged", None),
        skip_bad=section.truth("skip_bad", False),
        licence=section.text("licence", "not stated"),
        chunk=section.whole("chunk", None, least=1),
        validation=validation,
        validation_queries=section.whole("validation_queries", None, least=1),
        draw=lists,
        aims=aims,
        weight=_above(section, "weight", 1.0),
    )


def _segments(section: Section) -> str:
    words = section.text("segments", "whole")
    parse_segmenter(words)
    return words


def _schedule(section: Section) -> Schedule:
    epochs, steps = section.whole("epochs", None, least=1), section.whole("steps", None, least=1)
    if (epochs is None) == (steps is None):
        raise InputError("how long is learnt must be said once", wanted="epochs or steps")
    precision = section.text("precision", "fp32")
    if precision not in ("fp32", "bf16"):
        raise InputError("unknown precision", wanted="fp32 or bf16", found=precision)
    return Schedule(
        epochs=epochs,
        steps=steps,
        batch=section.whole("batch", 32, least=1),
        accumulate=section.whole("accumulate", 1, least=1),
        rate=_above(section, "learning_rate", 2e-5),
        warmup=_above(section, "warmup", 0.1, least=0.0),
        decay=section.truth("decay", True),
        weight_decay=_above(section, "weight_decay", 0.01, least=0.0),
        clip=_above(section, "clip", 1.0),
        precision=precision,
        checkpoint=section.whole("checkpoint", None, least=1),
    )


def _validation(section: Section, usual: str) -> Validation:
    return Validation(
        section.text("measure", usual),
        section.whole("every", None, least=1),
        section.whole("patience", None, least=1),
    )


def _above(section: Section, key: str, default: float, least: float | None = None) -> float:
    """A number above 0, or of `least` or more."""
    value = section.number(key, default)
    if value <= 0 if least is None else value < least:
        wanted = "above 0" if least is None else f"{least:g} or more"
        raise InputError("out of range", where=section.where(key), wanted=wanted, found=str(value))
    return value
