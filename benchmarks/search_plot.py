"""How is quality plotted against time, with a label at every point?

Three panels share the file: all ways to search, those with stored vectors, and those without.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from benchmarks.search_first_tokens import NAME as FIRST_TOKENS
from benchmarks.search_labels import LETTER, Box, place
from benchmarks.search_report import is_searched, mean, milliseconds
from benchmarks.search_rows import COMPUTED, EVERYTHING, FIRST, MIXTURE, NONE, STORED, rows
from birchbark.score.precision import Precision
from birchbark.show.draw_plot import colours

Figures = dict[str, Any]
WIDTH, HEIGHT, GAP = 860, 400, 46  # of a panel, in pixels; GAP between panels
LEFT, RIGHT, TOP, BOTTOM = 56, 150, 44, 34  # margins of a panel; labels may reach into the right
RADIUS, SIZE = 3.6, 10  # of points and of letters
PEER = "peers"
REFERENCE = "both read everything: {:.4f}"
COLOURS = {FIRST: 2, EVERYTHING: 4, STORED: 1, COMPUTED: 3, NONE: 5, PEER: 6}
TICKS = [step * 10.0**power for power in range(-1, 6) for step in (1, 2, 5)]


@dataclass(frozen=True, slots=True)
class Point:
    """A way to search: p50 in ms, mean AP. filled: whether in float32. default: as searches are."""

    label: str
    group: str
    x: float
    y: float
    filled: bool = True
    default: bool = False


def plot(figures: Figures) -> str | None:
    """Return the plot as an SVG file; None if nothing has both quality and time."""
    points = [*_points(figures), *_peers(figures)]
    if not points:
        return None
    reading = [p for p in points if p.group in (STORED, COMPUTED, NONE)]
    panels = [
        ("all ways to search", [p for p in points if p.default or p not in reading], reading),
        ("with stored vectors", [p for p in points if p.group == STORED], []),
        ("without stored vectors", [p for p in points if p.group in (COMPUTED, NONE)], []),
    ]
    zoom = _range([p.y for p in reading])
    drawn = [panel for panel in panels if panel[1]]
    height = len(drawn) * (HEIGHT + GAP)
    parts = [_head(height)]
    for number, (title, labelled, others) in enumerate(drawn):
        ys = _range([p.y for p in points]) if number == 0 else zoom
        xs = _range([math.log10(p.x) for p in (*labelled, *others)], 0.05)
        panel = _Panel(number * (HEIGHT + GAP), xs, ys)
        reference = mean(figures["quality"], MIXTURE.name)
        parts += [*panel.frame(title), *panel.key([*labelled, *others]), *panel.line(reference)]
        parts += panel.points(labelled, others, reference)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _points(figures: Figures) -> Iterator[Point]:
    for row in rows():
        x, y = milliseconds(figures, row), mean(figures["quality"], row.name)
        if x is not None and y is not None:
            label = f"default: {row.label}" if is_searched(row) else row.label
            filled = row.precision is Precision.FP32
            yield Point(label, row.group, x, y, filled, is_searched(row))


def _peers(figures: Figures) -> Iterator[Point]:
    y = mean(figures["quality"], FIRST_TOKENS)
    if y is not None:
        for name, timed in figures["peers"].items():
            yield Point(f"{name}, 512 tokens", PEER, timed["p50"], y)


def _range(values: Sequence[float], margin: float = 0.06) -> tuple[float, float]:
    """Return the range of values, wider by a share of itself on each side."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    extra = margin * (high - low or 1.0)
    return low - extra, high + extra


def _head(height: int) -> str:
    style = f"{colours()} :root {{ background: var(--paper); font: {SIZE}px sans-serif }}"
    style += " text { fill: var(--ink) } .soft { fill: var(--soft) } .bold { font-weight: bold }"
    size = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    title = "Mean AP of each way to search against the p50 of a query on TIME"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{title}">'
        f"<style>{style}</style>"
    )


