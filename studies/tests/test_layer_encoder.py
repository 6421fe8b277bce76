"""Does one pass give the same vectors as a scorer for each layer and pooling?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from zoo import FAMILIES, give_tokenizer, write_family

from birchbark.checkpoint.heads import POOLING_MODES
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.load_scorer import load_scorer
from birchbark_studies.layer_encoder import LayerEncoder

TEXTS = ["birch", "the canoe of birch bark", "a bee", "stone " * 60]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_layer_and_pooling(family: str, tmp_path: Path) -> None:
    """Each vector equals that of `--pooling MODE:LAYER`, whatever the model's head."""
    directory = write_family(tmp_path / family, family, 2)
    give_tokenizer(directory, family)
    encoder = LayerEncoder(directory, threads=1)
    vectors = encoder.embed(TEXTS[:3])
    assert vectors.shape == (3, len(encoder.poolings), vectors.shape[2])
    assert {pooling.mode for pooling in encoder.poolings} == set(POOLING_MODES)
    for position, pooling in enumerate(encoder.poolings):
        scorer = load_scorer(directory, 1, pooling)
        assert isinstance(scorer, EmbeddingScorer)
        expected = scorer.embed(scorer.encode(TEXTS[:3]))
        np.testing.assert_allclose(vectors[:, position], expected, rtol=0, atol=1e-6)


def test_truncated_texts_are_counted(bert: Callable[..., Path]) -> None:
    """A vector is of one input; a longer text is truncated."""
    encoder = LayerEncoder(bert(), ("cls",))
    vectors = encoder.embed(TEXTS)
    assert encoder.truncated_count == 1
    np.testing.assert_array_equal(vectors[3], encoder.embed(["stone " * 30])[0])
