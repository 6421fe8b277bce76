"""How is a training run's TOML file read and validated?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from birchbark import defaults
from birchbark.checkpoint.heads import parse_pooling
from birchbark.errors import InputError
from birchbark.pairs.read import Columns
from birchbark.pairs.sources import PairSource, SourceKind
from birchbark.score.precision import Precision
from birchbark.section import Section
from birchbark.segment.by_name import parse_segmenter
from birchbark.train.check_config import check_config, check_kind
from birchbark.train.config import (
    AUTO,
    BF16,
    FP32,
    KINDS,
    TF32,
    DataSetConfig,
    HeldOutQueries,
    LossTerm,
    MiningSettings,
    Schedule,
    Teacher,
    TrainingConfig,
    ValidationSettings,
)
from birchbark.train.hidden_state_distillation import HiddenStateSettings
from birchbark.train.initialise import HEADS, Initialisation
from birchbark.train.lists import ListSampling
from birchbark.train.masking import LOG_LIKELIHOOD, Masking
from birchbark.train.objectives import Objective

T = TypeVar("T")


def read_training(values: Mapping[str, Any], path: Path) -> TrainingConfig:
    """Parse `values`, the contents of the TOML file at `path`.

    Raises InputError, which names the file and the key, if a setting is invalid or unknown, or if
    settings contradict each other.
    """
    top = Section(values, str(path))
    kind = top.one_of("kind", KINDS) if "kind" in top.keys else None
    match = top.section("match", {})
    masking = _read(top.section("masked"), _masking) if "masked" in top.keys else None
    distillation = _read(match, _distillation) if match.keys else None
    loss_terms = _loss_terms(top)
    if "objective" not in top.keys and not masking:
        loss_terms = (LossTerm(Objective()),)
    lists = _read(top.section("lists", {}), _lists)
    data = tuple(_read(s, _data_set, loss_terms, lists) for s in top.sections("data"))
    kinds = {term.objective.kind for config in data for term in config.loss_terms}
    initialisation = replace(
        _read(top.section("model", {}), _initialisation),
        duo="duo" in kinds,
        masked=masking is not None,
    )
    training = TrainingConfig(
        path=path,
        title=top.text("title"),
        base=top.text("base"),
        seed=top.integer("seed", 0),
        initialisation=initialisation,
        max_length=top.integer("max_length", defaults.TRAINING_MAX_LENGTH, minimum=8),
        query_length=top.integer("query_length", None, minimum=1),
        data=data,
        schedule=_read(top.section("schedule"), _schedule),
        validation=_read(
            top.section("validation", {}),
            _validation,
            LOG_LIKELIHOOD if masking else defaults.VALIDATION_MEASURE,
        ),
        distillation=distillation,
        masking=masking,
        mining=_read(top.section("mining"), _mining) if "mining" in top.keys else None,
        held_out=_read(top.section("held_out"), _held_out) if "held_out" in top.keys else None,
        values={key: value for key, value in values.items() if key != "kind"},
    )
    top.reject_unknown_keys()
    check_config(training)
    if kind is not None:
        check_kind(training, kind)
    return training


def _read(section: Section, parse: Callable[..., T], *arguments: Any) -> T:
    """Parse `section`. Errors name the section; a key that `parse` does not read is an error."""
    try:
        value = parse(section, *arguments)
    except InputError as error:
        raise error.at(section.where()) from None
    section.reject_unknown_keys()
    return value


def _masking(section: Section) -> Masking:
    return Masking(section.number("share", Masking().share), section.number("query", None))


def _mining(section: Section) -> MiningSettings:
    every = section.integer("every", minimum=1)
    return MiningSettings(
        every,
        section.integer("start", every, minimum=0),
        section.integer("depth", defaults.MINING_DEPTH, minimum=1),
        section.integer("keep", None, minimum=1),
        section.number("margin", 0.0),
    )


def _held_out(section: Section) -> HeldOutQueries:
    folds = section.text("folds", "")
    fold = section.integer("fold", minimum=1) if folds else None
    return HeldOutQueries(section.text("queries"), folds, fold)


def _initialisation(section: Section) -> Initialisation:
    return Initialisation(
        layers=section.integer("layers", None, minimum=1),
        trainable=section.text("learns", defaults.LEARNS),
        dropout=section.number("dropout", defaults.DROPOUT),
        from_layers=section.integers("from_layers", (), minimum=1),
        hidden=section.integer("hidden", None, minimum=1),
        heads=section.integer("heads", None, minimum=1),
        intermediate=section.integer("intermediate", None, minimum=1),
        head=section.one_of("head", HEADS, defaults.HEAD),
        parade=section.text("parade", None),
        passage_vectors=section.text("passage_vectors", defaults.PASSAGE_VECTORS),
        pooling=section.text("pooling", None),
    )


def _distillation(section: Section) -> HiddenStateSettings:
    return HiddenStateSettings(
        section.text("teacher"),
        section.number("embeddings", 1.0),
        section.number("hidden", 1.0),
        section.number("attention", 1.0),
        section.integers("layers", (), minimum=1),
        section.integer("steps", None, minimum=1),
    )


def _loss_terms(section: Section) -> tuple[LossTerm, ...]:
    """Parse the key `objective`: one table or a list of tables; empty if the key is missing."""
    return tuple(_read(table, _loss_term) for table in section.table_or_tables("objective"))


def _loss_term(section: Section) -> LossTerm:
    default = Objective(section.text("kind", defaults.OBJECTIVE))
    settings = {name: section.number(name, getattr(default, name)) for name in default.settings}
    objective, weight = Objective(default.kind, **settings), _positive(section, "weight", 1.0)
    if "teacher" not in section.keys:
        if objective.needs_teacher:
            raise InputError(f"objective {objective.kind} needs a teacher")
        return LossTerm(objective, None, weight)
    if not (objective.needs_teacher or objective.can_use_teacher):
        raise InputError(f"objective {objective.kind} takes no teacher")
    models = section.text_or_texts("teacher")
    scale, shift = 1.0, 0.0
    if objective.needs_teacher:
        scale, shift = section.number("scale", scale), section.number("shift", shift)
    name = section.text("pooling", None)
    pooling = parse_pooling(name) if name else None
    precisions = [precision.value for precision in Precision]
    precision = Precision(section.one_of("precision", precisions, Precision.FP32.value))
    return LossTerm(objective, Teacher(models, scale, shift, pooling, precision), weight)


def _lists(section: Section) -> ListSampling:
    each = section.text("each", "pair")
    return ListSampling(
        each,
        section.integer("texts", 1 if each == "pair" else defaults.LIST_TEXTS, minimum=1),
        section.integer("take", None, minimum=1),
    )


def _columns(section: Section) -> Columns:
    names = ("query_id", "query", "doc_id", "text", "relevance")
    return Columns(*(section.text(name, getattr(Columns(), name)) for name in names))


def _data_set(
    section: Section, default_terms: tuple[LossTerm, ...], default_lists: ListSampling
) -> DataSetConfig:
    keys = section.keys
    loss_terms = _loss_terms(section) if "objective" in keys else default_terms
    lists = _read(section.section("lists"), _lists) if "lists" in keys else default_lists
    validation = section.number("validation", 0.0)
    if not 0 <= validation < 1:
        raise InputError(
            "share of queries is out of range",
            wanted="at least 0 and below 1",
            found=str(validation),
        )
    comparing = [term.objective.kind for term in loss_terms if term.objective.needs_several_texts]
    if comparing and lists.each == "pair":
        raise InputError(
            f"objective {comparing[0]} compares texts of one query, so lists need several texts",
            remedy='lists = { each = "positive", texts = 8 }, or each = "query"',
        )
    return DataSetConfig(
        name=section.text("name"),
        source=_source(section),
        segments=_segments(section) if "documents" in keys and "triples" not in keys else "whole",
        passages=section.integer("passages", None, minimum=1),
        licence=section.text("licence", "not stated"),
        chunk=section.integer("chunk", None, minimum=1),
        validation=validation,
        validation_queries=section.integer("validation_queries", None, minimum=1),
        lists=lists,
        loss_terms=loss_terms,
        weight=_positive(section, "weight", 1.0),
    )


def _source(section: Section) -> PairSource:
    """Parse where pairs come from; see SourceKind for the keys of each kind."""
    keys = set(section.keys)
    by_kind = {
        SourceKind.ID_TRIPLES: ("triples", "documents", "queries"),
        SourceKind.TRIPLES: ("triples",),
        SourceKind.JUDGED: ("documents", "queries", "qrels"),
        SourceKind.DOCUMENTS: ("documents",),
    }
    if "triples" in keys:
        is_by_id = not {"documents", "queries"}.isdisjoint(keys)
        kind = SourceKind.ID_TRIPLES if is_by_id else SourceKind.TRIPLES
    elif "documents" in keys:
        is_judged = not {"queries", "qrels"}.isdisjoint(keys)
        kind = SourceKind.JUDGED if is_judged else SourceKind.DOCUMENTS
    else:
        return PairSource(
            section.texts("files"),
            columns=_read(section.section("columns", {}), _columns),
            highest=section.integer("highest", 1, minimum=1),
            unjudged=section.integer("unjudged", None),
            skip_bad=section.boolean("skip_bad", False),
        )
    return PairSource(
        tuple(map(section.text, by_kind[kind])),
        kind,
        format=section.text("format", "") if "documents" in keys else "",
        highest=section.integer("highest", 1, minimum=1) if kind is SourceKind.JUDGED else 1,
        skip_bad=section.boolean("skip_bad", False),
        limit=None if kind is SourceKind.DOCUMENTS else section.integer("limit", None, minimum=1),
    )


def _segments(section: Section) -> str:
    name = section.text("segments", "whole")
    parse_segmenter(name)
    return name


def _schedule(section: Section) -> Schedule:
    epochs, steps = (
        section.integer("epochs", None, minimum=1),
        section.integer("steps", None, minimum=1),
    )
    if (epochs is None) == (steps is None):
        raise InputError("exactly one of epochs and steps must be set")
    precision = section.text("precision", defaults.TRAINING_PRECISION)
    if precision not in (FP32, TF32, BF16, AUTO):
        wanted = f"{FP32}, {TF32}, {BF16} or {AUTO}"
        raise InputError("unsupported precision", wanted=wanted, found=precision)
    return Schedule(
        epochs=epochs,
        steps=steps,
        batch=section.integer("batch", defaults.BATCH, minimum=1),
        accumulate=section.integer("accumulate", 1, minimum=1),
        learning_rate=_positive(section, "learning_rate", defaults.LEARNING_RATE),
        warmup=_positive(section, "warmup", defaults.WARMUP, or_zero=True),
        decay=section.boolean("decay", True),
        weight_decay=_positive(section, "weight_decay", defaults.WEIGHT_DECAY, or_zero=True),
        clip=_positive(section, "clip", defaults.CLIP),
        precision=precision,
        batch_tokens=section.integer("batch_tokens", defaults.TRAINING_BATCH_TOKENS, minimum=1),
        recompute=section.boolean("recompute", False),
        save_every=section.integer("save_every", None, minimum=1),
    )


def _validation(section: Section, default_measure: str) -> ValidationSettings:
    return ValidationSettings(
        section.text("measure", default_measure),
        section.integer("every", None, minimum=1),
        section.integer("patience", None, minimum=1),
        section.one_of("keep", ("best", "last"), defaults.KEEP) == "last",
    )


def _positive(section: Section, key: str, default: float, *, or_zero: bool = False) -> float:
    """Return the number at `key`. Raises InputError unless it is above 0, or 0 with `or_zero`."""
    value = section.number(key, default)
    if value < 0 or (value == 0 and not or_zero):
        wanted = "0 or more" if or_zero else "above 0"
        raise InputError("out of range", where=section.where(key), wanted=wanted, found=str(value))
    return value
