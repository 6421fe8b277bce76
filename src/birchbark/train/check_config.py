"""Which settings of a training run contradict each other?"""

from __future__ import annotations

from birchbark import defaults
from birchbark.errors import InputError
from birchbark.train.config import ADAPTATION, DISTILLATION, LOSS, RANKING, RELEMB, TrainingConfig
from birchbark.train.masking import LOG_LIKELIHOOD

NEEDS = {  # of each kind
    RANKING: "pairs or judgments, without a teacher and without a table [masked]",
    DISTILLATION: "a table [match], or an objective with a teacher",
    ADAPTATION: "a table [masked] without the key query, and [[data]] with documents only",
    RELEMB: "masked.query, and [[data]] of query–text pairs",
}


def check_kind(training: TrainingConfig, kind: str) -> None:
    """Raise InputError if a configuration is not of the kind, one of KINDS, that it states."""
    if kind != training.kind:
        raise InputError(
            f"this is no {kind}",
            where=f"{training.path}: kind",
            wanted=f"{NEEDS[kind]}, or kind = {training.kind!r}",
        )


def check_config(training: TrainingConfig) -> None:
    """Raise InputError if settings of a training run contradict each other, or have no effect."""
    for check in (
        _check_names,
        _check_query_length,
        _check_objectives,
        _check_recompute,
        _check_mining,
        _check_parade,
        _check_bi_encoder,
        _check_masked,
        _check_validation,
    ):
        check(training)
    if training.schedule.steps is not None:
        check_steps(training, training.schedule.steps)


def check_steps(training: TrainingConfig, steps: int) -> None:
    """Raise InputError for a setting that a training run of so many steps is too short for."""
    warmup, mining, match = training.schedule.warmup, training.mining, training.distillation
    begin = "start" if "start" in training.values.get("mining", {}) else "every"
    for key, value, longest in (
        ("schedule.warmup", warmup if warmup >= 1 else 0, steps - 1),
        (f"mining.{begin}", mining.start if mining else 0, steps - 1),
        ("match.steps", (match and match.steps) or 0, steps),
    ):
        if value > longest:
            raise InputError(
                f"the training run has {steps:,} steps",
                where=f"{training.path}: {key}",
                wanted=f"at most {longest:,}",
                found=f"{value:,g}",
            )


def _check_names(training: TrainingConfig) -> None:
    """Raise InputError if there is no data set, or if two data sets share a name."""
    names = [config.name for config in training.data]
    if not names or len(set(names)) < len(names):
        raise InputError(
            "data sets are missing or share a name",
            where=f"{training.path}: data",
            wanted="one or more [[data]] tables with distinct names",
        )


def _check_query_length(training: TrainingConfig) -> None:
    """Raise InputError for queries that may be longer than an input, which limits nothing."""
    if training.query_length and training.query_length >= training.max_length:
        raise InputError(
            "query_length has no effect: inputs are as short",
            where=f"{training.path}: query_length",
            wanted=f"below max_length, {training.max_length}",
            found=str(training.query_length),
        )


def _check_objectives(training: TrainingConfig) -> None:
    """Raise InputError without an objective, and for duo with other objectives or PARADE."""
    objectives, match = training.objectives, training.distillation
    if not (objectives or match or training.masking):
        wanted = "an objective, or a table [match] or [masked]"
        raise InputError("no objective", where=str(training.path), wanted=wanted)
    if match and training.initialisation.trainable in ("head", "output"):
        raise InputError(
            "[match] trains layers, which stay as they are",
            where=f"{training.path}: model.learns",
            wanted="more than the head",
            found=training.initialisation.trainable,
        )
    if "objective" in training.values and all("objective" in d for d in training.values["data"]):
        raise InputError(
            "the objective has no effect: every data set has its own",
            where=f"{training.path}: objective",
        )
    without = any(not data.loss_terms for data in training.data)
    for data in training.data:
        if not data.loss_terms and not (match or training.masking):
            raise InputError(
                "nothing is learned from these pairs",
                where=f"{training.path}: data {data.name}",
                wanted="an objective, for these pairs or for all",
                remedy="leave the data set out, or give it another objective",
            )
    if match and match.steps is not None and without:
        raise InputError(
            "match.steps needs an objective, from which later steps learn",
            where=str(training.path),
        )
    if match and match.layers and not (match.hidden or match.attention):
        raise InputError(
            "layers has no effect without the losses of hidden states and attention",
            where=f"{training.path}: match",
        )
    if training.validation.patience and not (training.masking or objectives):
        raise InputError(
            "patience needs an objective: with [match] alone, the ranking is not trained",
            where=f"{training.path}: validation",
        )
    initialisation = training.initialisation
    by_data = [[term.objective.kind for term in data.loss_terms] for data in training.data]
    if initialisation.duo and (initialisation.parade or any(k != ["duo"] for k in by_data)):
        raise InputError(
            "objective duo cannot be combined with other objectives, or none, or PARADE",
            where=str(training.path),
            found=", ".join(kind for kinds in by_data for kind in kinds or ["none"]),
        )


def _check_recompute(training: TrainingConfig) -> None:
    """Raise InputError for recomputed layers beside distillation, which needs their values."""
    if training.schedule.recompute and training.distillation:
        raise InputError(
            "recompute cannot be combined with [match], which compares what layers compute",
            where=f"{training.path}: schedule.recompute",
            remedy="lower schedule.batch_tokens to save memory",
        )


