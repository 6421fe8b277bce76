"""How is the report of a study rendered as a self-contained HTML page?"""

from __future__ import annotations

from birchbark.show.draw_plot import colours, draw
from birchbark.show.page import load_template
from birchbark_studies.demonstration import demonstration_note
from birchbark_studies.findings import fill_in
from birchbark_studies.first_stages import first_stage_note
from birchbark_studies.outcome import Outcome
from birchbark_studies.recipe import Recipe

TEMPLATE = "report.html"


def render_report(recipe: Recipe, outcome: Outcome, inputs: dict[str, str], device: str) -> str:
    """Render the report as one HTML page.

    inputs: path below the data root → fingerprint. device: as in `StoredResults`.

    Raises MissingPackageError without Jinja2 or matplotlib, and InputError if the findings refer to
    a cell that no table has.
    """
    page = load_template(__package__, TEMPLATE)
    from markupsafe import Markup, escape

    def with_code(text: str) -> Markup:
        """Return `text` escaped, with what stands between backticks as code."""
        parts = str(escape(text)).split("`")
        shown = (f"<code>{x}</code>" if n % 2 else x for n, x in enumerate(parts))
        return Markup("".join(shown))

    plots = [(plot, Markup(draw(plot))) for plot in outcome.plots]
    text: str = page.render(
        recipe=recipe,
        settings=first_stage_note(recipe, recipe.bm25, recipe.depth, recipe.seed),
        findings=fill_in(recipe.findings, outcome.tables, str(recipe.path)),
        demonstration=demonstration_note(recipe),
        outcome=outcome,
        plots=plots,
        inputs=inputs,
        device=device,
        colours=Markup(colours()),
        with_code=with_code,
    )
    return text
