"""Which scorers compute vectors that an index can store, and how are these rounded?"""

from __future__ import annotations

from birchbark import defaults
from birchbark.score.bert_scorer import BiEncoderScorer
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.late_interaction import LateInteractionScorer
from birchbark.score.quantized_scorer import QuantizedScorer
from birchbark.score.scorer import Scorer
from birchbark.score.token_vectors import QuantizedLateInteractionScorer
from birchbark.score.vector_quantization import QuantizedEmbeddingScorer
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


def quantized_scorer(scorer: BiEncoderScorer, bits: int | None = None) -> QuantizedScorer:
    """Return `scorer` with its vectors rounded as an index stores them.

    bits: per number. 16 or 8 for vectors of segments, by default 16, of a static embedding 8; 8 or
    4 for vectors of tokens, by default 8. Raises InputError for others.
    """
    if isinstance(scorer, EmbeddingScorer):
        usual = defaults.STATIC_BITS if is_static(scorer) else defaults.VECTOR_BITS
        return QuantizedEmbeddingScorer(scorer, usual if bits is None else bits)
    if isinstance(scorer, LateInteractionScorer):
        return QuantizedLateInteractionScorer(
            scorer, defaults.TOKEN_VECTOR_BITS if bits is None else bits
        )
    raise TypeError(f"no vectors of {type(scorer).__name__} are stored")