def _check_mining(training: TrainingConfig) -> None:
    """Raise InputError for mining without lists of a relevant text and negatives."""
    initialisation = training.initialisation
    if not training.mining:
        return
    where = f"{training.path}: mining"
    if training.masking or initialisation.parade or initialisation.duo:
        raise InputError("mining cannot be combined with masked, parade or duo", where=where)
    if others := [data.name for data in training.data if data.lists.each != "positive"]:
        raise InputError(
            "mining finds negatives for relevant texts",
            where=where,
            wanted='lists = { each = "positive", texts = 8 }',
            found=f"other lists in data {others[0]}",
        )


def _check_parade(training: TrainingConfig) -> None:
    """Raise InputError for settings that contradict PARADE, which scores whole documents."""
    parade = training.initialisation.parade
    if parade and training.distillation:
        raise InputError(
            "[match] cannot be combined with PARADE",
            where=str(training.path),
            remedy="distil scores, with an objective that has a teacher",
        )
    if not parade and training.initialisation.passage_vectors != defaults.PASSAGE_VECTORS:
        raise InputError(
            "passage_vectors has no effect without parade", where=f"{training.path}: model"
        )
    if not parade and any(data.passages for data in training.data):
        raise InputError(
            "passages has no effect without model.parade", where=f"{training.path}: data"
        )
    if parade and any(data.chunk for data in training.data):
        raise InputError(
            "chunk cannot be combined with PARADE, which reads whole documents",
            where=str(training.path),
        )


def _check_bi_encoder(training: TrainingConfig) -> None:
    """Raise InputError for settings that contradict a bi-encoder.

    These are losses on single texts, and everything that needs query and text in one input.
    """
    initialisation, where = training.initialisation, f"{training.path}: model.pooling"
    if not initialisation.pooling:
        return
    if training.distillation or training.masking or initialisation.duo:
        raise InputError("a bi-encoder cannot be combined with match, masked or duo", where=where)
    for objective in training.objectives:
        if not objective.needs_several_texts:
            raise InputError(
                "a bi-encoder needs an objective that compares texts",
                where=where,
                found=f"objective {objective.kind}",
                remedy='objective = { kind = "softmax" }, with lists of several texts',
            )


def _check_masked(training: TrainingConfig) -> None:
    """Raise InputError for settings that contradict masked language modelling.

    Documents without queries are valid only for masked language modelling of single texts.
    """
    masking, initialisation = training.masking, training.initialisation
    texts_only = masking is not None and masking.query is None
    for data in training.data:
        where = f"{training.path}: data {data.name}"
        if not data.source.has_queries and not texts_only:
            wanted = "queries and qrels, or a table [masked] without the key query"
            raise InputError("documents without queries", where=where, wanted=wanted)
        if texts_only and data.source.has_queries:
            raise InputError(
                "[masked] without the key query is trained on documents",
                where=where,
                wanted="documents, without queries and qrels",
            )
        if masking and (data.loss_terms or data.chunk or data.lists.each != "pair"):
            raise InputError(
                "[masked] cannot be combined with objective, lists or chunk", where=where
            )
    for key in ("query_length", "held_out"):
        if texts_only and getattr(training, key) is not None:
            raise InputError(
                f"{key} has no effect on documents, which have no queries",
                where=f"{training.path}: {key}",
            )
    measure, where = training.validation.measure, f"{training.path}: validation.measure"
    if (measure == LOG_LIKELIHOOD) != bool(masking):
        wanted = (
            f"{LOG_LIKELIHOOD}, the only measure with [masked]" if masking else "a ranking measure"
        )
        raise InputError("unsuitable measure", where=where, wanted=wanted)
    taught = any(data.teachers for data in training.data)
    if measure == LOSS and (taught or initialisation.duo or not training.objectives):
        wanted = "a ranking measure: held-out pairs have no loss here"
        raise InputError("unsuitable measure", where=where, wanted=wanted)
    if masking and initialisation.trainable == "output":
        raise InputError(
            '[masked] cannot be combined with learns = "output"', where=str(training.path)
        )
    if masking and initialisation.head == "new output":
        raise InputError(
            '[masked] cannot be combined with head = "new output": its output is the embeddings',
            where=f"{training.path}: model.head",
        )
    if masking and (training.distillation or initialisation.parade or initialisation.duo):
        raise InputError(
            "[masked] cannot be combined with match, parade or duo", where=str(training.path)
        )


def _check_validation(training: TrainingConfig) -> None:
    """Raise InputError for settings of validation that need held-out queries, without any."""
    for data in training.data:
        if data.validation_queries is not None and not data.validation:
            raise InputError(
                "validation_queries needs held-out queries",
                where=f"{training.path}: data {data.name}",
                remedy="set validation = 0.1",
            )
    stated = training.values.get("validation", {})
    if any(data.validation for data in training.data):
        return
    if key := next((key for key in ("measure", "patience") if key in stated), None):
        raise InputError(
            f"{key} needs held-out queries",
            where=f"{training.path}: validation",
            remedy="set validation = 0.1 in a data set",
        )
