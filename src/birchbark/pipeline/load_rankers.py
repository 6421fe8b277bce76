"""How do stage options become rankers, with each model and score store opened only once?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from birchbark import defaults
from birchbark.checkpoint.heads import parse_pooling
from birchbark.combine.aggregate import parse_aggregation
from birchbark.combine.interpolate import Interpolation, Scale
from birchbark.combine.pairwise import parse_pairwise
from birchbark.errors import InputError
from birchbark.pipeline.compare_hits import Duo
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.stage_options import StageOptions
from birchbark.score.duo import DuoScorer, load_duo_scorer
from birchbark.score.load_scorer import load_scorer
from birchbark.score.precision import Precision
from birchbark.score.scorer import Scorer
from birchbark.score.session import SessionFactory
from birchbark.score_cache.cached_scorer import CachedScorer, cached
from birchbark.score_cache.store import ScoreStore
from birchbark.segment.by_name import parse_segmenter
from birchbark.segment.truncate import Limit


class RankerLoader:
    """Makes rankers from stage options; stages with the same model share it."""

    def __init__(self, threads: int | None = None, session: SessionFactory | None = None) -> None:
        """threads, session: how models are run; see `load_scorer`."""
        self._threads, self._session = threads, session
        self._scorers: dict[tuple[str, str | None, Precision], Scorer] = {}
        self._duo_scorers: dict[tuple[str, Precision], DuoScorer] = {}

    def ranker(self, options: StageOptions) -> Ranker:
        """Return the ranker of a stage.

        Raises InputError for an option with an unknown value or without effect, and CheckpointError
        for a model that cannot be loaded.
        """
        precision = Precision(options.precision)
        interpolation = Interpolation(options.first_stage_weight, Scale(options.first_stage_scale))
        aggregation = parse_aggregation(options.aggregate or defaults.AGGREGATION)
        scorer = self._scorer(options.model, options.pooling, precision)
        if scorer.width > 1 and options.aggregate:
            raise InputError(
                "aggregate has no effect: this model scores whole documents", found=options.model
            )
        default = defaults.SEGMENTS if scorer.width == 1 else defaults.DOCUMENT_SCORER_SEGMENTS
        segmenter = parse_segmenter(options.segments or default)
        precise = self._scorer(options.model, options.pooling, Precision.FP32)
        return Ranker(
            scorer,
            segmenter,
            aggregation,
            interpolation,
            options.depth,
            Limit(options.max_segments, options.max_length),
            self._scorer(options.embedding, None, Precision.FP32) if options.embedding else None,
            options.embedding_weight,
            None if precise is scorer else precise,
            duo=self._duo(options, precision) if options.duo else None,
        )

    def _scorer(self, model: str, pooling: str | None, precision: Precision) -> Scorer:
        key = model, pooling, precision
        if key not in self._scorers:
            parsed = parse_pooling(pooling) if pooling else None
            self._scorers[key] = load_scorer(model, self._threads, parsed, precision, self._session)
        return self._scorers[key]

    def _duo(self, options: StageOptions, precision: Precision) -> Duo:
        assert options.duo
        pairwise, key = parse_pairwise(options.duo_aggregate), (options.duo, precision)
        if key not in self._duo_scorers:
            self._duo_scorers[key] = load_duo_scorer(
                options.duo, self._threads, precision, self._session
            )
        scorer = self._duo_scorers[key]
        return Duo(scorer, scorer, options.duo_depth, pairwise, options.duo_max_comparisons)


@dataclass(frozen=True, slots=True)
class CachedRankers:
    """Rankers whose scores are stored on disk. scorers, stores: one per model."""

    rankers: tuple[Ranker, ...]
    scorers: tuple[CachedScorer, ...]
    stores: tuple[ScoreStore, ...]


@contextmanager
def with_score_caches(rankers: Sequence[Ranker], scores: Path) -> Iterator[CachedRankers]:
    """Yield `rankers` with scorers that store their scores in the directory `scores`."""
    stores: list[ScoreStore] = []
    scorers: dict[str, CachedScorer] = {}  # by fingerprint: rankers may share a model
    with ExitStack() as stack:

        def open_store(scorer: Scorer) -> ScoreStore:
            store = ScoreStore(scores, scorer, locked_by=stores[0] if stores else None)
            stores.append(stack.enter_context(store))
            return store

        def with_cache(scorer: Scorer) -> CachedScorer:
            return cached(scorer, scorers, open_store)

        cached_rankers = tuple(ranker.map_scorers(with_cache) for ranker in rankers)
        yield CachedRankers(cached_rankers, tuple(scorers.values()), tuple(stores))
