"""Are all layers and poolings of one reading those of readings of their own?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from zoo import FAMILIES, give_tokenizer, write_family

from birchbark.checkpoint.heads import MODES
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.layers import LayerEncoder
from birchbark.score.model import load_scorer

TEXTS = ["birch", "the canoe of birch bark", "a bee", "stone " * 60]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_layer_in_every_way(family: str, tmp_path: Path) -> None:
    """As `--pooling MODE:LAYER` has it, whatever head the model has."""
    directory = write_family(tmp_path / family, family, 2)
    give_tokenizer(directory, family)
    encoder = LayerEncoder(directory, threads=1)
    found = encoder.embed(TEXTS[:3])
    assert found.shape == (3, len(encoder.poolings), found.shape[2])
    assert {one.mode for one in encoder.poolings} == set(MODES)
    for place, pooling in enumerate(encoder.poolings):
        scorer = load_scorer(directory, 1, pooling)
        assert isinstance(scorer, EmbeddingScorer)
        expected = scorer.embed(scorer.encode(TEXTS[:3]))
        np.testing.assert_allclose(found[:, place], expected, rtol=0, atol=1e-6)


def test_what_does_not_fit_is_counted(bert: Callable[..., Path]) -> None:
    """A vector is of one input: the end of a longer text is left out, and told."""
    encoder = LayerEncoder(bert(), ("cls",))
    vectors = encoder.embed(TEXTS)
    assert encoder.cut == 1
    np.testing.assert_array_equal(vectors[3], encoder.embed(["stone " * 30])[0])
