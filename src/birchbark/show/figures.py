"""How is a figure written where people read it?"""

from __future__ import annotations

from birchbark.evaluate.significance import Difference
from birchbark.show.table import Cell, Style, Value

ABSENT = "–"


def written(value: Value, style: Style) -> str:
    """A figure in the style of its column; what is a string already stays as it is."""
    if value is None or isinstance(value, str):
        return ABSENT if value is None else value
    if style is Style.COUNT:
        return f"{value:,.0f}"
    if style is Style.MEASURE:
        return _bare(f"{value:.4f}").replace("-", "−")
    if style is Style.SHARE:
        return f"{100 * value:.3g} %"
    if style is Style.DECIMAL:
        return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"
    return str(value)


def mark(cell: Cell) -> str:
    """† where the difference from the baseline is significant."""
    return "†" if cell.difference and cell.difference.significant else ""


def interval(bounds: tuple[float, float] | None) -> str:
    """[low, high] of a measure; empty where there is none."""
    if bounds is None:
        return ""
    low, high = (_bare(f"{bound:.3f}").replace("-", "−") for bound in bounds)
    return f"[{low}, {high}]"


def difference(found: Difference | None) -> str:
    """Mean, interval, corrected p and size of the effect; empty where there is none."""
    if found is None:
        return ""
    mean, low, high = (_signed(number) for number in (found.mean, found.low, found.high))
    effect = "" if found.effect is None else f", d {_bare(f'{found.effect:.2f}')}"
    return f"{mean} [{low}, {high}], {_p(found.corrected_p)}{effect.replace('-', '−')}"


def _p(p: float | None) -> str:
    if p is None:
        return "p undefined"
    return "p < .001" if p < 0.001 else f"p = {_bare(f'{p:.3f}')}"


def _signed(number: float) -> str:
    return _bare(f"{number:+.3f}").replace("-", "−")


def _bare(number: str) -> str:
    """Without the zero before the point, as the house writes measures."""
    return number.replace("0.", ".", 1) if number.lstrip("+-").startswith("0.") else number
