"""Which static vectors does a new index get?"""

from __future__ import annotations

from birchbark import defaults
from birchbark.pipeline.stored.precompute import Precomputation, precompute_vectors
from birchbark.score.load_scorer import load_scorer
from birchbark.segment.by_name import parse_segmenter


def static_vectors() -> Precomputation:
    """Return the precomputation of the vectors of default segments by the static embedding."""
    scorer = load_scorer(defaults.STATIC_EMBEDDING)
    return precompute_vectors(scorer, parse_segmenter(defaults.SEGMENTS), defaults.STATIC_EMBEDDING)
