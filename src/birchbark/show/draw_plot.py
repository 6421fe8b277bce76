"""How is a plot drawn as SVG for light and dark pages?

Colours are CSS variables of the page. Text remains text, in the page's font. The SVG contains no
date or other metadata, so equal plots give equal bytes.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

from birchbark.errors import MissingPackageError
from birchbark.show.plot import Bars, Curves, Dots, Plot, Scatter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 3.7  # inches, about the width of a phone screen
MAX_TICKS = 6  # on a logarithmic axis
MAX_MARKERS = 20  # on a curve
LONG_NAME = 24  # characters; with a longer name, the legend has one column
BAND_ALPHA = 0.18  # opacity of the interval around a curve
INK, GRID = "#010203", "#040506"
SERIES = ("#111101", "#111102", "#111103", "#111104", "#111105", "#111106")
MARKERS = "osD^vPX"  # one more than colours, so that the seventh series differs from the first
NAMES = {INK: "ink", GRID: "grid", **{c: f"series-{n}" for n, c in enumerate(SERIES, 1)}}
SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "birchbark",
    "font.size": 9.0,
    "text.parse_math": False,
}


def draw(plot: Plot) -> str:
    """Draw the plot as an <svg> element. Raises MissingPackageError without matplotlib."""
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingPackageError(
            "plots need matplotlib", remedy="pip install 'birchbark[study]'"
        ) from None
    with mpl.rc_context(SETTINGS):
        figure = Figure(layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.subplots()
        _style_axes(axes)
        if isinstance(plot, Dots):
            _draw_dots(figure, axes, plot)
        elif isinstance(plot, Bars):
            _draw_bars(figure, axes, plot)
        elif isinstance(plot, Scatter):
            _draw_scatter(figure, axes, plot)
        else:
            _draw_curves(figure, axes, plot)
        out = io.StringIO()
        no_metadata: Any = {"Date": None, "Creator": None, "Type": None, "Format": None}
        figure.savefig(out, format="svg", transparent=True, metadata=no_metadata)
    return _embeddable(out.getvalue(), plot)


def draw_page(plot: Plot) -> str:
    """Draw the plot as a stand-alone SVG file, in the colours of a report."""
    svg = draw(plot)
    start = svg.index(">") + 1  # of the content
    style = f"{colours()} :root {{ background: var(--paper); font-family: sans-serif }}"
    return f"{svg[:start]}<style>{style}</style>{svg[start:]}\n"


def colours() -> str:
    """Return the CSS that sets the colour variables for light and dark pages."""
    return resources.files(__package__).joinpath("colours.css").read_text("utf-8")


def _draw_dots(figure: Figure, axes: Axes, plot: Dots) -> None:
    """Draw rows from top to bottom and, within each row, the series below one another."""
    rows = list(dict.fromkeys(point.row for point in plot.points))
    series = list(dict.fromkeys(point.series for point in plot.points))
    figure.set_size_inches(WIDTH, 0.9 + len(rows) * (0.2 + 0.16 * len(series)))
    axes.axvline(plot.reference, color=INK, linewidth=0.8)
    for number, name in enumerate(series):
        points = [point for point in plot.points if point.series == name]
        offset = (number - (len(series) - 1) / 2) * 0.75 / max(1, len(series))
        axes.errorbar(
            [point.value for point in points],
            [rows.index(point.row) + offset for point in points],
            xerr=[[p.value - p.low for p in points], [p.high - p.value for p in points]],
            fmt=MARKERS[number % len(MARKERS)],
            color=SERIES[number % len(SERIES)],
            markersize=4.5,
            linewidth=1.4,
            label=name,
        )
    axes.set_yticks(range(len(rows)), rows)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="x", color=GRID, linewidth=0.6)
    axes.set_xlabel(plot.axis, color=INK, loc="right")  # long row names leave little room
    if max(map(len, rows), default=0) > LONG_NAME:
        axes.locator_params(axis="x", nbins=3)
    _add_legend(figure, series)


def _draw_curves(figure: Figure, axes: Axes, plot: Curves) -> None:
    columns = _legend_columns(list(plot.series))
    figure.set_size_inches(WIDTH, 2.2 + 0.18 * -(-len(plot.series) // columns))
    for x in plot.marks:
        axes.axvline(x, color=INK, linewidth=0.8, linestyle="--")
    if plot.reference is not None:
        axes.axhline(plot.reference, color=INK, linewidth=0.8)
    for number, (name, points) in enumerate(plot.series.items()):
        colour, marker = SERIES[number % len(SERIES)], MARKERS[number % len(MARKERS)]
        xs, ys = zip(*points, strict=True)
        if band := (plot.bands or {}).get(name):
            along, low, high = zip(*band, strict=True)
            axes.fill_between(along, low, high, color=colour, alpha=BAND_ALPHA, linewidth=0)
        [line] = axes.plot(xs, ys, color=colour, marker=marker, markersize=4.5, linewidth=1.4)
        line.set(label=name, markevery=-(-len(xs) // MAX_MARKERS))
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_xlabel(plot.x_axis, color=INK)
    axes.set_ylabel(plot.y_axis, color=INK)
    _add_legend(figure, [name for name in plot.series if name])


def _draw_bars(figure: Figure, axes: Axes, plot: Bars) -> None:
    figure.set_size_inches(WIDTH, 2.2)
    colours = [SERIES[0] if value > 0 else SERIES[1] for value in plot.values]
    axes.bar(range(1, len(plot.values) + 1), plot.values, width=1.0, color=colours, linewidth=0)
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    axes.set_xlabel(plot.x_axis, color=INK)
    axes.set_ylabel(plot.y_axis, color=INK)


def _draw_scatter(figure: Figure, axes: Axes, plot: Scatter) -> None:
    """Draw numbered points; the legend maps the numbers to names."""
    figure.set_size_inches(WIDTH, 2.6 + 0.18 * ((len(plot.points) + 1) // 2))
    axes.set_xscale("log")
    front = plot.front
    axes.plot([x for _, x, _ in front], [y for _, _, y in front], color=GRID, linewidth=1.4)
    for number, point in enumerate(plot.points, 1):
        name, x, y = point
        colour = SERIES[0] if point in front else SERIES[1]
        axes.plot(x, y, "o", color=colour, markersize=4.5, label=f"{number}  {name}")
        axes.annotate(
            str(number),
            (x, y),
            (4, 3),
            textcoords="offset points",
            color=INK,
            fontsize=8.0,
        )
    axes.margins(0.12)
    ticks = _ticks(*axes.get_xlim())
    axes.set_xticks(ticks, [f"{x:g}" for x in ticks])
    axes.set_xticks([], minor=True)
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_xlabel(plot.x_axis, color=INK)
    axes.set_ylabel(plot.y_axis, color=INK)
    _add_legend(figure, [name for name, _, _ in plot.points])


def _ticks(low: float, high: float) -> list[float]:
    """Choose round numbers between low and high for a logarithmic axis, finer on short axes."""
    for steps in ((1, 2, 5), range(1, 10), (n / 10 for n in range(10, 100))):
        candidates = sorted(step * 10.0**power for step in steps for power in range(-9, 10))
        if len(ticks := [x for x in candidates if low <= x <= high]) > 1:
            return ticks[:: -(-len(ticks) // MAX_TICKS)]
    return [low, high]


def _style_axes(axes: Axes) -> None:
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(GRID)
    axes.tick_params(length=0, colors=INK)
    axes.locator_params(axis="x", nbins=5)


def _add_legend(figure: Figure, names: Sequence[str]) -> None:
    if names:
        figure.legend(
            loc="outside upper left",
            ncols=_legend_columns(names),
            frameon=False,
            labelcolor=INK,
            handletextpad=0.3,
        )


def _legend_columns(names: Sequence[str]) -> int:
    """Return 2 if two of the names fit side by side, else 1."""
    return 2 if len(names) > 1 and max(map(len, names)) <= LONG_NAME else 1


def _embeddable(text: str, plot: Plot) -> str:
    """Extract the <svg> element; make its ids unique and use the page's colours and font."""
    svg = text[text.index("<svg") :].strip()
    for colour, name in NAMES.items():
        svg = svg.replace(colour, f"var(--{name})")
    svg = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px; font-family: inherit", svg)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{plot.name}-", svg)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    return svg.replace("<svg ", '<svg role="img" ', 1)