@dataclass(frozen=True, slots=True)
class _Panel:
    """A panel that begins `top` pixels down. xs: range of log10 of milliseconds; ys: of AP."""

    top: float
    xs: tuple[float, float]
    ys: tuple[float, float]

    def frame(self, title: str) -> Iterator[str]:
        """Draw title, axes and grid."""
        left, right = LEFT, WIDTH - RIGHT
        low, high = self.top + HEIGHT - BOTTOM, self.top + TOP
        yield _text(LEFT, self.top + 16, f"Mean AP and p50 in ms: {title}", "bold")
        for x in TICKS:
            if self.xs[0] <= math.log10(x) <= self.xs[1]:
                at = self.x(x)
                yield _line(at, low, at, high)
                yield _text(at, low + 14, f"{x:g}", "soft", "middle")
        for y in _round_values(*self.ys):
            yield _line(left, self.y(y), right, self.y(y))
            yield _text(left - 6, self.y(y) + 3, f"{y:.3f}", "soft", "end")

    def key(self, points: Sequence[Point]) -> Iterator[str]:
        """Name the groups in their colours, below the title."""
        at = float(LEFT)
        for group in COLOURS:
            if any(p.group == group for p in points):
                colour = f"var(--series-{COLOURS[group]})"
                yield _text(at, self.top + 30, f"● {group}", look=f'style="fill: {colour}"')
                at += LETTER * SIZE * (len(group) + 5)
        yield _text(at, self.top + 30, "hollow: int8", "soft")

    def line(self, value: float | None) -> Iterator[str]:
        """Mark the quality of reading everything."""
        if value is not None:
            y = self.y(value)
            yield _line(LEFT, y, WIDTH - RIGHT, y, 'stroke="var(--soft)" stroke-dasharray="4 3"')
            yield _text(LEFT + 4, y - 4, REFERENCE.format(value), "soft")

    def points(
        self, labelled: Sequence[Point], others: Sequence[Point], reference: float | None
    ) -> Iterator[str]:
        """Draw all points, and the labels of the first ones where they do not overlap."""
        placed = sorted(labelled, key=lambda p: (not p.default, p.x))
        centres = [(self.x(p.x), self.y(p.y)) for p in placed]
        taken = [Box.around(self.x(p.x), self.y(p.y), RADIUS) for p in (*placed, *others)]
        if reference is not None:
            y = self.y(reference)
            taken.append(Box(LEFT, y - SIZE - 4, LEFT + LETTER * SIZE * len(REFERENCE), y))
        limits = Box(LEFT, self.top + TOP - 8, WIDTH - 2, self.top + HEIGHT - BOTTOM)
        labels = place(centres, [p.label for p in placed], taken, limits, SIZE)
        for point in (*others, *placed):
            yield self._mark(point)
        for point, (x, y), box in zip(placed, centres, labels, strict=True):
            near = box.nearest(x, y)
            if math.dist(near, (x, y)) > 2.5 * RADIUS:
                yield _line(x, y, *near, 'stroke="var(--soft)" stroke-width=".5"')
            yield _text(box.left, box.bottom - 2.5, point.label, "bold" if point.default else "")

    def _mark(self, point: Point) -> str:
        colour = f"var(--series-{COLOURS[point.group]})"
        fill = colour if point.filled else "var(--paper)"
        width = 2.4 if point.default else 1.2
        return (
            f'<circle cx="{self.x(point.x):.1f}" cy="{self.y(point.y):.1f}" r="{RADIUS}" '
            f'fill="{fill}" stroke="{colour}" stroke-width="{width}">'
            f"<title>{escape(point.group)}: {escape(point.label)}, {point.x:,.0f} ms, "
            f"AP {point.y:.4f}</title></circle>"
        )

    def x(self, milliseconds: float) -> float:
        """Return the position of a time."""
        low, high = self.xs
        return LEFT + (WIDTH - LEFT - RIGHT) * (math.log10(milliseconds) - low) / (high - low)

    def y(self, quality: float) -> float:
        """Return the position of a mean AP."""
        low, high = self.ys
        share = (quality - low) / (high - low)
        return self.top + HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share


def _round_values(low: float, high: float) -> list[float]:
    """Return up to about eight round numbers from low to high."""
    steps = [n * 10.0**power for power in range(-4, 1) for n in (1, 2, 5)]
    step = next((s for s in steps if (high - low) / s <= 8), 1.0)
    return [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _line(x1: float, y1: float, x2: float, y2: float, look: str = 'stroke="var(--grid)"') -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f"<line {ends} {look} />"


def _text(
    x: float, y: float, text: str, kind: str = "", anchor: str = "start", look: str = ""
) -> str:
    looks = f'class="{kind}" text-anchor="{anchor}" {look}'
    return f'<text x="{x:.1f}" y="{y:.1f}" {looks}>{escape(text)}</text>'
