"""Do threads that share a model get the same scores as each would alone?"""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from birchbark.errors import CheckpointError
from birchbark.records import Float32s, Ids
from birchbark.score.dynamic_batching import MAX_TOKENS, DynamicBatcher, dynamic_batcher
from birchbark.score.load_scorer import load_scorer
from birchbark.score.precision import Precision
from birchbark.score.session import OnnxSession
from conftest import write_bert


@pytest.mark.parametrize("precision", [p for p in Precision if p.runs_on_cpu])
def test_scores_are_the_same_as_without_batching(tmp_path: Path, precision: Precision) -> None:
    """Eight threads get the same bits, from a cross-encoder and from an embedding model."""
    for name, labels in (("cross", 1), ("embedding", None)):
        directory = write_bert(tmp_path / name, labels=labels)
        alone = load_scorer(directory, precision=precision)
        shared = load_scorer(directory, precision=precision, session=dynamic_batcher())
        assert shared.fingerprint == alone.fingerprint
        texts = ["bees dance", "a birch canoe on the river", "iron", "steam engine ! ?"]
        requests = [
            (q, texts[: 1 + n % 4]) for n, q in enumerate(["bees", "river", "iron arch"] * 8)
        ]
        with ThreadPoolExecutor(8) as pool:
            waiting = [pool.submit(shared.score, q, shared.encode(t)) for q, t in requests]
            results = [future.result() for future in waiting]
        for (query, chosen), scores in zip(requests, results, strict=True):
            assert scores.tobytes() == alone.score(query, alone.encode(chosen)).tobytes()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_forked_process_can_score(tmp_path: Path, threads: int) -> None:
    """It gets the same scores, as does the process from which it was forked."""
    directory = write_bert(tmp_path / "bert", labels=1)
    texts = ["bees dance", "a birch canoe on the river", "iron", "steam engine"] * 20
    for session in (OnnxSession, dynamic_batcher()):
        scorer = load_scorer(directory, threads, session=session)
        expected = scorer.score("river", scorer.encode(texts)).tobytes()
        child = os.fork()
        if not child:
            signal.alarm(20)
            found = scorer.score("river", scorer.encode(texts)).tobytes()
            os._exit(0 if found == expected else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert scorer.score("river", scorer.encode(texts)).tobytes() == expected


class _Slow:
    """A session that waits until it may finish, and records how many inputs each run had."""

    def __init__(self) -> None:
        self.begun, self.may_end, self.sizes = Event(), Event(), list[int]()

    def fingerprint(self, checkpoint: str) -> str:
        return checkpoint

    def run(self, ids: Sequence[Ids], types: Sequence[Ids] | None = None) -> Float32s:
        if not ids:
            return np.empty(0, np.float32)
        self.sizes.append(len(ids))
        self.begun.set()
        self.may_end.wait(10)
        if any(len(tokens) == 99 for tokens in ids):
            raise CheckpointError("no number")
        return np.array([tokens[0] for tokens in ids], np.float32)


def test_large_requests_are_divided() -> None:
    """A large request is split, so that another thread's request is run in between."""
    slow = _Slow()
    shared = DynamicBatcher(slow)
    many = [np.full(100, n, np.int32) for n in range(200)]
    with ThreadPoolExecutor(2) as pool:
        long = pool.submit(shared.run, many)
        assert slow.begun.wait(10)
        short = pool.submit(shared.run, [np.array([7], np.int32)])
        while shared._waiting.get().empty():
            pass
        slow.may_end.set()
        assert short.result().tolist() == [7]
        assert long.result().tolist() == list(range(200))
    assert slow.sizes[0] == MAX_TOKENS // 100
    assert sum(slow.sizes) == 201


def test_waiting_requests_are_run_together() -> None:
    """Three requests arrive while the model runs; each gets its own results from one run."""
    slow = _Slow()
    shared = DynamicBatcher(slow)
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(shared.run, [np.array([7], np.int32)])
        assert slow.begun.wait(10)
        others = [pool.submit(shared.run, [np.full(2, n, np.int32)] * n) for n in (1, 2, 3)]
        while shared._waiting.get().qsize() < 3:
            pass
        slow.may_end.set()
        assert first.result().tolist() == [7]
        assert [other.result().tolist() for other in others] == [[1], [2, 2], [3, 3, 3]]
    assert slow.sizes == [1, 6]


def test_an_error_is_raised_in_the_waiting_threads_only() -> None:
    """An error is raised in the waiting threads, and later requests are served."""
    slow = _Slow()
    slow.may_end.set()
    shared = DynamicBatcher(slow)
    with pytest.raises(CheckpointError, match="no number"):
        shared.run([np.zeros(99, np.int32)])
    assert shared.run([np.ones(1, np.int32)]).tolist() == [1]


def test_its_thread_ends_with_it() -> None:
    """The batcher's thread ends when the batcher is deleted; an empty request does not wait."""
    before = set(threading.enumerate())
    shared = DynamicBatcher(_Slow())
    (thread,) = set(threading.enumerate()) - before
    assert len(shared.run([])) == 0
    del shared
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()
