"""Are settings of sentence-transformers that do not fit a model's modules refused?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from birchbark.checkpoint.layers import Layer, LayerNorm, UnitLength
from birchbark.checkpoint.settings import (
    SETTINGS,
    check_cross_encoder,
    check_embedding,
    read_settings,
)
from birchbark.errors import CheckpointError

UNIT, OTHER = (UnitLength(16),), (UnitLength(16), LayerNorm("norm.0", 16, 1e-5))


@pytest.mark.parametrize(
    ("settings", "layers", "message"),
    [
        ({}, (), ""),
        ({"model_type": "SentenceTransformer", "similarity_fn_name": "cosine"}, (), ""),
        ({"similarity_fn_name": "dot"}, UNIT, ""),
        ({"similarity_fn_name": "dot"}, (), "similarity_fn_name.*found dot"),
        ({"similarity_fn_name": "dot"}, OTHER, "similarity_fn_name.*found dot"),
        ({"similarity_fn_name": "euclidean"}, UNIT, "similarity_fn_name.*found euclidean"),
        ({"model_type": "SparseEncoder"}, UNIT, "model_type.*found SparseEncoder"),
    ],
)
def test_vectors_are_compared_by_the_cosine(
    settings: dict[str, Any], layers: tuple[Layer, ...], message: str, tmp_path: Path
) -> None:
    """The dot product is one if the last layer gives vectors of length 1."""
    (tmp_path / SETTINGS).write_text(json.dumps(settings))
    if not message:
        check_embedding(tmp_path, layers)
        return
    with pytest.raises(CheckpointError, match=f"unsupported {message}"):
        check_embedding(tmp_path, layers)


def test_modules_that_give_scores_are_those_of_a_cross_encoder(tmp_path: Path) -> None:
    """A model that says nothing is none."""
    assert read_settings(tmp_path) == {}
    with pytest.raises(CheckpointError, match="model_type: expected CrossEncoder, found None"):
        check_cross_encoder(tmp_path)
    (tmp_path / SETTINGS).write_text('{"model_type": "CrossEncoder"}')
    check_cross_encoder(tmp_path)
