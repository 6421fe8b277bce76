"""Progress in log files: a line after ten seconds, then every minute, with an estimate."""

from __future__ import annotations

import pytest

from birchbark.cli.progress_lines import ProgressLines, in_words


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lines() -> list[str]:
    return []


def test_short_work_writes_nothing(clock: Clock, lines: list[str]) -> None:
    advance = ProgressLines("indexing", 10, lines.append, clock)
    for clock.now in range(1, 10):
        advance(1)
    assert lines == []


def test_first_line_after_ten_seconds_then_every_minute(clock: Clock, lines: list[str]) -> None:
    advance = ProgressLines("indexing", 1000, lines.append, clock)
    for second in range(1, 101):
        clock.now = second
        advance(5)
    assert lines == [
        "indexing: 50 of 1,000, about 3 min left",
        "indexing: 350 of 1,000, about 2 min left",
    ]


def test_steps_of_an_earlier_run_do_not_count_for_the_estimate(
    clock: Clock, lines: list[str]
) -> None:
    advance = ProgressLines("training", 1000, lines.append, clock)
    clock.now = 1
    advance(900)  # where an interrupted run was
    clock.now = 21
    advance(20)
    assert lines == ["training: 920 of 1,000, about 80 s left"]


def test_another_part_of_the_work_has_its_own_estimate(clock: Clock, lines: list[str]) -> None:
    advance = ProgressLines("training", None, lines.append, clock)
    for clock.now in range(1, 9):
        advance(100, total=800, label="teacher")
    clock.now = 20
    advance(1 - 800, total=100, label="loss 1.000")
    clock.now = 90
    advance(1, total=100, label="loss 0.900")
    assert lines == [
        "loss 1.000: 1 of 100",
        "loss 0.900: 2 of 100, about 1 h 54 min left",
    ]


def test_unknown_total(clock: Clock, lines: list[str]) -> None:
    advance = ProgressLines("indexing", None, lines.append, clock)
    clock.now = 11
    advance(12345)
    assert lines == ["indexing: 12,345"]


@pytest.mark.parametrize(
    ("seconds", "words"), [(4.4, "4 s"), (89, "89 s"), (119, "2 min"), (5400, "1 h 30 min")]
)
def test_durations_in_words(seconds: float, words: str) -> None:
    assert in_words(seconds) == words
