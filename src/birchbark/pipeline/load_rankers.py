"""How do stage options become rankers, and how are their scores stored?"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from birchbark import defaults
from birchbark.arguments import choice_of
from birchbark.combine.aggregate import Top, TopMean, parse_aggregation
from birchbark.combine.interpolate import Interpolation
from birchbark.combine.pairwise import parse_pairwise
from birchbark.errors import InputError
from birchbark.pipeline.loaded_models import LoadedModels
from birchbark.pipeline.settings.duo import Duo
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.settings.reading_plan import ReadingPlan
from birchbark.pipeline.stage_options import (
    ALL,
    AUTO,
    NONE,
    StageOptions,
    parse_count,
)
from birchbark.pipeline.stored.vector_scorer import bi_encoder, fast_copy
from birchbark.score.bert_scorer import BertScorer
from birchbark.score.precision import Precision, fastest_precision
from birchbark.score.scorer import Scorer
from birchbark.score_cache.cached_scorer import CachedScorer, ScoreCaches
from birchbark.score_cache.store import ScoreStore
from birchbark.section import Section
from birchbark.segment.by_name import parse_segmenter
from birchbark.segment.truncate import Limit


def load_ranker(**options: Any) -> Ranker:
    """Load the models of a ranker that re-ranks as a table [[stage]] with the same keys describes.

    Args:
        options: Keys of such a table (`birchbark ranker`), with the same defaults: model,
            pooling, depth, segments, aggregate, first_stage_weight, first_stage_scale,
            max_segments, max_length, query_tokens, embedding, read_segments, read_documents,
            read_pairs, embed_segments, embed_documents, embedding_weight, duo, duo_depth,
            duo_aggregate, duo_max_comparisons and precision; for example `segments="paragraphs"`.
            Numbers of segments, documents and pairs to read can also be "all".

    Returns:
        The ranker, whose attributes say what it reads and how it combines scores.

    Raises:
        InputError: There is no such option, or it has an unknown value or no effect.
        CheckpointError: A model does not exist or cannot be read.
    """
    given = {name: value for name, value in options.items() if value is not None}
    stage = StageOptions().updated(Section(given, "load_ranker"))
    return make_ranker(stage, LoadedModels())


def make_ranker(options: StageOptions, models: LoadedModels, *, auto_int8: bool = False) -> Ranker:
    """Return the ranker of a stage.

    models: loads the stage's models. auto_int8: whether the precision AUTO may be int8 on this
    machine; otherwise it is fp32. Raises InputError for an option with an unknown value or without
    effect, and CheckpointError for a model that cannot be loaded.
    """
    fast = auto_int8 and options.pooling is None and options.model in defaults.INT8_MODELS
    precision = _precision(options, fast=fast)
    interpolation = Interpolation(options.first_stage_weight, options.first_stage_scale)
    aggregation = parse_aggregation(options.aggregate or defaults.AGGREGATION)
    scorer = models.scorer(options.model, precision, options.pooling)
    if scorer.width > 1 and options.aggregate:
        raise InputError(
            "aggregate has no effect: this model scores whole documents", found=options.model
        )
    default = defaults.SEGMENTS if scorer.width == 1 else defaults.DOCUMENT_SCORER_SEGMENTS
    plan = _plan(options, scorer)
    rescores = precision is Precision.INT8 and plan.segments is None
    fp32 = Precision.FP32
    precise = models.scorer(options.model, fp32, options.pooling) if rescores else None
    embedding = _embedding(options, scorer)
    second = models.scorer(embedding) if embedding else None
    if second and second.kind == "cross-encoder":
        raise InputError(
            f"{embedding} is a cross-encoder, not an embedding model",
            remedy=f"set --embedding to an embedding model, or to {NONE}",
        )
    if second or 0 < options.first_stage_weight < 1:
        pooled = options.pooling is not None  # no model states the scale of another pooling
        _tell_unknown_scales([one for one in (None if pooled else scorer, second) if one])
    return Ranker(
        scorer,
        parse_segmenter(options.segments or default),
        aggregation,
        interpolation,
        options.depth,
        Limit(options.max_segments, options.max_length),
        second,
        _embedding_weight(options, scorer),
        precise,
        duo=_duo(options, models) if options.duo else None,
        plan=plan,
        fast_embedding=_fast_embedding(options, embedding, models, auto_int8=auto_int8),
        query_tokens=options.query_tokens,
        static=models.scorer(defaults.STATIC_EMBEDDING) if embedding else None,
    )


def _tell_unknown_scales(scorers: Sequence[Scorer]) -> None:
    """Warn of models that do not state the scale of their scores, which are to be mixed."""
    for scorer in scorers:
        if isinstance(scorer, BertScorer) and not scorer.checkpoint.scale.stated:
            warnings.warn(
                f"{scorer.checkpoint.name} does not state the scale of its scores: beside other "
                "scores they may count too much or too little. birchbark model calibrate fits it",
                stacklevel=3,
            )


def _embedding_weight(options: StageOptions, scorer: Scorer) -> float:
    """Return the weight that was chosen or else that the model states, or the default."""
    stated = scorer.checkpoint.embedding_weight if isinstance(scorer, BertScorer) else None
    weights = (options.embedding_weight, stated, defaults.EMBEDDING_WEIGHT)
    return next(weight for weight in weights if weight is not None)


def _duo(options: StageOptions, models: LoadedModels) -> Duo:
    assert options.duo
    pairwise = parse_pairwise(options.duo_aggregate)
    scorer = models.duo_scorer(options.duo, _precision(options, fast=False))
    return Duo(scorer, scorer, options.duo_depth, pairwise, options.duo_max_comparisons)


def _precision(options: StageOptions, *, fast: bool) -> Precision:
    """Return a model's precision. fast: whether AUTO is the fastest one, or FP32."""
    if options.precision != AUTO:
        return choice_of(Precision, options.precision, "precision")
    return fastest_precision() if fast else Precision.FP32


