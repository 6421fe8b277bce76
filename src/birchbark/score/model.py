"""Which scorer does a name or a directory stand for?"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from birchbark.checkpoint.heads import Parade, Pooling, by_token
from birchbark.checkpoint.named import DEFAULT_MODEL, locate
from birchbark.checkpoint.reader import Checkpoint
from birchbark.errors import CheckpointError
from birchbark.score.cross_encoder import CrossEncoderScorer
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.late_interaction import LateInteractionScorer
from birchbark.score.parade import ParadeScorer
from birchbark.score.precision import Precision
from birchbark.score.scorer import Scorer
from birchbark.score.session import NewSession, Session


def load_scorer(
    model: str | Path = DEFAULT_MODEL,
    threads: int | None = None,
    pooling: Pooling | None = None,
    precision: Precision = Precision.FP32,
    session: NewSession | None = None,
) -> Scorer:
    """The scorer of a model directory, or of a model that Birchbark or another package carries.

    An embedding model gives an EmbeddingScorer, a classifier a CrossEncoderScorer, one that
    aggregates passages a ParadeScorer. pooling: makes an embedding model of any encoder, from any
    of its layers, or, of its tokens, a LateInteractionScorer. precision: of the linear layers'
    arithmetic. session: runs the model instead of ONNX Runtime on this machine's processors, in
    float32. The network is never used. Raises CheckpointError for a directory that cannot be read,
    MissingPackageError for a packaged model whose package is not installed, and InputError where
    the session cannot have this precision.
    """
    checkpoint, run = open_model(model, pooling, precision, session)
    if by_token(checkpoint.head):
        return LateInteractionScorer(checkpoint, threads, run)
    if isinstance(checkpoint.head, Pooling):
        return EmbeddingScorer(checkpoint, threads, run)
    if isinstance(checkpoint.head, Parade):
        return ParadeScorer(checkpoint, threads, run)
    if checkpoint.head.compares:
        raise CheckpointError(
            "this model compares two texts, and judges none alone",
            where=str(model),
            remedy="it ranks anew what another model ranked: --duo",
        )
    return CrossEncoderScorer(checkpoint, threads, run)


def open_model(
    model: str | Path, pooling: Pooling | None, precision: Precision, session: NewSession | None
) -> tuple[Checkpoint, NewSession]:
    """The checkpoint of `model`, and what runs it; arguments and errors as `load_scorer`."""
    name = Path(model).name + precision.suffix
    checkpoint = Checkpoint.open(locate(model), name, pooling)
    return checkpoint, partial(session or Session, precision=precision)
