"""Are poolings read, and invalid ones refused?"""

from __future__ import annotations

import pytest

from birchbark.checkpoint.heads import Pooling, parse_pooling
from birchbark.errors import InputError


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
