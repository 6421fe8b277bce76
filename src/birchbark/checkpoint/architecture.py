"""What does a model read, and what does it return?"""

from __future__ import annotations

from dataclasses import dataclass

from birchbark import defaults

POOLER, CLS = "pooler", "cls"  # [CLS] after the head's linear layer and activation, or as it is
PASSAGE_VECTOR_KINDS = (POOLER, CLS)


@dataclass(frozen=True, slots=True)
class Architecture:
    """The kind of a trained model: by default, a cross-encoder with one logit computed from [CLS].

    Attributes:
        parade: For a PARADE model, which has one logit per document: how passages are aggregated.
        passage_vectors: For a PARADE model: what a passage's vector is, one of
            PASSAGE_VECTOR_KINDS.
        pooling: For a bi-encoder, which encodes query and text separately: how token vectors are
            pooled.
        duo: Whether the model compares two texts for a query (duoBERT).
        masked: Whether the model predicts masked tokens instead of relevance.
    """

    parade: str | None = None
    passage_vectors: str = defaults.PASSAGE_VECTORS
    pooling: str | None = None
    duo: bool = False
    masked: bool = False
