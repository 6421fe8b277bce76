"""Is a model loaded at its first use, and only once?"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.score.lazy_session import LazySession, when_needed
from birchbark.score.session import OnnxSession


def test_threads_share_one_session(bert: Callable[..., Path]) -> None:
    """Nothing is opened before, and the outputs are those of the session itself."""
    checkpoint = Checkpoint.open(bert())
    opened: list[OnnxSession] = []

    def open_session() -> OnnxSession:
        opened.append(OnnxSession(checkpoint, 1))
        return opened[-1]

    session = LazySession(open_session)
    assert opened == []
    with ThreadPoolExecutor(4) as pool:
        outputs = list(pool.map(lambda _: session.run([[2, 5, 3]]), range(8)))
    assert len(opened) == 1
    assert session.open() is opened[0]
    for output in outputs:
        np.testing.assert_array_equal(output, opened[0].run([[2, 5, 3]]))
    assert session.fingerprint("x") == opened[0].fingerprint("x")


def test_a_factory_opens_nothing_itself(bert: Callable[..., Path]) -> None:
    """What it makes is opened when it is used."""
    checkpoint, asked = Checkpoint.open(bert()), list[int | None]()

    def factory(*arguments: object, **options: object) -> OnnxSession:
        asked.append(len(arguments))
        return OnnxSession(checkpoint, 1)

    session = when_needed(factory)(checkpoint, 1)
    assert asked == []
    assert session.run([[2, 5, 3]]).shape == (1, 16)
    assert asked == [2]
