"""Do reports fit into the window?"""

from __future__ import annotations

from typing import Any

import pytest
from in_chromium import browser

from birchbark_studies.experiments.recipe_file import read_recipe
from birchbark_studies.outcome import Outcome
from birchbark_studies.recipe_folder import RECIPES, results_folder
from birchbark_studies.report import render_report
from birchbark_studies.stored_results import read_results

WIDE_TABLES = """
[...document.querySelectorAll(".wide")].filter(d => d.scrollWidth > d.clientWidth)
.map(d => d.closest("section").querySelector("h2").innerText)
"""
__all__ = ["browser"]
pytestmark = pytest.mark.slow


def test_reports_fit_the_window(browser: Any) -> None:
    """No report of committed results scrolls sideways; on a wide window no table does, either."""
    sheet = browser.new_page()
    for folder in sorted(results_folder(RECIPES).iterdir()):
        stored = read_results(folder)
        recipe = read_recipe(RECIPES / f"{folder.name}.toml")
        sheet.set_content(render_report(recipe, Outcome(stored.tables, stored.plots), {}, "cpu"))
        sheet.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        for width in (360, 1100):
            sheet.set_viewport_size({"width": width, "height": 800})
            assert sheet.evaluate("document.documentElement.scrollWidth") <= width, folder.name
        assert sheet.evaluate(WIDE_TABLES) == [], folder.name
    sheet.close()
