"""May several threads ask one model at once, and get what each would get alone?"""

from __future__ import annotations

import gc
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import numpy as np
import pytest

from birchbark.errors import CheckpointError
from birchbark.records import Float32s, Ids
from birchbark.remember.recent import KEY_BYTES, Recent
from birchbark.remember.remembering import Remembering
from birchbark.score.model import load_scorer
from birchbark.score.precision import Precision
from birchbark.score.together import MOST_TOKENS, Together, together
from conftest import WordScorer, write_bert


@pytest.mark.parametrize("precision", list(Precision))
def test_scores_are_those_of_asking_alone(tmp_path: Path, precision: Precision) -> None:
    """To the last bit, for a cross-encoder and an embedding, from eight threads at once."""
    for name, labels in (("cross", 1), ("embedding", None)):
        directory = write_bert(tmp_path / name, labels=labels)
        alone = load_scorer(directory, precision=precision)
        shared = load_scorer(directory, precision=precision, session=together())
        assert shared.fingerprint == alone.fingerprint
        texts = ["bees dance", "a birch canoe on the river", "iron", "steam engine ! ?"]
        asked = [(q, texts[: 1 + n % 4]) for n, q in enumerate(["bees", "river", "iron arch"] * 8)]
        with ThreadPoolExecutor(8) as pool:
            waiting = [pool.submit(shared.score, q, shared.encode(some)) for q, some in asked]
            found = [one.result() for one in waiting]
        for (query, some), scores in zip(asked, found, strict=True):
            assert scores.tobytes() == alone.score(query, alone.encode(some)).tobytes()


class _Slow:
    """A session that waits until it may begin, and tells what it was given at once."""

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
        if any(len(one) == 99 for one in ids):
            raise CheckpointError("no number")
        return np.array([one[0] for one in ids], np.float32)


def test_who_asks_for_much_lets_others_in_between() -> None:
    """A thousand texts are run piece by piece; what is asked meanwhile comes after the first."""
    slow = _Slow()
    shared = Together(slow)
    many = [np.full(100, n, np.int32) for n in range(200)]
    with ThreadPoolExecutor(2) as pool:
        long = pool.submit(shared.run, many)
        assert slow.begun.wait(10)
        short = pool.submit(shared.run, [np.array([7], np.int32)])
        while shared._waiting.empty():
            pass
        slow.may_end.set()
        assert short.result().tolist() == [7]
        assert long.result().tolist() == list(range(200))
    assert slow.sizes[0] == MOST_TOKENS // 100
    assert sum(slow.sizes) == 201


def test_what_waits_is_run_in_one_go() -> None:
    """While the model works, three more ask; they are answered together, each with its own."""
    slow = _Slow()
    shared = Together(slow)
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(shared.run, [np.array([7], np.int32)])
        assert slow.begun.wait(10)
        others = [pool.submit(shared.run, [np.full(2, n, np.int32)] * n) for n in (1, 2, 3)]
        while shared._waiting.qsize() < 3:
            pass
        slow.may_end.set()
        assert first.result().tolist() == [7]
        assert [other.result().tolist() for other in others] == [[1], [2, 2], [3, 3, 3]]
    assert slow.sizes == [1, 6]


def test_an_error_reaches_those_who_asked_and_nobody_after() -> None:
    """The thread behind it goes on."""
    slow = _Slow()
    slow.may_end.set()
    shared = Together(slow)
    with pytest.raises(CheckpointError, match="no number"):
        shared.run([np.zeros(99, np.int32)])
    assert shared.run([np.ones(1, np.int32)]).tolist() == [1]


def test_its_thread_ends_with_it() -> None:
    """Nothing is left of a session that nobody holds; nothing to run is not waited for."""
    before = set(threading.enumerate())
    shared = Together(_Slow())
    (own,) = set(threading.enumerate()) - before
    assert len(shared.run([])) == 0
    del shared
    gc.collect()
    own.join(10)
    assert not own.is_alive()


def test_recent_scores_are_kept_and_old_ones_go() -> None:
    """Never more than the bytes that were allowed; what is asked again stays."""
    recent = Recent(most_bytes=2 * 100 * (KEY_BYTES + 4))
    piece = [np.array([n], np.int32) for n in range(400)]
    first = recent.keys("q", piece[:10])
    recent.add(first, np.arange(10, dtype=np.float32))
    for start in range(10, 390, 10):
        keys = recent.keys("q", piece[start : start + 10])
        recent.add(keys, np.zeros(10, np.float32))
        scores, known = recent.find(first)
        assert known.all()
        assert scores.tolist() == list(range(10))
        assert len(recent) <= 200
    forgotten = recent.keys("q", piece[10:20])
    assert not recent.find(forgotten)[1].any()


def test_threads_count_their_own_work() -> None:
    """Two queries share scores; what each computed is told apart, and the sum is known."""
    shared = Remembering(WordScorer(), Recent())
    start = Barrier(2)

    def ask(query: str) -> tuple[int, int]:
        own = shared.apart()
        start.wait(10)
        pieces = own.encode(["bees", "dance", "bees"])
        own.score(query, pieces)
        own.score(query, pieces)
        return own.scored, own.known

    with ThreadPoolExecutor(2) as pool:
        found: list[Any] = list(pool.map(ask, ["bees", "dance"]))
    assert found == [(2, 2), (2, 2)]
    assert (shared.scored, shared.known) == (4, 4)
