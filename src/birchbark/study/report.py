"""How does a study look on a page that needs nothing but itself?"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from birchbark.errors import MissingPackageError
from birchbark.study.figures import difference, interval, mark, written
from birchbark.study.outcome import Outcome, Style
from birchbark.study.plots import colours, draw
from birchbark.study.recipe import Recipe

TEMPLATE = "report.html"


def report(recipe: Recipe, outcome: Outcome, inputs: dict[str, str]) -> str:
    """One HTML page. inputs: path below the data root → fingerprint.

    Raises MissingPackageError without Jinja2 or matplotlib.
    """
    page = template(TEMPLATE)
    from markupsafe import Markup

    plots = [(plot, Markup(draw(plot))) for plot in outcome.plots]
    text: str = page.render(
        recipe=recipe, outcome=outcome, plots=plots, inputs=inputs, colours=Markup(colours())
    )
    return text


def template(name: str) -> Any:
    """The page called `name` in this folder, to be filled in. Raises MissingPackageError."""
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError:
        raise MissingPackageError(
            "reports need Jinja2", remedy="pip install 'birchbark[study]'"
        ) from None
    pages = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    pages.globals.update(
        written=written,
        mark=mark,
        interval=interval,
        difference=difference,
        unbroken=_unbroken,
        measure_style=Style.MEASURE,
    )
    return pages.from_string(files(__package__).joinpath(name).read_text("utf-8"))


def _unbroken(text: str) -> str:
    """A difference whose lines may break before its interval and after it, nowhere else."""
    return text.replace(" ", "\u00a0").replace("\u00a0[", " [").replace("],\u00a0", "], ")
