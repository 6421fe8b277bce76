"""Are times and seeds checked as they are read?"""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from birchbark.cli import group
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


@pytest.mark.parametrize(
    "words",
    [
        ("evaluate", "qrels.txt", "a.run"),
        ("tune", "qrels.txt", "a.run", "--output", "b.run"),
        ("pairs", "docs", "--queries", "q.tsv", "--qrels", "qrels.txt", "--output", "p.tsv"),
    ],
)
def test_a_seed_below_0_is_refused(words: tuple[str, ...]) -> None:
    """Each command that draws at random says so before it reads a file."""
    result = CliRunner().invoke(group, (*words, "--seed", "-1"))
    assert result.exit_code == 2
    assert "-1 is not in the range x>=0" in result.output
