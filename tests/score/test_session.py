"""Are outputs independent of batch, threads and order, and finite?"""

from __future__ import annotations

import os

import numpy as np
import pytest
from reference import SENTENCES, Bert, ids
from safetensors.numpy import load_file, save_file

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.errors import CheckpointError
from birchbark.score.session import OnnxSession, default_threads


@pytest.mark.parametrize(
    ("chosen", "threads"), [("3", 3), ("2,1", 2), ("", None), ("0", None), ("many", None)]
)
def test_the_default_number_of_threads(
    chosen: str, threads: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OMP_NUM_THREADS, or one for each processor that is available."""
    monkeypatch.setenv("OMP_NUM_THREADS", chosen)
    assert default_threads() == (threads or len(os.sched_getaffinity(0)))
    monkeypatch.delattr(os, "sched_getaffinity")  # as on macOS
    assert default_threads() == (threads or os.cpu_count())


@pytest.mark.parametrize("labels", [None, 1])
def test_scores_do_not_depend_on_batch_threads_or_order(bert: Bert, labels: int | None) -> None:
    """Scores do not differ by a single bit."""
    checkpoint = Checkpoint.open(bert(labels=labels))
    inputs = [[2, *ids(s), 3] for s in SENTENCES]
    types = None if labels is None else [[0] * len(i) for i in inputs]
    expected = OnnxSession(checkpoint, threads=1).run(inputs, types)
    for threads in (1, 2):
        for tokens in (1, 40, 10_000):
            session = OnnxSession(checkpoint, threads, tokens)
            assert np.array_equal(session.run(inputs, types), expected)
            backwards = session.run(inputs[::-1], types and types[::-1])
            assert np.array_equal(backwards[::-1], expected)
            alone = session.run(inputs[7:8], types and types[7:8])
            assert np.array_equal(alone, expected[7:8])


def test_scores_that_are_not_finite(bert: Bert) -> None:
    """Finite weights whose sums overflow give an error instead of scores."""
    weights = bert() / "model.safetensors"
    tensors = load_file(weights)
    for name in tensors:
        tensors[name] *= np.float32(1e30)
    save_file(tensors, weights)
    with pytest.raises(CheckpointError, match="the model's output is not finite"):
        OnnxSession(Checkpoint.open(weights.parent), 1).run([[2, 5, 3]])
