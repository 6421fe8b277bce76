"""Which scorers compute vectors that an index can store, and how are these rounded?"""

from __future__ import annotations

from birchbark import defaults
from birchbark.score.bert_scorer import BiEncoderScorer
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.late_interaction import LateInteractionScorer
from birchbark.score.precision import Precision, fastest_precision
from birchbark.score.rounded_vector_scorer import RoundedVectorScorer
from birchbark.score.scorer import LoadScorer, Scorer
from birchbark.score.token_vectors import RoundedLateInteractionScorer
from birchbark.score.vector_quantization import RoundedEmbeddingScorer
from birchbark.score_cache.cached_scorer import uncached


def bi_encoder(scorer: Scorer) -> BiEncoderScorer | None:
    """Return `scorer` without its score cache if it computes vectors of segments; otherwise None.

    These are a vector of the segment (EmbeddingScorer) or of each of its tokens
    (LateInteractionScorer).
    """
    computing = uncached(scorer)
    return computing if isinstance(computing, BiEncoderScorer) else None


def embedding_scorer(scorer: Scorer) -> EmbeddingScorer | None:
    """Return `scorer` without its score cache if it computes one vector of a segment, or None."""
    computing = uncached(scorer)
    return computing if isinstance(computing, EmbeddingScorer) else None


def is_static(scorer: BiEncoderScorer) -> bool:
    """Return whether a scorer is a static embedding, whose vectors take hardly any time."""
    return scorer.checkpoint.family.static


def fast_copy(model: str, load: LoadScorer) -> Scorer | None:
    """Return the int8 copy of an embedding that reads documents in its place; None if none does.

    One does if the model was compared in both, and this machine's processor is fast at int8.
    Queries are embedded in float32 where vectors are stored. load: returns the scorer of a model by
    its name.
    """
    precision = fastest_precision() if model in defaults.INT8_EMBEDDINGS else Precision.FP32
    return None if precision is Precision.FP32 else load(model, precision=precision)


def rounded_vector_scorer(
    scorer: BiEncoderScorer, bits: int | None = None, fast: Scorer | None = None
) -> RoundedVectorScorer:
    """Return `scorer` with its vectors rounded as an index stores them.

    bits: per number. 16 or 8 for vectors of segments, by default 16, of a static embedding 8; 8 or
    4 for vectors of tokens, by default 8. Raises InputError for others. fast: a less precise copy
    of an embedding (int8), which computes the vectors of segments in its place.
    """
    if isinstance(scorer, EmbeddingScorer):
        usual = defaults.STATIC_BITS if is_static(scorer) else defaults.VECTOR_BITS
        embedder = embedding_scorer(fast) if fast else None
        return RoundedEmbeddingScorer(scorer, usual if bits is None else bits, embedder)
    if isinstance(scorer, LateInteractionScorer):
        return RoundedLateInteractionScorer(
            scorer, defaults.TOKEN_VECTOR_BITS if bits is None else bits
        )
    raise TypeError(f"no vectors of {type(scorer).__name__} are stored")
