"""Which ways to search are compared, on an index with which vectors?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from birchbark import Ranker, defaults, load_scorer
from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.pipeline.load_rankers import make_ranker
from birchbark.pipeline.loaded_models import LoadedModels
from birchbark.pipeline.stage_options import StageOptions
from birchbark.score.precision import Precision
from birchbark.score.scorer import Scorer
from birchbark.score.session import OnnxSession


class Vectors(Enum):
    """Which vectors an index has: none, static ones as when just indexed, or the embedding's, too.

    The last ones are computed by `birchbark index attach`.
    """

    NONE = "no vectors"
    STATIC = "just indexed"
    EMBEDDING = "with the embedding's vectors"


@dataclass(frozen=True, slots=True)
class Row:
    """One way to search.

    name: unique. vectors: those of the index that is searched. options: see `load_ranker`; None for
    BM25 alone.
    """

    name: str
    vectors: Vectors
    options: Mapping[str, Any] | None = field(default_factory=dict)

    def ranker(self, models: LoadedModels) -> Ranker | None:
        """Return the ranker; None for the first stage alone."""
        if self.options is None:
            return None
        return make_ranker(StageOptions(**self.options), models, auto_int8=True)


BM25 = Row("BM25 alone", Vectors.NONE, None)
DEFAULTS = tuple(Row(f"default, {vectors.value}", vectors) for vectors in Vectors)
ROWS = (
    BM25,
    Row("embedding alone", Vectors.EMBEDDING, {"model": defaults.EMBEDDING}),
    *DEFAULTS,
    Row("default in fp32, with the embedding's vectors", Vectors.EMBEDDING, {"precision": "fp32"}),
    *(
        Row(f"{defaults.SMALL_MODEL}, {vectors.value}", vectors, {"model": defaults.SMALL_MODEL})
        for vectors in (Vectors.STATIC, Vectors.EMBEDDING)
    ),
)


class NewScorers(LoadedModels):
    """Scorers that know nothing of each other's texts, and share a session per model.

    A scorer remembers vectors of texts, and a searcher remembers scores, so a query is only timed
    as a new one if both are new. Loading a model takes a second.
    """

    def __init__(self) -> None:
        super().__init__()
        self._opened: dict[tuple[str, Precision], OnnxSession] = {}

    def scorer(
        self, model: str, precision: Precision = Precision.FP32, pooling: str | None = None
    ) -> Scorer:
        """Return a new scorer of the model, which remembers nothing."""
        return load_scorer(model, pooling=pooling, precision=precision, session=self._open)

    def _open(
        self,
        checkpoint: Checkpoint,
        threads: int | None = None,
        *,
        precision: Precision = Precision.FP32,
    ) -> OnnxSession:
        key = str(checkpoint.directory), precision
        if key not in self._opened:
            self._opened[key] = OnnxSession(checkpoint, threads, precision=precision)
        return self._opened[key]
