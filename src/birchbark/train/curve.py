"""How is a training's course kept? A line of JSON for each step and each validation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Self

from birchbark.artifact import new_file
from birchbark.errors import TrainingError


class Curve:
    """Lines that are written at once, each."""

    def __init__(self, out: IO[str] | None) -> None:
        """out: None where another process writes."""
        self._out = out

    @classmethod
    @contextmanager
    def open(cls, path: Path, step: int, writes: bool) -> Iterator[Self]:
        """The curve at `path`, without what it says of steps after `step`: they come again."""
        if not writes:
            yield cls(None)
            return
        if path.exists():
            kept = [line for line in _lines(path) if line["step"] <= step]
            with new_file(path) as out:
                out.writelines(json.dumps(line) + "\n" for line in kept)
        with path.open("a", encoding="utf-8") as out:
            yield cls(out)

    def add(self, **values: Any) -> None:
        """Write a line; TrainingError where the disk takes none."""
        if self._out is None:
            return
        try:
            self._out.write(json.dumps(values) + "\n")
            self._out.flush()
        except OSError as refused:
            raise TrainingError(
                f"the curve cannot be written: {refused.strerror}",
                where=self._out.name,
                remedy="make room on the disk; the same command goes on from the last checkpoint",
            ) from None


def read_curve(path: Path) -> list[dict[str, Any]]:
    """All lines; those that a kill or a power cut has torn are left out."""
    return list(_lines(path))


def smooth_losses(
    lines: Iterable[Mapping[str, Any]], points: int
) -> tuple[tuple[float, float], ...]:
    """Step and mean loss, at most `points` of them: each the mean since the one before."""
    losses = [(line["step"], line["loss"]) for line in lines if "loss" in line]
    size = max(1, -(-len(losses) // points))
    return tuple(
        (some[-1][0], sum(loss for _, loss in some) / len(some))
        for some in (losses[start : start + size] for start in range(0, len(losses), size))
    )


def measure_curves(
    lines: Iterable[Mapping[str, Any]], what: str = "values"
) -> dict[str, tuple[tuple[float, float], ...]]:
    """Data set → step and value of each validation. what: `values` of the measure, or `losses`."""
    found: dict[str, list[tuple[float, float]]] = {}
    for line in lines:
        for name, value in line.get(what, {}).items():
            found.setdefault(name, []).append((line["step"], value))
    return {name: tuple(points) for name, points in found.items()}


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_bytes().splitlines():
        try:
            values = json.loads(line)
        except ValueError:
            continue
        if isinstance(values, dict) and isinstance(values.get("step"), int):
            yield values