def _embedding(options: StageOptions, scorer: Scorer) -> str | None:
    """Return the embedding model: by default the bundled one, if `scorer` can be mixed with it."""
    name = options.embedding
    if name is None:
        mixes = scorer.width == 1 and bi_encoder(scorer) is None
        name = defaults.EMBEDDING if mixes else NONE
    return None if name == NONE else name


def _fast_embedding(
    options: StageOptions, embedding: str | None, models: LoadedModels, *, auto_int8: bool
) -> Scorer | None:
    """Return the copy of the embedding that reads documents; None if none does in its place."""
    if embedding is None:
        return None
    if options.precision == AUTO:
        return fast_copy(embedding, models.scorer) if auto_int8 else None
    chosen = _precision(options, fast=False)
    return models.scorer(embedding, chosen) if chosen is Precision.INT8 else None


def segments_read(options: StageOptions) -> str:
    """Return how many segments of a document are read, or ALL, by a model that can choose.

    All are read if a limit says what is read, or if the aggregation depends on all.
    """
    limited = options.max_segments is not None or options.max_length is not None
    aggregation = parse_aggregation(options.aggregate or defaults.AGGREGATION)
    if options.read_segments:
        return options.read_segments
    if limited or not isinstance(aggregation, (Top, TopMean)):
        return ALL
    return str(max(len(aggregation.by_rank), int(defaults.READ_SEGMENTS)))


def pairs_read(options: StageOptions, segments: str) -> str:
    """Return how many segments are read in total, or ALL. segments: those of a document."""
    return options.read_pairs or (ALL if segments == ALL else defaults.READ_PAIRS)


def _plan(options: StageOptions, scorer: Scorer) -> ReadingPlan:
    """Return the reading plan of a stage.

    By default all segments are read if the model scores whole documents or is an embedding model;
    otherwise see `segments_read`. If all are, the embedding reads all candidates. So does an
    embedding other than the bundled one, since static scores are on the scale of that one.
    """
    chooses = scorer.width == 1 and bi_encoder(scorer) is None
    segments = segments_read(options) if chooses else options.read_segments or ALL
    pairs = pairs_read(options, segments)
    reads_all = (segments, options.read_segments) == (ALL, None)
    embedded = options.embed_segments or (ALL if reads_all else defaults.EMBED_SEGMENTS)
    other_scale = _embedding(options, scorer) not in (None, defaults.EMBEDDING)
    embedded_documents = options.embed_documents or (
        ALL if reads_all or other_scale else defaults.EMBED_DOCUMENTS
    )
    return ReadingPlan(
        parse_count(segments, "read_segments"),
        parse_count(options.read_documents, "read_documents"),
        parse_count(pairs, "read_pairs"),
        parse_count(embedded, "embed_segments"),
        embedded_documents=parse_count(embedded_documents, "embed_documents"),
    )


@dataclass(frozen=True, slots=True)
class CachedRankers:
    """Rankers whose scores are stored on disk. scorers, stores: one per model."""

    rankers: tuple[Ranker, ...]
    scorers: tuple[CachedScorer, ...]
    stores: tuple[ScoreStore, ...]


@contextmanager
def with_score_caches(
    rankers: Sequence[Ranker], scores: Path, *, known: Path | None = None, wait: float = 0
) -> Iterator[CachedRankers]:
    """Yield `rankers` with scorers that store their scores in the directory `scores`.

    known, wait: see `ScoreStore`.
    """
    stores: list[ScoreStore] = []
    with ExitStack() as stack:

        def open_store(scorer: Scorer) -> ScoreStore:
            shared = stores[0] if stores else None
            store = ScoreStore(scores, scorer, locked_by=shared, wait=wait, known=known)
            stores.append(stack.enter_context(store))
            return store

        caches = ScoreCaches(open_store, lambda scorer: scorer.fingerprint)
        cached_rankers = tuple(ranker.map_scorers(caches.cached) for ranker in rankers)
        yield CachedRankers(cached_rankers, caches.scorers, tuple(stores))
