"""Is a pooling or an aggregation that is not known refused, in ranking and in training alike?"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from birchbark.errors import CheckpointError
from birchbark.score.graph import pool
from birchbark.score.parade import PassageAggregator
from birchbark.train.network import Network


def test_ranking_and_training_refuse_the_same_poolings() -> None:
    """Neither takes an unknown one for another."""
    unknown: Any = SimpleNamespace(mode="last", pooling="last")
    with pytest.raises(CheckpointError, match=r"unsupported pooling.*found last"):
        pool(None, "x", unknown)  # type: ignore[arg-type]
    with pytest.raises(CheckpointError, match=r"unsupported pooling.*found last"):
        Network._pool(SimpleNamespace(), np.zeros((1, 2, 3)), "last")  # type: ignore[arg-type]


def test_ranking_and_training_refuse_the_same_aggregations() -> None:
    """Neither takes an unknown one for a transformer."""
    vectors = np.zeros((2, 3), np.float32)
    session = SimpleNamespace(run=lambda names, inputs: [np.zeros((1, 1, 1))])
    ranking: Any = SimpleNamespace(_aggregation="sum", _session=session, _outputs=["out"])
    with pytest.raises(CheckpointError, match=r"unsupported aggregation.*found sum"):
        PassageAggregator.run(ranking, vectors)
    training: Any = SimpleNamespace(architecture=SimpleNamespace(parade="sum"))
    with pytest.raises(CheckpointError, match=r"unsupported aggregation.*found sum"):
        Network._aggregate(training, vectors[None], 2)
