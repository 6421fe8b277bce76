"""Where do the labels of points go, so that they overlap neither points nor each other?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

LETTER = 0.56  # mean width of a letter, as a share of its size
DISTANCES = (6.0, 12.0, 20.0, 30.0, 42.0, 56.0, 72.0, 90.0, 110.0, 135.0, 160.0, 190.0)
DIRECTIONS = 16


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle, in pixels; y grows downwards."""

    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def around(cls, x: float, y: float, radius: float) -> Box:
        """Return the box around a circle."""
        return cls(x - radius, y - radius, x + radius, y + radius)

    def overlaps(self, other: Box) -> bool:
        """Whether the two have more than an edge in common."""
        beside = self.right <= other.left or other.right <= self.left
        return not (beside or self.bottom <= other.top or other.bottom <= self.top)

    def contains(self, other: Box) -> bool:
        """Whether the other box is inside."""
        across = self.left <= other.left and other.right <= self.right
        return across and self.top <= other.top and other.bottom <= self.bottom

    def nearest(self, x: float, y: float) -> tuple[float, float]:
        """Return the point of the box that is nearest to (x, y)."""
        return min(max(x, self.left), self.right), min(max(y, self.top), self.bottom)


def place(
    centres: Sequence[tuple[float, float]],
    labels: Sequence[str],
    taken: Sequence[Box],
    limits: Box,
    size: float,
) -> list[Box]:
    """Return a box within `limits` for each label, near its centre; the first ones are nearest.

    taken: boxes to keep free. size: of the letters. A label for which there is no room is put to
    the right of its centre.
    """
    occupied, boxes = list(taken), []
    for (x, y), label in zip(centres, labels, strict=True):
        candidates = list(_candidates(x, y, LETTER * size * len(label), size + 2))
        free = (
            box
            for box in candidates
            if limits.contains(box) and not any(box.overlaps(other) for other in occupied)
        )
        boxes.append(next(free, candidates[0]))
        occupied.append(boxes[-1])
    return boxes


def _candidates(x: float, y: float, width: float, height: float) -> Iterator[Box]:
    """Yield boxes of this size around (x, y), the nearest first, beginning to the right."""
    for distance in DISTANCES:
        for number in range(DIRECTIONS):
            half = (number + 1) // 2 * (1 if number % 2 else -1)  # 0, 1, −1, 2, −2, …
            angle = 2 * math.pi * half / DIRECTIONS
            at_x, at_y = x + distance * math.cos(angle), y + distance * math.sin(angle)
            left = at_x - width * (1 - math.cos(angle)) / 2
            top = at_y - height * (1 - math.sin(angle)) / 2
            yield Box(left, top, left + width, top + height)
