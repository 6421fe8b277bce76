"""Are the states after every layer those of numpy?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from zoo import FAMILIES, IDS, LAYERS, FamilyReference, write_family

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.heads import Pooling
from birchbark.score.session import OnnxSession


@pytest.mark.parametrize("mode", ["cls", "mean", "max"])
@pytest.mark.parametrize("family", FAMILIES)
def test_any_layer_gives_embeddings(family: str, mode: str, tmp_path: Path) -> None:
    """Token vectors of any layer are pooled and scaled to length 1; layer 0 is the embeddings."""
    directory = write_family(tmp_path / family, family, 1)
    reference = FamilyReference(directory, family)
    states = [reference.states(i, [0] * len(i)) for i in IDS]
    for layer in range(LAYERS + 1):
        tokens = [s[layer] for s in states]
        pooled = [{"cls": x[0], "mean": x.mean(0), "max": x.max(0)}[mode] for x in tokens]
        expected = [x / np.linalg.norm(x) for x in pooled]
        checkpoint = Checkpoint.open(directory, pooling=Pooling(mode, layer))
        vectors = OnnxSession(checkpoint).run(IDS)
        np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-5)
