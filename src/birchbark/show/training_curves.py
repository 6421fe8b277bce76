"""How are the lines of a training log turned into the points of curves?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def smooth_losses(
    lines: Iterable[Mapping[str, Any]], points: int
) -> tuple[tuple[float, float], ...]:
    """Return at most `points` pairs of a step and the mean loss since the previous pair."""
    losses = [(line["step"], line["loss"]) for line in lines if "loss" in line]
    size = max(1, -(-len(losses) // points))
    return tuple(
        (chunk[-1][0], sum(loss for _, loss in chunk) / len(chunk))
        for chunk in (losses[start : start + size] for start in range(0, len(losses), size))
    )


def measure_curves(
    lines: Iterable[Mapping[str, Any]], key: str = "values"
) -> dict[str, tuple[tuple[float, float], ...]]:
    """Return data set → (step, value) for each validation. key: `values` (measure) or `losses`."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for line in lines:
        for name, value in line.get(key, {}).items():
            curves.setdefault(name, []).append((line["step"], value))
    return {name: tuple(points) for name, points in curves.items()}
