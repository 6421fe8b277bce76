"""How is the scorer for a model loaded?"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path

from birchbark import defaults
from birchbark.arguments import choice_of
from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.heads import Parade, Pooling, is_per_token, parse_pooling
from birchbark.checkpoint.locate import locate
from birchbark.errors import CheckpointError
from birchbark.score.cross_encoder import CrossEncoderScorer
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.late_interaction import LateInteractionScorer
from birchbark.score.parade import ParadeScorer
from birchbark.score.precision import Precision
from birchbark.score.scorer import Scorer
from birchbark.score.session import OnnxSession, SessionFactory
from birchbark.score.static_session import StaticSession


def load_scorer(
    model: str | Path = defaults.MODEL,
    threads: int | None = None,
    pooling: Pooling | str | None = None,
    precision: Precision | str = Precision.FP32,
    session: SessionFactory | None = None,
) -> Scorer:
    """Load the scorer for a model, without using the network.

    The model's head determines the scorer: a CrossEncoderScorer for a classifier, an
    EmbeddingScorer for an embedding model, a LateInteractionScorer for a model with a vector per
    token (ColBERT), a ParadeScorer for a model that aggregates passages.

    Args:
        model: Name of a bundled or installed model, hub id of a downloaded model, or path of a
            model directory; a Path is always a directory. Default: the bundled cross-encoder,
            "birchbark-minilm-l6".
        threads: CPU threads, at least 1. Default: OMP_NUM_THREADS, or one per available
            processor.
        pooling: How the token vectors of a layer become a text's, instead of the model's own head:
            "cls", "mean" or "max", for an EmbeddingScorer, or "tokens", for a
            LateInteractionScorer; with a layer as in "mean:11". Default: the model's own head.
        precision: Arithmetic of the linear layers: "fp32", or "int8", which is faster and
            approximate; with a session on a GPU also "bf16" and "fp16". Default: "fp32".
        session: Opens the session that runs the model, for example
            `birchbark.score.dynamic_batching.dynamic_batcher()`, which batches the texts of several
            threads together. Default: ONNX Runtime on the CPU.

    Raises:
        CheckpointError: The model does not exist, cannot be read, or compares two texts (duoBERT;
            see load_duo_scorer).
        MissingPackageError: The Python package that contains the model is not installed.
        InputError: There is no such pooling or precision, the session does not support the
            precision, or `threads` is below 1.
    """
    pooling = parse_pooling(pooling) if isinstance(pooling, str) else pooling
    checkpoint, open_session = open_model(
        model, pooling, choice_of(Precision, precision, "precision"), session
    )
    if is_per_token(checkpoint.head):
        return LateInteractionScorer(checkpoint, threads, open_session)
    if isinstance(checkpoint.head, Pooling):
        return EmbeddingScorer(checkpoint, threads, open_session)
    if isinstance(checkpoint.head, Parade):
        return ParadeScorer(checkpoint, threads, open_session)
    if checkpoint.head.is_duo:
        raise CheckpointError(
            "this model compares two texts and cannot score one alone",
            where=str(model),
            remedy="use it to re-rank the results of another model: --set duo=MODEL",
        )
    if checkpoint.head.is_assumed:
        warnings.warn(
            f"{model} has a next-sentence head that does not say which label means relevant: 0 is "
            f'assumed; if it is 1, as in Birch, write "birchbark": {{"relevant_label": 1}} into '
            f"its config.json, else 0",
            stacklevel=2,
        )
    return CrossEncoderScorer(checkpoint, threads, open_session)


def open_model(
    model: str | Path,
    pooling: Pooling | None,
    precision: Precision,
    session: SessionFactory | None,
) -> tuple[Checkpoint, SessionFactory]:
    """Return the checkpoint of `model` and the factory for its session; see `load_scorer`."""
    directory, name = locate(model), Path(model).name
    checkpoint = Checkpoint.open(directory, name + precision.suffix, pooling)
    if checkpoint.family.static:  # without linear layers there is nothing to compute in int8
        return replace(checkpoint, name=name), StaticSession
    return checkpoint, partial(session or OnnxSession, precision=precision)
