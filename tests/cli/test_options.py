"""Are times read with and without a unit?"""

from __future__ import annotations

import pytest

from birchbark.cli.options import parse_seconds
from birchbark.errors import InputError


@pytest.mark.parametrize(("text", "seconds"), [("500ms", 0.5), ("2s", 2), ("1.5", 1.5)])
def test_times(text: str, seconds: float) -> None:
    """Times have a unit or are in seconds."""
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "5x", "-1s", "ms", "1e3", "nan"])
def test_invalid_times(text: str) -> None:
    """The message shows valid examples."""
    with pytest.raises(InputError, match="not a time: expected 500ms, or 2s"):
        parse_seconds(text)
