"""How are numbers formatted for readers?"""

from __future__ import annotations

from birchbark.evaluate.significance import Difference
from birchbark.show.table import Cell, Style, Value

MISSING = "–"


def format_value(value: Value, style: Style) -> str:
    """Format a value in the style of its column. Strings stay unchanged; None becomes a dash."""
    if value is None or isinstance(value, str):
        return MISSING if value is None else value
    if style is Style.COUNT:
        return f"{value:,.0f}"
    if style is Style.MEASURE:
        return _bare(f"{value:.4f}")
    if style is Style.SHARE:
        return f"{100 * value:.3g} %"
    if style is Style.DECIMAL:
        return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"
    return str(value)


def significance_mark(cell: Cell) -> str:
    """Return † if the difference from the baseline is significant, else an empty string."""
    return "†" if cell.difference and cell.difference.significant else ""


def format_interval(bounds: tuple[float, float] | None) -> str:
    """Format an interval of a measure as [low, high]. Returns an empty string for None."""
    if bounds is None:
        return ""
    low, high = (_bare(f"{bound:.3f}") for bound in bounds)
    return f"[{low}, {high}]"


def format_difference(difference: Difference | None) -> str:
    """Format mean, interval, corrected p and effect size. Returns an empty string for None."""
    if difference is None:
        return ""
    effect = "" if difference.effect is None else f", d {_bare(f'{difference.effect:.2f}')}"
    mean, bounds = format_signed(difference.mean), format_bounds(difference)
    return f"{mean} {bounds}, {format_p(difference.corrected_p)}{effect}"


def format_bounds(difference: Difference) -> str:
    """Format the interval of a difference."""
    return f"[{format_signed(difference.low)}, {format_signed(difference.high)}]"


def format_p(p: float | None) -> str:
    """Format a probability under the null hypothesis; None if it is undefined."""
    if p is None:
        return "p undefined"
    return "p < .001" if p < 0.001 else f"p = {_bare(f'{p:.3f}')}"


def format_signed(number: float) -> str:
    """Format a difference of measures with its sign."""
    return _bare(f"{number:+.3f}")


def _bare(number: str) -> str:
    """Return a number as is usual for measures: .5, not 0.5, and with a minus sign."""
    bare = number.replace("0.", ".", 1) if number.lstrip("+-").startswith("0.") else number
    return bare.replace("-", "−")
