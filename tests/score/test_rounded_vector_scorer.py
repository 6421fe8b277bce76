"""Does a score by rounded vectors not depend on whether they were stored?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from reference import QUERY, SENTENCES

from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.late_interaction import LateInteractionScorer
from birchbark.score.load_scorer import load_scorer
from birchbark.score.rounded_vector_scorer import RoundedVectorScorer
from birchbark.score.token_vectors import RoundedLateInteractionScorer
from birchbark.score.vector_quantization import RoundedEmbeddingScorer


@pytest.fixture(params=["mean:16", "mean:8", "tokens:8", "tokens:4"])
def scorer(request: pytest.FixtureRequest, bert: Callable[..., Path]) -> RoundedVectorScorer:
    pooling, _, bits = request.param.partition(":")
    wrapped = load_scorer(bert(), 1, pooling)
    if isinstance(wrapped, EmbeddingScorer):
        return RoundedEmbeddingScorer(wrapped, int(bits))
    assert isinstance(wrapped, LateInteractionScorer)
    return RoundedLateInteractionScorer(wrapped, int(bits))


def test_stored_and_new_vectors_have_equal_scores(scorer: RoundedVectorScorer) -> None:
    """They are so bit for bit, for documents of any number of segments."""
    texts = scorer.encode(SENTENCES[:7])
    rows = scorer.quantize(texts)
    joined = [
        {name: np.concatenate([row[name] for row in some]) for name in scorer.no_rows}
        for some in (rows[:3], rows[3:4], rows[4:])
    ]
    found = scorer.compare(QUERY, joined)
    assert [len(scores) for scores in found] == [3, 1, 3]
    assert np.concatenate(found).tobytes() == scorer.score(QUERY, texts).tobytes()
    assert scorer.compare(QUERY, []) == []


def test_rows_have_the_form_of_no_rows(scorer: RoundedVectorScorer) -> None:
    """So an index knows the form before there is a text."""
    [rows] = scorer.quantize(scorer.encode(["birch"]))
    assert rows.keys() == scorer.no_rows.keys()
    for name, empty in scorer.no_rows.items():
        assert (len(empty), empty.dtype) == (0, rows[name].dtype)
        assert empty.shape[1:] == rows[name].shape[1:]


def test_rounding_has_a_fingerprint_of_its_own(scorer: RoundedVectorScorer) -> None:
    """It ends with the number of bits."""
    assert scorer.fingerprint.endswith(f"-{scorer.bits} bits")
