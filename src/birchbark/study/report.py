"""How does a study look on a page that needs nothing but itself?"""

from __future__ import annotations

from birchbark.show.drawing import colours, draw
from birchbark.show.page import template
from birchbark.study.outcome import Outcome
from birchbark.study.recipe import Recipe

TEMPLATE = "report.html"


def report(recipe: Recipe, outcome: Outcome, inputs: dict[str, str]) -> str:
    """One HTML page. inputs: path below the data root → fingerprint.

    Raises MissingPackageError without Jinja2 or matplotlib.
    """
    page = template(__package__, TEMPLATE)
    from markupsafe import Markup

    plots = [(plot, Markup(draw(plot))) for plot in outcome.plots]
    text: str = page.render(
        recipe=recipe, outcome=outcome, plots=plots, inputs=inputs, colours=Markup(colours())
    )
    return text
