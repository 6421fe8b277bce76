"""How do the words of stages become Rankers? Each model and each store of scores is opened once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from birchbark.checkpoint.heads import parse_pooling
from birchbark.combine.aggregate import parse_aggregation
from birchbark.combine.interpolate import Interpolation, Scale
from birchbark.combine.pairwise import parse_pairwise
from birchbark.errors import InputError
from birchbark.pipeline.duo import Duo
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.stage_words import StageWords
from birchbark.remember.remembering import Remembering
from birchbark.remember.store import ScoreStore
from birchbark.score.duo import DuoScorer, load_duo
from birchbark.score.model import load_scorer
from birchbark.score.precision import Precision
from birchbark.score.scorer import Scorer
from birchbark.score.session import NewSession
from birchbark.segment.limit import Limit
from birchbark.segment.named import parse_segmenter

USUAL_SEGMENTS, USUAL_PASSAGES = "sentences", "windows:150/50"
USUAL_AGGREGATION = "top:1,0.5,0.25"


class Opener:
    """Opens models by their names; several stages that name one share it."""

    def __init__(self, threads: int | None = None, session: NewSession | None = None) -> None:
        """threads, session: of all models, as `load_scorer` takes them."""
        self._threads, self._session = threads, session
        self._scorers: dict[tuple[str, str | None, Precision], Scorer] = {}
        self._duos: dict[tuple[str, Precision], DuoScorer] = {}

    def ranker(self, words: StageWords) -> Ranker:
        """What `words` name; InputError for words that name nothing, or that would do nothing."""
        precision = Precision(words.precision)
        interpolation = Interpolation(words.first_stage_weight, Scale(words.first_stage_scale))
        aggregation = parse_aggregation(words.aggregate or USUAL_AGGREGATION)
        scorer = self._scorer(words.model, words.pooling, precision)
        if scorer.width > 1 and words.aggregate:
            raise InputError(
                "aggregate does nothing: this model judges documents as a whole", found=words.model
            )
        usual = USUAL_SEGMENTS if scorer.width == 1 else USUAL_PASSAGES
        segmenter = parse_segmenter(words.segments or usual)
        exact = self._scorer(words.model, words.pooling, Precision.FP32)
        return Ranker(
            scorer,
            segmenter,
            aggregation,
            interpolation,
            words.depth,
            Limit(words.max_segments, words.max_length),
            self._scorer(words.embedding, None, Precision.FP32) if words.embedding else None,
            words.embedding_weight,
            None if exact is scorer else exact,
            duo=self._duo(words, precision) if words.duo else None,
        )

    def _scorer(self, model: str, pooling: str | None, precision: Precision) -> Scorer:
        key = model, pooling, precision
        if key not in self._scorers:
            pooled = parse_pooling(pooling) if pooling else None
            self._scorers[key] = load_scorer(model, self._threads, pooled, precision, self._session)
        return self._scorers[key]

    def _duo(self, words: StageWords, precision: Precision) -> Duo:
        assert words.duo
        pairwise, key = parse_pairwise(words.duo_aggregate), (words.duo, precision)
        if key not in self._duos:
            self._duos[key] = load_duo(words.duo, self._threads, precision, self._session)
        comparer = self._duos[key]
        return Duo(comparer, comparer, words.duo_depth, pairwise, words.duo_most)


@dataclass(frozen=True, slots=True)
class RememberedRankers:
    """Rankers whose scores are kept. asked, stores: of the models, each once."""

    rankers: tuple[Ranker, ...]
    asked: tuple[Remembering, ...]
    stores: tuple[ScoreStore, ...]


@contextmanager
def remembering(rankers: Sequence[Ranker], scores: Path) -> Iterator[RememberedRankers]:
    """`rankers`, which keep their scores in the folder `scores`, and ask it first."""
    stores: list[ScoreStore] = []
    asked: dict[str, Remembering] = {}  # by fingerprint: two roles may have one model
    with ExitStack() as stack:

        def kept(scorer: Scorer) -> Remembering:
            if scorer.fingerprint not in asked:
                store = ScoreStore(scores, scorer, under=stores[0] if stores else None)
                stores.append(stack.enter_context(store))
                asked[scorer.fingerprint] = Remembering(scorer, store)
            return asked[scorer.fingerprint]

        own = tuple(one.by(kept) for one in rankers)
        yield RememberedRankers(own, tuple(asked.values()), tuple(stores))
