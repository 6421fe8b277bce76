"""Is every family of BERT computed as numpy computes it, whatever the batch?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from zoo import FAMILIES, IDS, TYPES, FamilyReference, write_family

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.heads import Pooling
from birchbark.score.graph import build_graph
from birchbark.score.session import OnnxSession


@pytest.mark.parametrize("logits", [1, 2])
@pytest.mark.parametrize("family", FAMILIES)
def test_logits_agree_with_numpy(family: str, logits: int, tmp_path: Path) -> None:
    """Two logits give their difference, label 1 minus label 0."""
    directory = write_family(tmp_path / family, family, logits)
    reference = FamilyReference(directory, family)
    both = [reference.logits(i, t) for i, t in zip(IDS, TYPES, strict=True)]
    expected = [x[0] if logits == 1 else x[1] - x[0] for x in both]
    logits_found = OnnxSession(Checkpoint.open(directory)).run(IDS, TYPES)
    np.testing.assert_allclose(logits_found, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("pooling", [None, Pooling("max"), Pooling("cls", 1)])
@pytest.mark.parametrize("family", FAMILIES)
def test_scores_do_not_depend_on_batch_threads_or_order(
    family: str, pooling: Pooling | None, tmp_path: Path
) -> None:
    """Scores are equal to the last bit, for every activation, pooling and head."""
    directory = write_family(tmp_path / family, family, 2)
    checkpoint = Checkpoint.open(directory, pooling=pooling)
    expected = OnnxSession(checkpoint, threads=1).run(IDS, TYPES)
    for threads, tokens in ((1, 1), (2, 40), (2, 10_000)):
        session = OnnxSession(checkpoint, threads, tokens)
        assert np.array_equal(session.run(IDS[::-1], TYPES[::-1])[::-1], expected)


def test_shared_weights_are_stored_once(tmp_path: Path) -> None:
    """ALBERT's weights are not repeated for each layer."""
    checkpoint = Checkpoint.open(write_family(tmp_path / "albert", "albert", 1))
    weights = build_graph(checkpoint)[1]
    assert sum("ffn_output.weight" in name for name in weights) == 1
