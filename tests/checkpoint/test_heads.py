"""Are poolings read, and invalid ones refused?"""

from __future__ import annotations

import pytest

from birchbark.checkpoint.heads import (
    PARADE_AGGREGATIONS,
    POOLING_MODES,
    Parade,
    Pooling,
    parse_pooling,
)
from birchbark.errors import CheckpointError, InputError


@pytest.mark.parametrize(
    ("text", "pooling"),
    [
        ("cls", Pooling("cls")),
        ("mean", Pooling("mean")),
        ("max:0", Pooling("max", 0)),
        ("mean:12", Pooling("mean", 12)),
    ],
)
def test_poolings(text: str, pooling: Pooling) -> None:
    """A pooling is a method, optionally with a layer."""
    assert parse_pooling(text) == pooling


@pytest.mark.parametrize("text", ["", "min", "mean:", "mean:x", "mean:-1", "mean:1:2", "MEAN", ":"])
def test_invalid_poolings(text: str) -> None:
    """The message shows a valid example."""
    with pytest.raises(InputError, match=r"unknown pooling.*cls, mean, max or tokens.*mean:6"):
        parse_pooling(text)


def test_a_head_has_a_known_name() -> None:
    """Every name of the tables is accepted, any other is not."""
    assert [Pooling(mode).mode for mode in (*POOLING_MODES, "tokens")]
    assert [Parade((), "out", name).aggregation for name in PARADE_AGGREGATIONS]
    with pytest.raises(CheckpointError, match="unsupported pooling: expected cls or mean or max"):
        Pooling("lasttoken")
    with pytest.raises(CheckpointError, match="unsupported aggregation: expected avg or max or"):
        Parade((), "out", "mean")
